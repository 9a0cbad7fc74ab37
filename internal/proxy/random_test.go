package proxy_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/shared"
)

// storm is one random run: clients that call through a pair in many ways while the far end is
// closed, cut off, restarted and replaced by a plain server, and the link stands still. The server
// hangs in some calls, and closes at any byte of others. A failure names its seed; the order of
// events depends on the machine.
type storm struct {
	t    *testing.T
	seed uint64

	next             atomic.Int64
	through, failed  atomic.Int64
	hanging          atomic.Int64 // calls in which the server hangs
	stop             atomic.Bool
	mu               sync.Mutex
	seen             map[string]int  // whole requests that the server got
	answered, unsent map[string]bool // by what clients received
	links            []*net.TCPConn  // connections of the near end to the far one
	thin             *stillLink
}

var (
	numberOf = regexp.MustCompile(`<n>(\d+)</n>`)
	cutAt    = regexp.MustCompile(`<cut>(\d+)</cut>`)
)

// hangs is in requests that the server does not answer.
const hangs = "<hang/>"

// reply reads the reply to one request, head and entity.
func (r *requests) reply() (http1.Head, []byte, error) {
	for {
		h, err := r.head()
		if err != nil {
			return h, nil, err
		}
		if h.Status()/100 == 1 {
			continue
		}
		f, err := http1.ReplyFraming(&h, http.MethodPost)
		if err != nil {
			return h, nil, err
		}
		var entity []byte
		for b := http1.NewBody(f); !b.Done(); {
			if len(r.buf) == 0 {
				if err := r.more(); errors.Is(err, io.EOF) && b.Close() == nil {
					break
				} else if err != nil {
					return h, entity, err
				}
			}
			e, n, err := b.Write(r.buf)
			entity, r.buf = append(entity, e...), r.buf[n:]
			if err != nil {
				return h, entity, err
			}
		}
		return h, entity, nil
	}
}

// serve is the server: it echoes each request, in one of several ways, or closes.
func (s *storm) serve(c net.Conn) {
	r := &requests{conn: c}
	for {
		h, err := r.head()
		if err != nil {
			return
		}
		if _, waits := h.Get("Expect"); waits {
			_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		_, entity, err := r.body(&h)
		if err != nil {
			return
		}
		n := numberOf.FindSubmatch(entity)
		if n == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n") // an offer
			continue
		}
		s.mu.Lock()
		s.seen[string(n[1])]++
		s.mu.Unlock()
		if strings.Contains(string(entity), hangs) {
			s.hanging.Add(1)
			_, _ = io.Copy(io.Discard, c)
			s.hanging.Add(-1)
			return
		}
		if at := cutAt.FindSubmatch(entity); at != nil {
			whole := append([]byte("HTTP/1.1 103 Early\r\n\r\n"), echoReply(&h, entity)...)
			n, _ := strconv.Atoi(string(at[1]))
			_, _ = c.Write(whole[:n%len(whole)])
			return
		}
		var out []byte
		switch len(entity) % 8 {
		case 0:
			return
		case 1:
			_, _ = c.Write(append([]byte("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"), entity...))
			return
		case 2:
			out = chunkedReply(&h, entity)
		case 3:
			out = append([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n"),
				inChunks(string(entity), func() int { return 700 })...)
		case 4:
			out = append([]byte("HTTP/1.1 103 Early\r\n\r\n"), echoReply(&h, entity)...)
		default:
			out = echoReply(&h, entity)
		}
		if _, err := c.Write(out); err != nil {
			return
		}
	}
}

func (s *storm) body(rnd *rand.Rand) (number, body string) {
	number = fmt.Sprint(s.next.Add(1))
	filler := strings.Repeat("x", rnd.IntN(50))
	if rnd.IntN(3) == 0 {
		filler += strings.Repeat(fmt.Sprintf("<v>%x</v>", rnd.Uint64()), 1<<rnd.IntN(13))
	}
	switch rnd.IntN(16) {
	case 0:
		filler += hangs
	case 1, 2:
		filler += fmt.Sprintf("<cut>%d</cut>", rnd.Uint32())
	}
	return number, "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body><a xmlns=\"urn:x\"><n>" +
		number + "</n><t>" + filler + "</t></a></s:Body></s:Envelope>"
}

// inChunks is a body in chunks of such sizes, but for the last one.
func inChunks(body string, size func() int) string {
	var all strings.Builder
	for len(body) > 0 {
		n := min(len(body), size())
		fmt.Fprintf(&all, "%x\r\n%s\r\n", n, body[:n])
		body = body[n:]
	}
	return all.String() + "0\r\n\r\n"
}

// request is one form of sending a body.
func (s *storm) request(rnd *rand.Rand, body string) string {
	switch rnd.IntN(4) {
	case 0:
		size := func() int { return 1 + rnd.IntN(20_000) }
		if rnd.IntN(2) == 0 {
			one := size()
			size = func() int { return one }
		}
		return chunked(inChunks(body, size))
	case 1:
		return post("Expect: 100-continue\r\n", body)
	}
	return post("", body)
}

// client calls until the run ends.
func (s *storm) client(rnd *rand.Rand, near string) {
	for !s.stop.Load() {
		conn, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", near)
		if !assert.NoError(s.t, err) {
			return
		}
		for calls := 1 + rnd.IntN(20); calls > 0 && !s.stop.Load(); calls-- {
			if !s.calls(rnd, conn) {
				break
			}
		}
		_ = conn.Close()
	}
}

// calls makes one call, or some pipelined ones; false: the connection is over.
func (s *storm) calls(rnd *rand.Rand, conn net.Conn) bool {
	assert.NoError(s.t, conn.SetDeadline(time.Now().Add(patience)))
	var numbers, bodies []string
	var all strings.Builder
	for range 1 + rnd.IntN(3)*rnd.IntN(2) {
		n, body := s.body(rnd)
		numbers, bodies = append(numbers, n), append(bodies, body)
		all.WriteString(s.request(rnd, body))
	}
	wire := all.String()
	if rnd.IntN(30) == 0 { // abandons it
		_, _ = io.WriteString(conn, wire[:rnd.IntN(len(wire))])
		s.failed.Add(int64(len(numbers)))
		return false
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.WriteString(conn, wire)
	}()
	defer func() { <-sent }()
	r := &requests{conn: conn}
	for i, number := range numbers {
		if strings.Contains(bodies[i], hangs) { // its client gives up
			assert.NoError(s.t, conn.SetReadDeadline(time.Now().Add(time.Duration(rnd.IntN(50))*time.Millisecond)))
		}
		h, entity, err := r.reply()
		if err != nil {
			if !strings.Contains(bodies[i], hangs) {
				assert.NotErrorIs(s.t, err, os.ErrDeadlineExceeded, "seed %d: no end of call %s", s.seed, number)
			}
			assert.True(s.t, strings.HasPrefix(bodies[i], string(entity)), "seed %d: call %s got %.200q", s.seed,
				number, entity)
			s.failed.Add(int64(len(numbers) - i))
			_ = conn.Close()
			return false
		}
		switch h.Status() {
		case http.StatusOK:
			assert.NotContains(s.t, bodies[i], hangs)
			assert.True(s.t, bodies[i] == string(entity), "seed %d: call %s of %v: sent %d bytes, got %d of %q",
				s.seed, number, numbers, len(bodies[i]), len(entity), numberOf.FindAll(entity, -1))
			s.note(s.answered, number)
			s.through.Add(1)
		default:
			assert.Contains(s.t, []int{http.StatusBadGateway, http.StatusServiceUnavailable}, h.Status(), "seed %d: %q",
				s.seed, entity)
			if strings.Contains(string(entity), "was not ") {
				s.note(s.unsent, number)
			}
			s.failed.Add(int64(len(numbers) - i))
			_ = conn.Close()
			return false
		}
		if _, closing := h.Get("Connection"); closing {
			s.failed.Add(int64(len(numbers) - i - 1))
			_ = conn.Close()
			return false
		}
	}
	return true
}

func (s *storm) note(in map[string]bool, number string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[number] = true
}

// cut breaks all connections of the near end to the far one without notice.
func (s *storm) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.links {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	s.links = nil
}

// reset ends a server so that its end is not taken for the end of a reply.
func (o *origin) reset() {
	o.mu.Lock()
	for c := range o.open {
		_ = c.(*net.TCPConn).SetLinger(0)
	}
	o.mu.Unlock()
	o.close()
}

// more waits until that many more calls have ended.
func (s *storm) more(calls int64) {
	for from := s.through.Load() + s.failed.Load(); s.through.Load()+s.failed.Load() < from+calls && !s.t.Failed(); {
		time.Sleep(time.Millisecond) // the clients determine how long this takes
	}
}

// run makes clients call through that many failures.
func (s *storm) run(failures int) {
	rnd := rand.New(rand.NewPCG(s.seed, 0))
	s.thin = newStillLink()
	s.seen, s.answered, s.unsent = map[string]int{}, map[string]bool{}, map[string]bool{}
	o := startOrigin(s.t, "127.0.0.1:0", s.serve)
	random := func(c *settings) {
		c.MaxBuffer = 1 << (10 + rnd.IntN(11))
		c.Stream.SyncBytes = int64(1 << (10 + rnd.IntN(7)))
		c.Stream.Limits.MaxFragment = 512 << rnd.IntN(6)
		c.RememberFor = time.Nanosecond
	}
	addr := shared.Addr(s.t)
	far := startProxy(s.t, addr, o.url(), random)
	near := startProxy(s.t, "127.0.0.1:0", far.url(), func(c *settings) {
		random(c)
		c.Clients = principal.Mode(s.seed % 2)
		c.WrapDialed = func(conn net.Conn) net.Conn {
			s.mu.Lock()
			defer s.mu.Unlock()
			tcp, _ := netconn.As[*net.TCPConn](conn)
			s.links = append(s.links, tcp)
			return s.thin.wrap(conn)
		}
	})
	var clients sync.WaitGroup
	for range 1 + rnd.IntN(8) {
		own := rand.New(rand.NewPCG(s.seed, rnd.Uint64()))
		clients.Go(func() { s.client(own, near.Addrs()["http"].String()) })
	}
	for range failures {
		near.linked(s.t)
		s.more(int64(1 + rnd.IntN(40)))
		switch rnd.IntN(4) {
		case 0:
			s.cut()
		case 3:
			s.thin.stop()
			time.Sleep(time.Duration(rnd.IntN(200)) * time.Millisecond) // nothing can be waited for
			s.thin.goOn()
		case 1:
			require.NoError(s.t, far.Close())
			far = startProxy(s.t, addr, o.url(), random)
		case 2:
			require.NoError(s.t, far.Close())
			plain := startOrigin(s.t, addr, s.serve)
			s.more(int64(1 + rnd.IntN(20)))
			plain.reset()
			far = startProxy(s.t, addr, o.url(), random)
		}
	}
	s.more(10)
	s.stop.Store(true)
	clients.Wait()
	assert.Eventually(s.t, func() bool { return s.hanging.Load() == 0 }, patience, time.Millisecond,
		"seed %d: calls that were given up", s.seed)
	require.NoError(s.t, near.Close())
	require.NoError(s.t, far.Close())
	o.close()
	for n, times := range s.seen {
		assert.Equal(s.t, 1, times, "seed %d: request %s", s.seed, n)
	}
	for n := range s.answered {
		assert.Equal(s.t, 1, s.seen[n], "seed %d: request %s has a reply", s.seed, n)
	}
	for n := range s.unsent {
		assert.Zero(s.t, s.seen[n], "seed %d: request %s was said not to be sent", s.seed, n)
	}
	assert.Positive(s.t, len(s.answered), "seed %d", s.seed)
}

func TestRandomCallsThroughFailures(t *testing.T) {
	for seed := uint64(0); seed < 3 && !t.Failed(); seed++ {
		s := storm{t: t, seed: seed}
		s.run(3)
	}
}

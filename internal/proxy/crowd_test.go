package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/proxy"
)

// crowd is clients that come and go, and call in many kinds through a near proxy with routes to two
// far ones, while the routes change. Nothing fails here, so no call may. The clients make their
// calls in laps, between which nothing is in progress: what is held then must not grow.
type crowd struct {
	t                     *testing.T
	seed                  uint64
	calls, kinds, clients int
	laps, reroutes        int

	until   int64 // the number of the last call of this lap
	swapped int   // which of the two routings is in use

	wrap func(net.Conn) net.Conn // the connections over the link; nil: none
	cut  func()                  // called in the middle; nil: not called

	next  atomic.Int64
	twice atomic.Int64
	seen  []atomic.Bool // by number: a server got it
}

// body is the envelope of a call: a kind of its own order and number of elements.
func (c *crowd) body(number int64, rnd *rand.Rand) (kind int, body string) {
	kind = rnd.IntN(c.kinds)
	var b strings.Builder
	fmt.Fprintf(&b, "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Body>"+
		"<k%d xmlns=\"urn:k\"><n>%d</n>", kind, number)
	for i := range 1 + kind%7 {
		fmt.Fprintf(&b, "<v%d%d>%d</v%[1]d%[2]d>", kind, i, rnd.IntN(1000))
	}
	fmt.Fprintf(&b, "</k%d></s:Body></s:Envelope>", kind)
	return kind, b.String()
}

// ServeHTTP notes each call, and echoes it.
func (c *crowd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	entity, err := io.ReadAll(r.Body)
	found := numberOf.FindSubmatch(entity)
	if err != nil || found == nil {
		http.NotFound(w, r)
		return
	}
	if n, err := strconv.Atoi(string(found[1])); err != nil || c.seen[n].Swap(true) {
		c.twice.Add(1)
	}
	w.Header().Set("Content-Type", "text/xml")
	_, _ = w.Write(entity)
}

// client makes calls over one connection after another, of 1 to 30 calls each, until those of the
// lap are made.
func (c *crowd) client(rnd *rand.Rand, entry string) {
	for {
		conn, err := new(net.Dialer).DialContext(c.t.Context(), "tcp", entry)
		if !assert.NoError(c.t, err) {
			return
		}
		in := bufio.NewReader(conn)
		for range 1 + rnd.IntN(30)*rnd.IntN(2) {
			number := c.next.Add(1)
			if number > c.until || !c.call(rnd, conn, in, number) {
				_ = conn.Close()
				return
			}
		}
		_ = conn.Close()
	}
}

// call makes one call, and checks that the reply is its own.
func (c *crowd) call(rnd *rand.Rand, conn net.Conn, in *bufio.Reader, number int64) bool {
	kind, body := c.body(number, rnd)
	_ = conn.SetDeadline(time.Now().Add(patience))
	_, err := fmt.Fprintf(conn, "POST /%c/%d HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n"+
		"Content-Length: %d\r\n\r\n%s", "ab"[kind%2], kind, len(body), body)
	if !assert.NoError(c.t, err) {
		return false
	}
	reply, err := http.ReadResponse(in, nil)
	if !assert.NoError(c.t, err, "call %d, seed %d", number, c.seed) {
		return false
	}
	got, err := io.ReadAll(reply.Body)
	return assert.NoError(c.t, err) && assert.Equal(c.t, http.StatusOK, reply.StatusCode, "%s", got) &&
		assert.Equal(c.t, body, string(got), "call %d, seed %d", number, c.seed)
}

// holdings are what the process has.
type holdings struct {
	goroutines, descriptors int
	heap                    uint64
}

func holds() (u holdings) {
	for range 3 { // what pools keep survives one or two
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	open, _ := os.ReadDir("/proc/self/fd") // elsewhere there are none
	return holdings{runtime.NumGoroutine(), len(open), m.HeapAlloc}
}

// run makes all calls.
func (c *crowd) run() {
	c.seen = make([]atomic.Bool, c.calls+c.clients+2)
	more := func(cfg *settings) { cfg.MaxConns = 8 * c.clients }
	var far []*proxy.Upstream
	for range 2 {
		o := httptest.NewServer(c)
		c.t.Cleanup(o.Close)
		u, err := url.Parse(o.URL)
		require.NoError(c.t, err)
		far = append(far, &proxy.Upstream{URL: startProxy(c.t, "127.0.0.1:0", u, more).url()})
	}
	routes := func(swapped int) []proxy.Route {
		return []proxy.Route{{Path: "/a", Upstream: far[swapped]}, {Path: "/b", Upstream: far[1-swapped]}}
	}
	near := startProxy(c.t, "127.0.0.1:0", nil, func(cfg *settings) {
		more(cfg)
		cfg.Routes = routes(0)
		cfg.WrapDialed = c.wrap
	})
	near.linked(c.t)
	c.warm(near.url())
	before := holds()
	var held []holdings
	for lap := range c.laps {
		c.until = int64(c.calls * (lap + 1) / c.laps)
		c.next.Store(int64(c.calls * lap / c.laps))
		c.lap(near, routes)
		held = append(held, c.settled(before))
		c.t.Logf("%d calls: %+v", c.until, held[lap])
	}
	for n := 1; n <= c.calls; n++ {
		if !c.seen[n].Load() {
			c.t.Fatalf("call %d reached no server, seed %d", n, c.seed)
		}
	}
	assert.Zero(c.t, c.twice.Load(), "calls delivered twice")
	assert.Less(c.t, held[c.laps-1].heap, held[0].heap+held[0].heap/4+1<<20, "%+v", held)
}

// lap makes the calls of a lap, with its share of the changes of routes.
func (c *crowd) lap(near end, routes func(swapped int) []proxy.Route) {
	var clients sync.WaitGroup
	from := c.next.Load()
	for i := range c.clients {
		clients.Go(func() { c.client(rand.New(rand.NewPCG(c.seed, uint64(from)+uint64(i))), near.url().Host) })
	}
	changes := c.reroutes / c.laps
	for i := range changes {
		at := from + (c.until-from)*int64(i+1)/int64(changes+1)
		require.Eventually(c.t, func() bool { return c.next.Load() >= at || c.t.Failed() }, time.Hour, time.Millisecond)
		if c.cut != nil && i == 0 {
			c.cut()
		}
		c.swapped = 1 - c.swapped
		require.NoError(c.t, near.Reroute(c.t.Context(), routes(c.swapped)))
	}
	clients.Wait()
}

// settled is what the process holds once the clients are gone: no more goroutines and descriptors
// than before, and, of several laps, memory that falls no further. Lanes give theirs back when they
// have rested.
func (c *crowd) settled(before holdings) (after holdings) {
	tick := 100 * time.Millisecond
	if c.laps > 1 {
		tick = 3 * time.Second
	}
	assert.Eventually(c.t, func() bool {
		last := after
		after = holds()
		steady := c.laps == 1 || last.heap > 0 && after.heap > last.heap-last.heap/50
		return steady && after.goroutines <= before.goroutines && after.descriptors <= before.descriptors
	}, patience, tick, "%+v before", before)
	return after
}

// warm uses the pair, so that what it holds for good is there.
func (c *crowd) warm(entry *url.URL) {
	kept := connect(c.t, entry)
	in, rnd := bufio.NewReader(kept), rand.New(rand.NewPCG(c.seed, 0))
	for i := range c.clients { // numbers beyond those of the run
		require.True(c.t, c.call(rnd, kept, in, int64(c.calls+1+i)))
	}
	require.NoError(c.t, kept.Close())
}

// TestCallsWhileRoutesChange: calls of many kinds by clients that come and go, while the routes
// change: each arrives once and gets its own reply, and nothing is left.
func TestCallsWhileRoutesChange(t *testing.T) {
	(&crowd{t: t, seed: 1, calls: 1_000, kinds: 30, clients: 40, laps: 1, reroutes: 4}).run()
}

// TestUpstreamClosesAtEachByte: a server that closes within its reply ends that call, at each byte:
// its client gets what there was, or 502, and others are not affected.
func TestUpstreamClosesAtEachByte(t *testing.T) {
	whole := string(echoReply(nil, []byte("<after/>")))
	var cut atomic.Int64
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		for {
			h, err := r.head()
			if err != nil {
				return
			}
			if _, _, err := r.body(&h); err != nil || isOffer(&h) {
				return
			}
			if string(h.Target()) != "/cut" {
				_, _ = io.WriteString(c, whole)
				continue
			}
			_, _ = io.WriteString(c, whole[:cut.Load()])
			return
		}
	})
	near, _ := pair(t, o.url(), nil)
	other := connect(t, near.url())
	for n := range len(whole) {
		cut.Store(int64(n))
		c := connect(t, near.url())
		c.say(ask("h", "/cut"))
		got, _ := io.ReadAll(c.TCPConn) // it may end in a reset, as the server's reply did not end
		if !strings.HasPrefix(string(got), "HTTP/1.1 502 ") {
			assert.True(t, strings.HasPrefix(whole, string(got)), "cut at %d: %q", n, got)
		}
		other.say(ask("h", "/whole"))
		other.hear(whole)
	}
}

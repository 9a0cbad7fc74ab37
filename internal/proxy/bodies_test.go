package proxy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// echoing is a server that replies while it reads: with a length if the request has one, otherwise
// in chunks.
func echoing(t testing.TB) *url.URL {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		if r.ContentLength >= 0 {
			w.Header().Set("Content-Length", fmt.Sprint(r.ContentLength))
		}
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL + "/service")
	require.NoError(t, err)
	return u
}

// text is a sample of text; no two lines are the same.
var text = sync.OnceValue(func() (b []byte) {
	for n := 0; len(b) < 4<<20; n++ {
		b = fmt.Appendf(b, "line %d says that all is well, and that %x is a number\n", n, n*n*7919)
	}
	return b
})

// lines are that text from an offset on, without end.
type lines struct{ at int }

func (l *lines) Read(p []byte) (n int, _ error) {
	for n < len(p) {
		k := copy(p[n:], text()[l.at%len(text()):])
		n, l.at = n+k, l.at+k
	}
	return n, nil
}

// echo sends that much text and reads the same back meanwhile.
func echo(to *url.URL, seed int, size int64, chunks bool) error {
	conn, err := net.Dial("tcp", to.Host)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	sent := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(conn, 64<<10)
		framing := fmt.Sprintf("Content-Length: %d", size)
		if chunks {
			framing = "Transfer-Encoding: chunked"
		}
		_, _ = fmt.Fprintf(w, "POST /service HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n%s\r\n\r\n", framing)
		text, buf := io.LimitReader(&lines{seed * 7919}, size), make([]byte, 32<<10)
		for {
			n, err := io.ReadFull(text, buf)
			if n > 0 && chunks {
				_, _ = fmt.Fprintf(w, "%x\r\n%s\r\n", n, buf[:n])
			} else if n > 0 {
				_, _ = w.Write(buf[:n])
			}
			if err != nil {
				break
			}
		}
		if chunks {
			_, _ = w.WriteString("0\r\n\r\n")
		}
		sent <- w.Flush()
	}()
	resp, err := http.ReadResponse(bufio.NewReaderSize(conn, 64<<10), nil)
	if err != nil {
		return err
	}
	want, a, b := io.LimitReader(&lines{seed * 7919}, size), make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(resp.Body, a)
		if k, _ := io.ReadFull(want, b); k != n || string(a[:n]) != string(b[:n]) {
			return errors.New("something else came back")
		}
		if err != nil {
			break
		}
	}
	return <-sent
}

// echoes runs n of them concurrently, and measures the time.
func echoes(t testing.TB, to *url.URL, n int, size int64, chunks bool) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { assert.NoError(t, echo(to, i, size, chunks)) })
	}
	all.Wait()
	return time.Since(began)
}

// TestEchoesWhileTheyAreRead: bodies too long to be held, which the server echoes while it reads
// them, go through the pair, many at once, with a length and in chunks.
func TestEchoesWhileTheyAreRead(t *testing.T) {
	near, _ := pair(t, echoing(t), nil)
	for _, chunks := range []bool{false, true} {
		echoes(t, near.url(), 8, 3<<20, chunks)
	}
}

// inUse is the size of the heap in use, in bytes.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// unreadFor is how long a server of unread tries to write a reply.
const unreadFor = 500 * time.Millisecond

// unread makes clients request long replies that they never read, and returns the memory that a
// pair uses for them; other clients are served meanwhile.
func unread(t *testing.T, clients int, size int, media string) int64 {
	t.Helper()
	piece := []byte(strings.Repeat("<line>of what nobody reads</line>\n", 1000))
	stuck := make(chan struct{}, clients)
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", media)
		if r.Method == http.MethodPost {
			_, _ = io.Copy(w, r.Body)
			return
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(unreadFor))
		for n := 0; n < size; n += len(piece) {
			if _, err := w.Write(piece); err != nil {
				break
			}
		}
		stuck <- struct{}{}
		<-release
	}))
	defer s.Close()
	defer close(release)
	u, err := url.Parse(s.URL + "/service")
	require.NoError(t, err)
	near, _ := pair(t, u, func(c *settings) { c.Stall = patience })
	call := func(i int) {
		c := connect(t, near.url())
		body := fmt.Sprintf("<n>%d</n>", i)
		c.say(post("Connection: close\r\n", body))
		assert.True(t, strings.HasSuffix(c.rest(), body))
	}
	call(0)
	before := inUse()
	for range clients {
		c := connect(t, near.url())
		require.NoError(t, c.SetReadBuffer(4<<10))
		c.say("GET /service HTTP/1.1\r\nHost: x\r\n\r\n")
	}
	for i := range clients {
		call(i)
		<-stuck
	}
	call(0)
	return inUse() - before
}

// TestClientsThatReadNothing: the memory of a pair for replies that nobody reads is bounded, and
// small for each.
func TestClientsThatReadNothing(t *testing.T) {
	assert.Less(t, unread(t, 10, 20<<20, "text/plain"), int64(2*32<<20), "of both ends")
}

// TestRequestsCutShort: a client that is reset in the middle of a body does not look to the server
// like one that has ended, for any framing.
func TestRequestsCutShort(t *testing.T) {
	for _, framing := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		began, ended := make(chan struct{}), make(chan error, 1)
		o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
			r := &requests{conn: c}
			if h, err := r.head(); err != nil || string(h.Target()) != "/cut" {
				return
			}
			for len(r.buf) < 4 {
				_ = r.more()
			}
			close(began)
			_, err := io.Copy(io.Discard, c)
			ended <- err
		})
		near, _ := pair(t, o.url(), nil)
		c := connect(t, near.url())
		c.say("POST /cut HTTP/1.1\r\nHost: x\r\n" + framing + "\r\n\r\n400\r\n")
		<-began
		require.NoError(t, c.SetLinger(0))
		require.NoError(t, c.Close())
		assert.Error(t, <-ended, "%s: a reset", framing)
	}
}

// TestTunnelWhoseServerEndsFirst: the end of one direction does not end the other.
func TestTunnelWhoseServerEndsFirst(t *testing.T) {
	heard := make(chan string, 1)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err != nil || string(h.Target()) != "/ws" {
			return // the offer
		}
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching\r\nUpgrade: raw\r\n\r\nhello")
		_ = c.(*originConn).Conn.(*net.TCPConn).CloseWrite()
		rest, _ := io.ReadAll(c)
		heard <- string(rest)
	})
	near, _ := pair(t, o.url(), nil)
	c := connect(t, near.url())
	c.say("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n")
	assert.True(t, strings.HasSuffix(c.rest(), "hello"))
	c.say("what the server still reads")
	require.NoError(t, c.CloseWrite())
	assert.Equal(t, "what the server still reads", <-heard)
}

package proxy_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/workload"
)

// othersAreServed makes calls, each by a client of its own.
func othersAreServed(t *testing.T, by end, fields string) {
	for i := range 20 {
		c := connect(t, by.url())
		body := fmt.Sprintf("<n>%d</n>", i)
		c.say(post(fields, body))
		c.hear(body)
	}
}

// TestClientThatTakesNothing: a client requests much and reads none of it. Others are served
// meanwhile, and its connection is reset eventually.
func TestClientThatTakesNothing(t *testing.T) {
	long := workload.Blob(1, 9<<20)
	for name, start := range forwardings {
		t.Run(name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
				if string(h.Target()) == "/long" {
					entity = long
				}
				return echoReply(h, entity)
			}))
			passes := newSudden()
			entry := start(t, o, func(c *settings) { c.Stall, c.Clock = ages, passes })
			stuck := connect(t, entry.url())
			stuck.say(strings.Repeat("GET /long HTTP/1.1\r\nHost: x\r\n\r\n", 20))
			othersAreServed(t, entry, "")
			passes.end()
			require.Eventually(t, func() bool {
				_, err := stuck.Write([]byte("x"))
				return err != nil
			}, patience, 10*time.Millisecond, "the connection is reset")
		})
	}
}

// TestCallsWithoutReplyStopNobody: calls whose server does not answer, or whose clients stop
// sending, would take all the credit of the far end, as bodies held whole, bodies that come late,
// or heads.
func TestCallsWithoutReplyStopNobody(t *testing.T) {
	release := make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if string(h.Target()) == "/never" {
			<-release
			return nil
		}
		return echoReply(h, entity)
	}))
	defer close(release)
	never := func(field string, length int, body string) string {
		return fmt.Sprintf("POST /never HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", field, length, body)
	}
	text := strings.Repeat("never ", 10_000)
	for name, said := range map[string]string{
		"whole":     never("", len(text), text),
		"late":      never("", 4*len(text), text+text+text),
		"heads":     never("X: "+text[:50_000]+"\r\n", 0, ""),
		"expecting": never("Expect: 100-continue\r\nX: "+text[:50_000]+"\r\n", 1, ""),
	} {
		t.Run(name, func(t *testing.T) {
			near, _ := pair(t, o.url(), func(c *settings) {
				c.MaxBuffer, c.Stream.Limits.Window = 64<<10, 32<<10
			})
			for range 40 {
				connect(t, near.url()).say(said)
			}
			othersAreServed(t, near, "Connection: close\r\n")
		})
	}
}

// TestServerThatTakesNothing: the server does not read a long request. It is abandoned after a
// while; others continue meanwhile.
func TestServerThatTakesNothing(t *testing.T) {
	for name, start := range forwardings {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
				r := &requests{conn: c}
				h, err := r.head()
				if err != nil {
					return
				}
				if string(h.Target()) == "/stuck" {
					<-release
					return
				}
				if _, entity, err := r.body(&h); err == nil {
					_, _ = c.Write(echoReply(&h, entity))
				}
			})
			defer close(release)
			passes := newSudden()
			entry := start(t, o, func(c *settings) { c.Stall, c.Clock = ages, passes })
			var stuck []*client
			for range 3 {
				c := connect(t, entry.url())
				go func() { // it is not read whole
					_, _ = fmt.Fprintf(c.TCPConn, "POST /stuck HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s",
						200<<20, strings.Repeat("x", 16<<20))
				}()
				stuck = append(stuck, c)
			}
			othersAreServed(t, entry, "Connection: close\r\n")
			passes.end()
			for _, c := range stuck {
				_, err := io.Copy(io.Discard, c)
				assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection ends by itself")
			}
		})
	}
}

// reluctant is a listener that cannot accept at first.
type reluctant struct {
	net.Listener
	errs atomic.Int32
}

func (l *reluctant) Accept() (net.Conn, error) {
	if l.errs.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestTooFewFileDescriptors: a listener that cannot accept for a while continues.
func TestTooFewFileDescriptors(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	p := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		l := &reluctant{Listener: c.Listen}
		l.errs.Store(3)
		c.Listen = l
	})
	c := connect(t, p.url())
	c.say(post("", envelope))
	c.hear(envelope)
	assert.Empty(t, p.Failed())
}

// TestMoreUpstreamConnectionsThanThereMayBe: whatever other proxies request, the upstream gets no
// more than the maximum.
func TestMoreUpstreamConnectionsThanThereMayBe(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.MaxConns, c.MaxPerPeer = 5, 5 })
	call := func(near end) (*client, string) {
		c := connect(t, near.url())
		c.say(post("", envelope))
		status := make([]byte, len("HTTP/1.1 200"))
		_, err := io.ReadFull(c, status)
		require.NoError(t, err)
		return c, string(status)
	}
	var held []*client
	for range 2 { // streams
		near := startProxy(t, "127.0.0.1:0", far.url(), nil)
		for range 4 {
			c, status := call(near)
			held = append(held, c)
			assert.Equal(t, map[bool]string{true: "HTTP/1.1 200", false: "HTTP/1.1 503"}[len(held) <= 5], status)
		}
	}
	require.NoError(t, held[0].Close())
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	require.Eventually(t, func() bool {
		_, status := call(near)
		return status == "HTTP/1.1 200"
	}, patience, 10*time.Millisecond, "a place is given back")
}

// TestLanesThatHadNoClient: a peer that ends clients of lanes which had none has the far proxy
// remember no more of them than there may be lanes.
func TestLanesThatHadNoClient(t *testing.T) {
	const lanes = 8
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.MaxConns = lanes })
	c := connect(t, far.url())
	c.say("OPTIONS /service HTTP/1.1\r\nHost: h\r\n" + asking + "\r\n")
	s, _ := follow(t, c, false)
	for lane := range uint64(50 * lanes) {
		for _, how := range []string{"=x\n", "=h\n", "="} {
			require.NoError(t, s.Lane(lane+1).Send(t.Context(), streamer.NewMessage([]byte(how), nil)))
		}
	}
	head := []byte(post("", envelope))
	head = head[:len(head)-len(envelope)]
	served := 0
	for lane := range uint64(50 * lanes) {
		reply, err := s.Lane(lane+1).Call(t.Context(), streamer.NewMessage(append(head, '\n'), []byte(envelope)))
		if _, body := read(t, reply, err); body == envelope {
			served++
			require.NoError(t, s.Lane(lane+1).Send(t.Context(), streamer.NewMessage([]byte("=x\n"), nil)))
		} else {
			require.Contains(t, body, "no free slot")
		}
	}
	assert.Positive(t, served)
	assert.LessOrEqual(t, served, lanes)
}

// TestLongChunkedBodiesAreSplit: bodies of some megabytes of unknown length go over the link as
// content of a shape, in both directions.
func TestLongChunkedBodiesAreSplit(t *testing.T) {
	var body []byte
	for m := range workload.Records(1, 60_000) {
		body = m
		break
	}
	require.Greater(t, len(body), 3<<20)
	o := startOrigin(t, "127.0.0.1:0", server(chunkedReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.Pause = time.Hour })
	var there, back atomic.Int64
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Pause = time.Hour
		c.WrapDialed = func(conn net.Conn) net.Conn { return metered{conn, &there, &back} }
	})
	c := connect(t, near.url())
	var cut []string
	for b := string(body); len(b) > 0; {
		n := min(len(b), 8000)
		cut = append(cut, fmt.Sprintf("%x\r\n", n), b[:n], "\r\n")
		b = b[n:]
	}
	go func() { _, _ = io.WriteString(c.TCPConn, chunked(append(cut, "0\r\n\r\n")...)) }()
	got := c.hear("Trailer-A: 1\r\n\r\n")
	assert.Greater(t, len(got), len(body))
	assert.Less(t, there.Load(), int64(len(body)/2))
	assert.Less(t, back.Load(), int64(len(body)/2))
}

// metered counts the bytes of a connection.
type metered struct {
	net.Conn
	wrote, read *atomic.Int64
}

func (m metered) Write(p []byte) (int, error) {
	n, err := m.Conn.Write(p)
	m.wrote.Add(int64(n))
	return n, err
}

func (m metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	m.read.Add(int64(n))
	return n, err
}

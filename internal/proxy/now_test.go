package proxy_test

import (
	"bytes"
	"context"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/netconn"
)

// fourConns puts a wrapper around each kind of connection of a pair: those of clients, of the
// stream at either end, and those to the server.
func fourConns(t *testing.T, o *origin, wrap func(kind string, conn net.Conn) net.Conn) (near end) {
	t.Helper()
	of := func(kind string) func(net.Conn) net.Conn {
		return func(conn net.Conn) net.Conn { return wrap(kind, conn) }
	}
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.WrapAccepted = of("far stream")
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap("server", conn), nil
		}
	})
	near = startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Listen, c.WrapDialed = wrappingListener{c.Listen, of("client")}, of("near stream")
	})
	near.linked(t)
	return near
}

type wrappingListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrappingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.wrap(conn), nil
}

// handOvers are the kinds of connections that were written to by goroutines that had read others.
type handOvers struct {
	mu   sync.Mutex
	read map[string]map[string]bool // kinds by goroutine
	seen map[string]bool
}

type tracedConn struct {
	net.Conn
	kind string
	all  *handOvers
}

func goroutine() string {
	name := make([]byte, 40)
	name = name[:runtime.Stack(name, false)]
	before, _, _ := bytes.Cut(name, []byte(" [")) // goroutine 12
	return string(before)
}

func (c *tracedConn) NetConn() net.Conn { return c.Conn }

func (c *tracedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	by := goroutine()
	if c.all.read[by] == nil {
		c.all.read[by] = map[string]bool{}
	}
	c.all.read[by][c.kind] = true
	return n, err
}

func (c *tracedConn) TryWrite(p []byte) int {
	c.all.mu.Lock()
	for from := range c.all.read[goroutine()] {
		c.all.seen[from+" to "+c.kind] = true
	}
	c.all.mu.Unlock()
	return netconn.TryWrite(c.Conn, p)
}

// TestWhoReadsWrites: a call that is alone wakes four goroutines, one for each read: who reads the
// client writes to the stream, who reads that to the server, and the same back.
func TestWhoReadsWrites(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	all := handOvers{read: map[string]map[string]bool{}, seen: map[string]bool{}}
	near := fourConns(t, o, func(kind string, conn net.Conn) net.Conn { return &tracedConn{conn, kind, &all} })
	c := connect(t, near.url())
	want := []string{"client to near stream", "far stream to server", "server to far stream", "near stream to client"}
	require.Eventually(t, func() bool { // others may be at work now and then
		for range 10 {
			c.say(post("", envelope))
			c.hear(envelope)
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		for _, w := range want {
			if !all.seen[w] {
				return false
			}
		}
		return true
	}, patience, time.Millisecond)
}

// slowConn takes so many bytes without waiting, and what has the word "hold" in it only when it
// may.
type slowConn struct {
	net.Conn
	takes int
	may   <-chan struct{}
}

func (c *slowConn) NetConn() net.Conn { return c.Conn }

func (c *slowConn) TryWrite(p []byte) int {
	if bytes.Contains(p, []byte("hold")) {
		return 0
	}
	n, _ := c.Conn.Write(p[:min(len(p), c.takes)])
	return n
}

func (c *slowConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("hold")) {
		<-c.may
	}
	return c.Conn.Write(p)
}

// TestRestOfWhatIsTaken: what clients and servers do not take at once comes all the same, in order,
// also the last reply of a connection, and of pipelined calls.
func TestRestOfWhatIsTaken(t *testing.T) {
	reply := string(echoReply(nil, []byte(envelope)))
	for name, takes := range map[string]int{"nothing": 0, "a part": 7} {
		t.Run(name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", server(echoReply))
			near := fourConns(t, o, func(_ string, conn net.Conn) net.Conn {
				return &slowConn{Conn: conn, takes: takes}
			})
			for range 3 { // the second is another client on a used lane
				c := connect(t, near.url())
				for range 20 {
					c.say(post("", envelope))
					assert.Equal(t, reply, c.hear(envelope))
				}
				c.say(post("", envelope) + post("", envelope) + post("", envelope))
				c.hear(strings.Repeat(reply, 3))
				c.say(post("Connection: close\r\n", envelope))
				require.NoError(t, c.CloseWrite())
				assert.Equal(t, reply, c.rest())
			}
		})
	}
}

// TestLateReader: the reader of the stream that looks after a reply which the writer has delivered
// meanwhile finds the next call instead. It waits for no reply, since only it can read that.
func TestLateReader(t *testing.T) {
	const held = "<a>hold</a>"
	begun, may := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if string(entity) == held {
			begun <- struct{}{}
			<-may
		}
		return echoReply(h, entity)
	}))
	near := startProxy(t, "127.0.0.1:0", startProxy(t, "127.0.0.1:0", o.url(), nil).url(), nil)
	near.linked(t)
	c := connect(t, near.url())
	for range 3 {
		c.say(post("", envelope))
		c.hear(envelope)
		c.say(post("", held))
		<-begun
		require.Equal(t, 1, near.Callers())
		looked := make(chan struct{})
		go func() {
			defer close(looked)
			near.CompleteNow()
		}()
		select {
		case <-looked:
		case <-time.After(patience):
			assert.Fail(t, "the reader waits for a reply")
		}
		may <- struct{}{}
		assert.Equal(t, string(echoReply(nil, []byte(held))), c.hear(held))
		<-looked
	}
}

// TestNobodyWaitsForOthersConnections: a client, or a server, that takes nothing holds up nobody
// else on the stream.
func TestNobodyWaitsForOthersConnections(t *testing.T) {
	const held = "<a>hold</a>"
	for _, slow := range []string{"client", "server"} {
		t.Run(slow, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", server(echoReply))
			may := make(chan struct{})
			near := fourConns(t, o, func(kind string, conn net.Conn) net.Conn {
				if kind != slow {
					return conn
				}
				return &slowConn{conn, 1 << 20, may}
			})
			one, other := connect(t, near.url()), connect(t, near.url())
			for _, c := range []*client{one, other} {
				c.say(post("", envelope))
				c.hear(envelope)
			}
			one.say(post("", held))
			for range 20 {
				other.say(post("", envelope))
				other.hear(envelope)
			}
			one.say(post("", envelope)) // it waits for its turn
			close(may)
			one.hear(string(echoReply(nil, []byte(held))) + string(echoReply(nil, []byte(envelope))))
		})
	}
}

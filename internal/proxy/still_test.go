package proxy_test

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
)

// stillLink is a link that can stand still: then its connections pass on nothing that is written,
// and nothing that has come. They stay open.
type stillLink struct {
	mu      sync.Mutex
	moves   chan struct{} // closed unless the link stands still
	writing int           // writes that wait
	conns   []*stillConn
}

func newStillLink() *stillLink {
	l := &stillLink{moves: make(chan struct{})}
	close(l.moves)
	return l
}

// stop makes the link stand still; what is being written at that moment still arrives.
func (l *stillLink) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moves = make(chan struct{})
}

// goOn ends that.
func (l *stillLink) goOn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.moves)
}

// cut breaks its connections.
func (l *stillLink) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		_ = c.Close()
	}
}

// blocked is the number of writes that wait.
func (l *stillLink) blocked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writing
}

// wrap is a [proxy.Config.WrapDialed].
func (l *stillLink) wrap(conn net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &stillConn{Conn: conn, link: l, closed: make(chan struct{})}
	l.conns = append(l.conns, c)
	return c
}

// pass waits until the link moves, or the connection is closed; by: its share of the writes that
// wait.
func (l *stillLink) pass(c *stillConn, by int) {
	l.mu.Lock()
	moves := l.moves
	l.writing += by
	l.mu.Unlock()
	select {
	case <-moves:
	case <-c.closed:
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writing -= by
}

// stillConn is a connection over such a link.
type stillConn struct {
	net.Conn
	link   *stillLink
	once   sync.Once
	closed chan struct{}
}

func (c *stillConn) NetConn() net.Conn { return c.Conn }

func (c *stillConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.link.pass(c, 0)
	return n, err
}

func (c *stillConn) Write(p []byte) (int, error) {
	c.link.pass(c, 1)
	return c.Conn.Write(p)
}

func (c *stillConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// TestPipelinedBehindWhatIsNotSent: of pipelined calls on a stream that ends before anything of
// them is sent, one has a body that is not held any more. Its client is told so, and all of them
// end: none is left in progress, on the lane or in the counts.
func TestPipelinedBehindWhatIsNotSent(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	thin, m := newStillLink(), meter.New(time.Now())
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Meter, c.WrapDialed = m, thin.wrap
	})
	near.linked(t)
	inProgress := func(n int64) {
		t.Helper()
		eventually(t, m, "near", far.url().String(), func(u *meter.UpstreamCounts) bool { return u.InProgress == n })
	}
	thin.stop()
	ahead := connect(t, near.url()) // its call is being written, which may have sent something of it
	ahead.say(ask("h", "/ahead"))
	require.Eventually(t, func() bool { return thin.blocked() > 0 }, patience, time.Millisecond)
	c, late := connect(t, near.url()), strings.Replace(ask("h", "/late"), "text/xml", "text/plain", 1)
	c.say(ask("h", "/first") + late[:len(late)-1])
	inProgress(3)
	c.say(late[len(late)-1:] + ask("h", "/third") + ask("h", "/fourth"))
	inProgress(5)
	thin.cut()
	thin.goOn()
	assert.Contains(t, c.rest(), "the connection to the far proxy ended; the request was not sent")
	require.NoError(t, ahead.Close())
	inProgress(0)
	u := countsOf(m, "near")[far.url().String()]
	assert.GreaterOrEqual(t, u.Failed, int64(4))
	assert.Equal(t, u.Calls, u.Failed)
	for _, got := range o.received() {
		assert.Contains(t, got, "/ahead")
	}
}

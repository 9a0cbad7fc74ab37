package pcapng

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/netconn"
)

// maxQueued is how many packets may wait for whoever listens, each of at most [maxSegment] bytes.
const maxQueued = 1024

var (
	// ErrListening reports that somebody listens to a tap already.
	ErrListening = errors.New("somebody listens already")
	// ErrSlow reports that more passed than was taken.
	ErrSlow = errors.New("more passed than was taken")
)

// Tap records connections while somebody listens, from then on. It is safe for concurrent use; the
// zero value is ready.
type Tap struct {
	current atomic.Pointer[Recorder]

	mu    sync.Mutex
	end   chan struct{} // closed by Finish; nil: nobody listens
	ended chan struct{} // closed when whoever listens has all
}

// Finish has whoever listens get what passed until now, and no more. It waits for that as long as
// the context allows.
func (t *Tap) Finish(ctx context.Context) {
	t.mu.Lock()
	end, ended := t.end, t.ended
	t.end = nil
	t.mu.Unlock()
	if end == nil {
		return
	}
	close(end)
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// listening notes that somebody does, until done is called.
func (t *Tap) listening() (end <-chan struct{}, done func()) {
	ending, ended := make(chan struct{}), make(chan struct{})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end, t.ended = ending, ended
	return ending, func() {
		t.mu.Lock()
		t.end = nil
		t.mu.Unlock()
		t.current.Store(nil)
		close(ended)
	}
}

// Listen writes a recording of what passes from now on to w, until ctx ends, [Tap.Finish] is
// called, w fails, or takes it too slowly ([ErrSlow]). begun is called when everything is recorded
// from then on, flush when nothing more is at hand. One listens at a time: otherwise it is
// [ErrListening].
func (t *Tap) Listen(ctx context.Context, w io.Writer, begun, flush func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	q := make(tapQueue, maxQueued)
	r := NewRecorder(q, nil)
	r.OnFailure = func(error) { cancel(ErrSlow) }
	if !t.current.CompareAndSwap(nil, r) {
		return ErrListening
	}
	end, done := t.listening()
	defer done()
	begun()
	for {
		select {
		case b := <-q:
			if _, err := w.Write(b); err != nil {
				return err
			}
			if len(q) == 0 {
				flush()
			}
		case <-end:
			for len(q) > 0 {
				if _, err := w.Write(<-q); err != nil {
					return err
				}
			}
			flush()
			return nil
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), ErrSlow) {
				return ErrSlow
			}
			return nil
		}
	}
}

// tapQueue is what waits for whoever listens.
type tapQueue chan []byte

// Write never waits: what is recorded goes on.
func (q tapQueue) Write(b []byte) (int, error) {
	select {
	case q <- append([]byte(nil), b...):
		return len(b), nil
	default:
		return 0, ErrSlow
	}
}

// Conn is c, which this end opened, and which is recorded while somebody listens.
func (t *Tap) Conn(c net.Conn) net.Conn { return &tappedConn{Conn: c, tap: t, opened: true} }

// Accepted is [Tap.Conn] for one that the peer opened.
func (t *Tap) Accepted(c net.Conn) net.Conn { return &tappedConn{Conn: c, tap: t} }

// tappedConn is a connection that is recorded while somebody listens.
type tappedConn struct {
	net.Conn
	tap    *Tap
	opened bool

	mu sync.Mutex
	as *RecordedConn // while somebody listened last
}

// recorded is the connection as it is recorded now; nil: nobody listens.
func (c *tappedConn) recorded() *RecordedConn {
	r := c.tap.current.Load()
	if r == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.as == nil || c.as.rec != r {
		c.as = r.record(c.Conn, c.opened)
	}
	return c.as
}

// Read implements [net.Conn].
func (c *tappedConn) Read(b []byte) (int, error) {
	n, err := netconn.Read(c.Conn, b)
	if n > 0 {
		if as := c.recorded(); as != nil {
			as.came(b[:n])
		}
	}
	return n, err
}

// Write implements [net.Conn]. What is written is recorded before anything that answers it.
func (c *tappedConn) Write(b []byte) (int, error) {
	if as := c.recorded(); as != nil {
		as.rec.mu.Lock()
		as.data(as.out, as.in, b)
		as.rec.mu.Unlock()
	}
	return netconn.Write(c.Conn, b)
}

// TryWrite is that of [netconn.Conn]. While somebody listens it writes nothing.
func (c *tappedConn) TryWrite(b []byte) int {
	if c.tap.current.Load() != nil {
		return 0
	}
	return netconn.TryWrite(c.Conn, b)
}

// CloseWrite ends this end's direction, if the connection can do that alone.
func (c *tappedConn) CloseWrite() error {
	c.end(false)
	return netconn.CloseWrite(c.Conn)
}

// Close implements [net.Conn].
func (c *tappedConn) Close() error {
	c.end(false)
	return c.Conn.Close()
}

// Abort implements [netconn.Aborter].
func (c *tappedConn) Abort() error {
	c.end(true)
	return netconn.Abort(c.Conn)
}

func (c *tappedConn) end(reset bool) {
	if as := c.recorded(); as != nil {
		as.end(as.out, as.in, reset)
	}
}

// NetConn is the connection below.
func (c *tappedConn) NetConn() net.Conn { return c.Conn }

package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// linkConn is one end of a connection.
type linkConn struct {
	link          *Link
	in, out       *flow
	local, remote net.Addr

	reading, writing connDeadline
	// writes serializes Writes.
	writes sync.Mutex
	once   sync.Once
}

// Read implements [net.Conn].
func (c *linkConn) Read(p []byte) (int, error) {
	n, err := c.in.read(c.reading.context(), p)
	return n, c.fault("read", err)
}

// Write implements [net.Conn]. It returns when all is queued.
func (c *linkConn) Write(p []byte) (int, error) {
	c.writes.Lock()
	defer c.writes.Unlock()
	n, err := c.out.write(c.writing.context(), p)
	return n, c.fault("write", err)
}

func (c *linkConn) fault(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &net.OpError{Op: op, Net: "link", Source: c.local, Addr: c.remote, Err: err}
}

// CloseWrite ends the writing direction; the peer reads io.EOF after what was written.
func (c *linkConn) CloseWrite() error {
	c.writing.close()
	c.out.end()
	return nil
}

// Close implements [net.Conn]. What was written still arrives.
func (c *linkConn) Close() error {
	c.once.Do(func() {
		c.reading.close()
		c.writing.close()
		c.out.end()
		c.in.deafen(c.out.way)
		c.link.mu.Lock()
		delete(c.link.conns, c)
		c.link.mu.Unlock()
	})
	return nil
}

// LocalAddr implements [net.Conn].
func (c *linkConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *linkConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements [net.Conn]. Deadlines are times of the machine's clock, whatever clock the
// link waits on.
func (c *linkConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (c *linkConn) SetReadDeadline(t time.Time) error { return c.fault("set", c.reading.set(t)) }

// SetWriteDeadline implements [net.Conn].
func (c *linkConn) SetWriteDeadline(t time.Time) error { return c.fault("set", c.writing.set(t)) }

// connDeadline bounds the waits of one direction of an end.
type connDeadline struct {
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	closed bool
}

// context is done when the deadline is over, or the direction closed.
func (d *connDeadline) context() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.contextLocked()
}

func (d *connDeadline) contextLocked() context.Context {
	if d.ctx == nil {
		d.ctx, d.cancel = context.WithCancelCause(context.Background())
	}
	return d.ctx
}

// set moves the deadline; a zero t removes it. Waits in progress use the new one.
func (d *connDeadline) set(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return net.ErrClosed
	}
	// A timer that fired, or is about to, has the old context.
	late := d.timer != nil && !d.timer.Stop()
	d.timer = nil
	if late || d.contextLocked().Err() != nil {
		d.ctx, d.cancel = context.WithCancelCause(context.Background())
	}
	if t.IsZero() {
		return nil
	}
	cancel := d.cancel
	if wait := time.Until(t); wait > 0 {
		d.timer = time.AfterFunc(wait, func() { cancel(os.ErrDeadlineExceeded) })
		return nil
	}
	cancel(os.ErrDeadlineExceeded)
	return nil
}

func (d *connDeadline) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	d.closed = true
	if d.timer != nil {
		d.timer.Stop()
	}
	if d.contextLocked().Err() != nil {
		d.ctx, d.cancel = context.WithCancelCause(context.Background())
	}
	d.cancel(net.ErrClosed)
}

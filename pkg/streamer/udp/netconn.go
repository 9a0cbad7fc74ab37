package udp

import (
	"errors"
	"io"
	"net"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/window"
)

func (c *conn) fault(op string, err error) error {
	var own *net.OpError // of the dial
	if err == nil || errors.Is(err, io.EOF) || errors.As(err, &own) {
		return err
	}
	return &net.OpError{Op: op, Net: "udp", Source: c.local, Addr: c.remote, Err: err}
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.fault("read", net.ErrClosed)
		case c.reading.over():
			return 0, c.fault("read", os.ErrDeadlineExceeded)
		case len(c.inbox) > 0:
			return c.consume(p), nil
		case c.readErr != nil:
			return 0, c.fault("read", c.readErr)
		case len(p) == 0:
			return 0, nil
		}
		if err := c.await(&c.reading); err != nil {
			return 0, c.fault("read", err)
		}
	}
}

// consume fills p.
func (c *conn) consume(p []byte) (n int) {
	for n < len(p) && len(c.inbox) > 0 {
		first := &c.inbox[0]
		some := copy(p[n:], first.bytes)
		n += some
		first.bytes = first.bytes[some:]
		c.inboxed -= some
		if first.number == 0 {
			c.unread -= some
		}
		if len(first.bytes) == 0 {
			number := first.number
			c.inbox = c.inbox[1:]
			c.commit(number)
		}
	}
	c.settle()
	c.count()
	return n
}

// commit is done with a message, if it is not yet.
func (c *conn) commit(number uint64) {
	if number != 0 {
		_ = c.step(arq.Event{Kind: arq.Committed, Number: number}) // refused when the sequence was broken off
	}
}

// settle commits what was delivered, as far as there is room; all of it when nobody will read it.
func (c *conn) settle() {
	if c.settling {
		return // a commit came here
	}
	c.settling = true
	defer func() { c.settling = false }()
	for i := 0; i < len(c.inbox); i++ {
		a := &c.inbox[i]
		if a.number == 0 {
			continue
		}
		if !c.closed && c.unread+len(a.bytes) > hold {
			return
		}
		number := a.number
		a.number = 0
		c.unread += len(a.bytes)
		c.commit(number)
	}
	if c.closed {
		c.inbox, c.inboxed = nil, 0
	}
}

// Write implements [net.Conn]. It returns when all is accepted, and waits while too much is not
// acknowledged.
func (c *conn) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) {
		size := min(chunk, len(p)-n)
		message := append([]byte(nil), p[n:n+size]...) // the engine keeps it
		if err := c.accept(message); err != nil {
			return n, err
		}
		n += size
	}
	return n, nil
}

// accept has the engine take a message, and waits while there is no room for it. The caller has mu.
func (c *conn) accept(message []byte) error {
	for {
		switch {
		case c.closed:
			return c.fault("write", net.ErrClosed)
		case c.writing.over():
			return c.fault("write", os.ErrDeadlineExceeded)
		case c.left:
			return c.fault("write", c.sendErr)
		case c.sendErr != nil:
			return c.fault("write", io.ErrClosedPipe)
		}
		err := c.step(arq.Event{Kind: arq.Send, Message: message})
		if err == nil {
			return nil
		}
		if !errors.Is(err, &window.Error{Code: window.Full}) {
			return c.fault("write", err)
		}
		if err := c.await(&c.writing); err != nil {
			return c.fault("write", err)
		}
	}
}

// CloseWrite ends the writing direction; the peer reads io.EOF after what was written.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	_ = c.step(arq.Event{Kind: arq.Close}) // refused if it ended before
	return nil
}

// Close implements [net.Conn]. It waits until the peer has all that was written, and says so,
// at most for the linger time; what comes from there is not read any more.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	c.closed = true
	c.changedLocked()
	c.settle()
	_ = c.step(arq.Event{Kind: arq.Close})
	timer := c.cfg.Clock.NewTimer(c.cfg.Linger)
	defer timer.Stop()
	for late := false; c.sendErr == nil && !late; {
		changed := c.changed
		c.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C():
			late = true
		}
		c.mu.Lock()
	}
	c.leave()
	return nil
}

// Abort ends the connection at once: nothing that was written is waited for, and the peer
// learns that nobody listens any more.
func (c *conn) Abort() error {
	c.drop()
	return nil
}

// Await is told whether the peer owes a reply: then a silent one is found out sooner (see
// [Config.Unanswered]).
func (c *conn) Await(reply bool) {
	kind := arq.Rest
	if reply {
		kind = arq.Await
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.step(arq.Event{Kind: kind}) // nothing is awaited of a connection that was left
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn]. That of an accepted connection changes when the peer
// moves.
func (c *conn) RemoteAddr() net.Addr {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.remote
}

// SetDeadline implements [net.Conn].
func (c *conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (c *conn) SetReadDeadline(t time.Time) error { return c.set(&c.reading, t) }

// SetWriteDeadline implements [net.Conn].
func (c *conn) SetWriteDeadline(t time.Time) error { return c.set(&c.writing, t) }

func (c *conn) set(d *deadline, t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fault("set", net.ErrClosed)
	}
	d.set(t)
	c.changedLocked() // callers that wait go on waiting for the new one
	return nil
}

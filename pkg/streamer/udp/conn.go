package udp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// conn is one connection.
type conn struct {
	cfg           Config
	local, remote net.Addr
	id, nonce     uint64
	write         func([]byte) // sends a datagram
	gone          func()       // lets go of it when it is over

	mu       sync.Mutex
	engine   *wsrm.Engine
	timer    clock.Timer
	packet   wsrm.Packet
	out      []byte
	heard    bool // of this session: no need to open it any more
	inbox    []arrival
	unread   int // octets of it that are committed
	settling bool
	readErr  error // behind the inbox
	sendErr  error
	closed   bool
	left     bool
	changed  chan struct{} // closed at every change

	reading, writing deadline
}

// arrival is a message that was delivered. It is committed at once, or when it was read if too much waits for that: then the other end soon waits too.
type arrival struct {
	number uint64 // 0: it is committed
	octets []byte
}

func newConn(cfg Config, id, nonce uint64, rtt time.Duration) (*conn, error) {
	e, err := wsrm.New(cfg.sequences(rtt))
	if err != nil {
		return nil, err
	}
	c := &conn{cfg: cfg, id: id, nonce: nonce, engine: e, changed: make(chan struct{}), reading: newDeadline(), writing: newDeadline()}
	return c, nil
}

// step has something happen to the engine, and does what it wants. The caller has mu.
func (c *conn) step(ev wsrm.Event) (refused error) {
	if c.left {
		return net.ErrClosed
	}
	for again := true; again && !c.left; ev = (wsrm.Event{Kind: wsrm.Wake}) {
		again = false
		now := c.cfg.Clock.Now()
		actions, err := c.engine.Step(now, ev)
		if ev.Kind != wsrm.Wake {
			refused = err
		}
		for _, a := range actions {
			again = c.do(a, now) || again
		}
		c.settle()
	}
	return refused
}

// do does one action; true: the engine is to be woken at once.
func (c *conn) do(a wsrm.Action, now time.Time) (wake bool) {
	switch a.Kind {
	case wsrm.Transmit:
		c.out = Codec.Append(c.header(c.out[:0]), a.Packet)
		c.write(c.out)
	case wsrm.WakeAt:
		return c.alarm(a.At, now)
	case wsrm.Deliver:
		c.inbox = append(c.inbox, arrival{a.Number, append([]byte(nil), a.Message...)})
		c.changedLocked()
	case wsrm.Acknowledged:
		c.changedLocked()
	case wsrm.Ended:
		c.ended(a)
	case wsrm.Lost, wsrm.Unknown, wsrm.Unsent:
		// Ended says it for the connection as a whole.
	}
	return false
}

func (c *conn) header(dst []byte) []byte {
	if c.nonce != 0 && !c.heard {
		return appendNumbers(dst, Open, c.id, c.nonce)
	}
	return appendNumbers(dst, Data, c.id)
}

// alarm sets the timer; true: it is due.
func (c *conn) alarm(at, now time.Time) bool {
	if c.timer != nil {
		c.timer.Stop()
		c.timer = nil
	}
	if at.IsZero() {
		return false
	}
	if !at.After(now) {
		return true
	}
	c.timer = c.cfg.Clock.AfterFunc(at.Sub(now), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.step(wsrm.Event{Kind: wsrm.Wake})
	})
	return false
}

func (c *conn) ended(a wsrm.Action) {
	err := error(io.EOF)
	if a.Reason != wsrm.Complete {
		err = fmt.Errorf("sequence ended: %v: %w", a.Reason, io.ErrUnexpectedEOF)
	}
	if a.Remote {
		c.readErr = err
	} else {
		c.sendErr = err
	}
	c.changedLocked()
}

// changedLocked wakes all that wait.
func (c *conn) changedLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// await waits for a change, or the deadline. The caller has mu, which is free meanwhile.
func (c *conn) await(d *deadline) error {
	changed, done := c.changed, d.done
	c.mu.Unlock()
	defer c.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-done:
		return os.ErrDeadlineExceeded
	}
}

// receive takes in a packet.
func (c *conn) receive(packet []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left || Codec.Parse(packet, &c.packet) != nil {
		return
	}
	c.heard = true
	_ = c.step(wsrm.Event{Kind: wsrm.Arrived, Packet: &c.packet}) // what breaks a rule is dropped
}

func (c *conn) fault(op string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
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
		some := copy(p[n:], first.octets)
		n += some
		first.octets = first.octets[some:]
		if first.number == 0 {
			c.unread -= some
		}
		if len(first.octets) == 0 {
			number := first.number
			c.inbox = c.inbox[1:]
			c.commit(number)
		}
	}
	c.settle()
	return n
}

// commit is done with a message, if it is not yet.
func (c *conn) commit(number uint64) {
	if number != 0 {
		_ = c.step(wsrm.Event{Kind: wsrm.Committed, Number: number}) // refused when the sequence was broken off
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
		if !c.closed && c.unread+len(a.octets) > hold {
			return
		}
		number := a.number
		a.number = 0
		c.unread += len(a.octets)
		c.commit(number)
	}
	if c.closed {
		c.inbox = nil
	}
}

// Write implements [net.Conn]. It returns when all is accepted, and waits while too much is not acknowledged.
func (c *conn) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(p) {
		size := min(chunk, len(p)-n)
		message := append([]byte(nil), p[n:n+size]...) // the engine keeps it
		for {
			switch {
			case c.closed:
				return n, c.fault("write", net.ErrClosed)
			case c.writing.over():
				return n, c.fault("write", os.ErrDeadlineExceeded)
			case c.sendErr != nil:
				return n, c.fault("write", io.ErrClosedPipe)
			}
			err := c.step(wsrm.Event{Kind: wsrm.Send, Message: message})
			if err == nil {
				break
			}
			if !errors.Is(err, &wsrm.Error{Code: wsrm.Full}) {
				return n, c.fault("write", err)
			}
			if err := c.await(&c.writing); err != nil {
				return n, c.fault("write", err)
			}
		}
		n += size
	}
	return n, nil
}

// CloseWrite ends the writing direction; the other end reads io.EOF behind what was written.
func (c *conn) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	_ = c.step(wsrm.Event{Kind: wsrm.Close}) // refused if it ended before
	return nil
}

// Close implements [net.Conn]. It waits until the other end has all that was written, and says so, at most for the linger time; what comes from there is not read any more.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.fault("close", net.ErrClosed)
	}
	c.closed = true
	c.changedLocked()
	c.settle()
	_ = c.step(wsrm.Event{Kind: wsrm.Close})
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

// leave is the end of a connection: the other end is told, once, that nobody listens any more.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	if c.readErr == nil || c.sendErr == nil {
		c.write(unknown(appendNumbers(nil, Data, c.id)))
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	c.inbox = nil
	c.gone()
}

// unknown appends a packet that says that there is no such session.
func unknown(dst []byte) []byte {
	return Codec.Append(dst, &wsrm.Packet{HasAck: true, Ack: wsrm.Ack{Unknown: true}})
}

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return c.remote }

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
	c.changedLocked() // who waits waits for the new one
	return nil
}

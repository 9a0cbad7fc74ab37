package udp

import (
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/clock"
)

// conn is one connection.
type conn struct {
	cfg       Config
	local     net.Addr
	id, nonce uint64
	write     func([]byte, net.Addr) // sends a datagram
	gone      func()                 // lets go of it when it is over
	proven    func()                 // at a listener: notes that the peer's address has shown that it receives
	fresh     atomic.Bool            // nothing was delivered yet

	mu       sync.Mutex
	remote   net.Addr
	proved   uint64 // the last challenge that was answered
	engine   *arq.Endpoint
	timer    clock.Timer
	packet   window.Packet
	out      []byte
	form     datagram.Kind // of the datagrams that packets go in
	early    [][]byte      // packets that went in early datagrams, until there is an answer
	unproved *unproved     // at a listener, until the peer's address has shown that it receives
	inbox    []arrival
	unread   int // bytes of it that are committed
	inboxed  int // bytes of it
	usage    *usage
	counted  int64 // what usage counts of this connection
	settling bool
	readErr  error  // behind the inbox
	peer     string // who opened it, at a listener
	parted   bool   // the peer's sequence ended
	sendErr  error
	closed   bool
	left     bool
	final    Stats         // when left
	changed  chan struct{} // closed at every change

	reading, writing deadline
}

// arrival is a message that was delivered. It is committed at once, or when it was read if too much
// waits for that: then the peer soon waits too.
type arrival struct {
	number uint64 // 0: it is committed
	bytes  []byte
}

// newConn makes a connection whose packets go in datagrams of a form at first.
func newConn(cfg Config, remote net.Addr, form datagram.Kind, id, nonce uint64, rtt time.Duration) (*conn, error) {
	e, err := arq.New(cfg.sequences(rtt))
	if err != nil {
		return nil, err
	}
	c := &conn{
		cfg: cfg, remote: remote, form: form, id: id, nonce: nonce, engine: e, usage: &usage{}, proven: func() {},
		changed: make(chan struct{}), reading: newDeadline(), writing: newDeadline(),
	}
	c.fresh.Store(true)
	return c, nil
}

// step has something happen to the engine, and does what it wants. The caller has mu.
func (c *conn) step(ev arq.Event) (refused error) {
	if c.left {
		return net.ErrClosed
	}
	for again := true; again && !c.left; ev = (arq.Event{Kind: arq.Wake}) {
		again = false
		now := c.cfg.Clock.Now()
		actions, err := c.engine.Step(now, ev)
		if ev.Kind != arq.Wake {
			refused = err
		}
		for _, a := range actions {
			again = c.do(a, now) || again
		}
		c.settle()
	}
	c.count()
	if c.readErr == nil && !c.left && c.engine.Complete() {
		c.readErr = io.EOF // its last close frame may never come
		c.changedLocked()
	}
	return refused
}

// do does one action; true: the engine is to be woken at once.
func (c *conn) do(a arq.Instruction, now time.Time) (wake bool) {
	switch a.Kind {
	case arq.Transmit:
		c.transmit(a.Packet)
	case arq.WakeAt:
		return c.alarm(a.At, now)
	case arq.Deliver:
		c.fresh.Store(false)
		c.inboxed += len(a.Message)
		c.inbox = append(c.inbox, arrival{a.Number, append([]byte(nil), a.Message...)})
		c.changedLocked()
	case arq.Acknowledged:
		c.changedLocked()
	case arq.Ended:
		c.ended(a)
	}
	return false
}

// transmit sends a packet.
func (c *conn) transmit(p *window.Packet) {
	c.out = c.header(c.out[:0])
	head := len(c.out)
	c.out = p.Append(c.out)
	if c.form == datagram.Early {
		c.keepEarly(c.out[head:])
	}
	c.send(c.out)
}

// header is what stands before a packet.
func (c *conn) header(dst []byte) []byte {
	switch c.form {
	case datagram.Early:
		return datagram.Append(dst, datagram.Early, c.nonce)
	case datagram.Answer:
		return datagram.Append(dst, datagram.Answer, c.nonce, c.id)
	case datagram.Open:
		return datagram.Append(dst, datagram.Open, c.id, c.nonce)
	default:
		return datagram.Append(dst, datagram.Data, c.id)
	}
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
		_ = c.step(arq.Event{Kind: arq.Wake})
	})
	return false
}

func (c *conn) ended(a arq.Instruction) {
	err := error(io.EOF)
	if a.Reason != arq.Complete {
		err = fmt.Errorf("sequence ended: %v: %w", a.Reason, io.ErrUnexpectedEOF)
	}
	if a.Remote {
		c.readErr, c.parted = err, true
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

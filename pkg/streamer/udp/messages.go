package udp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// MayUnorder tells that [conn.Unorder] is possible.
func (c *conn) MayUnorder() bool { return true }

// Unorder has Read give messages as they become whole from now on, in any order, one behind the other. acknowledged is told whenever the other end has all messages up to one, by the number that WriteMessages gave; it
// must not block, nor call the connection.
func (c *conn) Unorder(acknowledged func(last uint64)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.acknowledged = acknowledged
	_ = c.step(wsrm.Event{Kind: wsrm.Unorder}) // who left reads nothing more
}

// WriteMessages writes the pieces of b that end at ends, the last one at its end: each is one message, of at most 8 192 octets. It returns when all are accepted, and waits while too much is not acknowledged; those accepted
// together share datagrams. n is how many octets were accepted, whole messages; last is the number of the last one.
func (c *conn) WriteMessages(b []byte, ends []int) (n int, last uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.flush()
	for _, end := range ends {
		if end-n > chunk {
			return n, last, c.fault("write", fmt.Errorf("message of %d octets", end-n))
		}
		message := append([]byte(nil), b[n:end]...) // the engine keeps it
		if err := c.accept(message, c.queue); err != nil {
			return n, last, err
		}
		n, last = end, c.engine.Last()
	}
	return n, last, nil
}

// queue has a message sent by the next flush.
func (c *conn) queue(message []byte) error {
	if c.left {
		return net.ErrClosed
	}
	now := c.cfg.Clock.Now()
	actions, err := c.engine.Step(now, wsrm.Event{Kind: wsrm.Send, Message: message})
	for _, a := range actions {
		c.unflushed = c.do(a, now) || c.unflushed
	}
	return err
}

// flush sends what was queued.
func (c *conn) flush() {
	if c.unflushed && !c.left {
		c.unflushed = false
		_ = c.step(wsrm.Event{Kind: wsrm.Wake})
	}
}

// accept has send take a message, and waits while there is no room for it. The caller has mu.
func (c *conn) accept(message []byte, send func(message []byte) error) error {
	for {
		switch {
		case c.closed:
			return c.fault("write", net.ErrClosed)
		case c.writing.over():
			return c.fault("write", os.ErrDeadlineExceeded)
		case c.sendErr != nil:
			return c.fault("write", io.ErrClosedPipe)
		}
		err := send(message)
		if err == nil {
			return nil
		}
		if !errors.Is(err, &wsrm.Error{Code: wsrm.Full}) {
			return c.fault("write", err)
		}
		c.flush()
		if err := c.await(&c.writing); err != nil {
			return c.fault("write", err)
		}
	}
}

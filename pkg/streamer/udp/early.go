package udp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/datagram"
)

// DialEarly is Dial without waiting for an answer: what is written goes along with the question for
// one, so that all takes one round trip, or two if the listener has no capacity to spare. It may
// arrive twice, in two connections: only what the listener's end does not take twice may be
// written. The deadline of ctx, and half a minute, bound the time until there is an answer; without
// one the connection ends with the error that Dial would return.
func DialEarly(ctx context.Context, socket net.PacketConn, remote net.Addr, cfg Config) (net.Conn, error) {
	d := newDialled(socket, remote, cfg)
	c, err := d.connect(datagram.Early, 0, 0)
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = socket.Close()
		return nil, d.fault(err)
	}
	bound, cancel := context.WithoutCancel(ctx), func() {}
	if deadline, ok := ctx.Deadline(); ok {
		bound, cancel = context.WithDeadline(bound, deadline)
	}
	d.wait.Go(d.read)
	d.wait.Go(func() {
		defer cancel()
		_, _, err := d.ask(bound, true)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.DeadlineExceeded // the other one is of whoever has set a deadline on the connection
		}
		if err != nil {
			c.unanswered(d.fault(err))
		}
	})
	return dialledConn{c, d}, nil
}

// unanswered ends a connection that has no answer.
func (c *conn) unanswered(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.form == datagram.Early {
		c.fail(why)
	}
}

// keepEarly keeps a packet that goes in an early datagram, for an answer that says that only an
// open is taken.
func (c *conn) keepEarly(packet []byte) {
	if len(c.early) < maxRepeat { // what is beyond is as good as lost
		c.early = append(c.early, bytes.Clone(packet))
	}
}

// isOf reports whether the connection is the session of an id.
func (c *conn) isOf(id uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.form != datagram.Early && c.id == id
}

// answered takes in an answer. One without a packet is that to an ask.
func (c *conn) answered(g datagram.Datagram, from net.Addr) {
	c.mu.Lock()
	if c.form == datagram.Early && !c.left {
		c.id, c.form = g.Session, datagram.Open
		if len(g.Packet) == 0 {
			c.openAgain()
		}
		c.early = nil
	}
	c.mu.Unlock()
	if len(g.Packet) > 0 && c.isOf(g.Session) {
		c.receive(g, from)
	}
}

// openAgain sends in open datagrams what went in early ones. The caller has mu.
func (c *conn) openAgain() {
	for _, packet := range c.early {
		c.send(append(c.header(nil), packet...))
	}
	if len(c.early) == 0 { // see open
		_ = c.step(arq.Event{Kind: arq.Ask})
	}
}

package udp

import (
	"fmt"
	"io"
	"net"

	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
)

// receive takes in the packet of a datagram. It reports whether it came from another address than
// the one that is known to receive.
func (c *conn) receive(g datagram.Datagram, from net.Addr) (elsewhere bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left || c.packet.Parse(g.Packet) != nil {
		return false
	}
	if g.Kind == datagram.Early {
		c.credit(datagram.EarlyHeader + len(g.Packet))
	} else {
		c.form = datagram.Data // the peer knows the session id
		c.prove(from)
	}
	c.ration()
	_ = c.step(arq.Event{Kind: arq.Arrived, Packet: &c.packet}) // what breaks a rule is dropped
	return !same(from, c.remote)
}

// meet answers a challenge: this end receives at the address where it came from, by a path that may
// be new.
func (c *conn) meet(token uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	c.write(datagram.Append(nil, datagram.Proof, c.id, token), c.remote)
	if token != c.proved {
		c.proved = token
		_ = c.step(arq.Event{Kind: arq.Moved})
	}
}

// move goes on with the peer at an address that it has shown to receive at.
func (c *conn) move(to net.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left || same(to, c.remote) {
		return
	}
	c.remote = to
	c.prove(to)
	_ = c.step(arq.Event{Kind: arq.Moved})
}

// leave is the end of a connection: the peer is told, once, that nobody listens any more.
func (c *conn) leave() {
	if c.left {
		return
	}
	c.left = true
	if c.form == datagram.Open {
		c.form = datagram.Data // nothing is to be opened any more
	}
	if c.form != datagram.Early && (!c.parted || c.sendErr == nil) {
		c.send(unknown(c.header(nil)))
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.unproved != nil {
		c.unproved.late.Stop()
	}
	// Whoever still holds the connection holds little.
	c.final, c.engine, c.packet, c.out, c.inbox, c.early = Stats(c.engine.Stats()), nil, window.Packet{}, nil, nil, nil
	c.inboxed = 0
	c.count()
	c.fresh.Store(false)
	c.gone()
}

// drop makes room for others: nothing came of this connection.
func (c *conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(errDropped)
}

// fail ends a connection with an error. The caller has mu.
func (c *conn) fail(why error) {
	if c.left {
		return
	}
	c.leave()
	c.readErr, c.sendErr = why, why
	c.changedLocked()
}

var errDropped = fmt.Errorf("dropped for others, nothing came: %w", io.ErrUnexpectedEOF)

// unknown appends a packet that says that there is no such session.
func unknown(dst []byte) []byte {
	p := window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}
	return p.Append(dst)
}

// same compares addresses, those of UDP without making texts of them.
func same(a, b net.Addr) bool {
	x, isUDP := a.(*net.UDPAddr)
	y, both := b.(*net.UDPAddr)
	if isUDP && both {
		return x.Port == y.Port && x.Zone == y.Zone && x.IP.Equal(y.IP)
	}
	return a.String() == b.String()
}

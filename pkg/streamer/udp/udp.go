// Package udp is the transport over UDP: connections are reliable sequences (internal/arq), exactly
// once and in order, in both directions. Addresses are host:port.
//
// Datagrams are those of docs/wire-format.md, section 12. A listener sends at most three times what
// came from it to an address that has not shown that it receives, and keeps nothing about it, but
// for a few sessions that early datagrams have opened.
package udp

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/pkg/clock"
)

var _ interface {
	Stats() Stats
	Await(bool)
} = (*conn)(nil)

// Transport dials and listens. The zero value is ready. Connections have CloseWrite, and Stats,
// which gives [Stats]; their Close waits until the peer has all, at most [Transport.Linger];
// and Await(bool), which is told whether a reply is awaited (see [Config.Unanswered]).
type Transport struct {
	Config
	// Through, if given, puts something between a socket that dials and the network: an emulated
	// link. Its socket closes the one it is given.
	Through func(socket net.PacketConn, remote net.Addr) (net.PacketConn, error)
}

// Dial connects to addr: it takes a round trip. The connection goes on from another local address
// when the machine changes networks. It asks again while nobody answers, until ctx is done or half
// a minute is over.
func (t Transport) Dial(ctx context.Context, addr string) (net.Conn, error) {
	socket, remote, err := t.socket(ctx, addr)
	if err != nil {
		return nil, err
	}
	return Dial(ctx, socket, remote, t.Config)
}

// socket is one that speaks to addr.
func (t Transport) socket(ctx context.Context, addr string) (through net.PacketConn, remote net.Addr, err error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "udp", addr)
	if err != nil {
		return nil, nil, err
	}
	remote = c.RemoteAddr()
	// Later by the address, for which nobody needs to be asked.
	socket := &roaming{conn: c, dial: func() (net.Conn, error) { return d.Dial("udp", remote.String()) }}
	through = socket
	if t.Through != nil {
		if through, err = t.Through(through, remote); err != nil {
			_ = socket.Close()
			return nil, nil, err
		}
	}
	return through, remote, nil
}

// DialEarly is Dial by [DialEarly].
func (t Transport) DialEarly(ctx context.Context, addr string) (net.Conn, error) {
	socket, remote, err := t.socket(ctx, addr)
	if err != nil {
		return nil, err
	}
	return DialEarly(ctx, socket, remote, t.Config)
}

// Listen waits for connections at addr; port 0 takes a free one. Connections that were accepted
// outlive the listener.
func (t Transport) Listen(ctx context.Context, addr string) (net.Listener, error) {
	var c net.ListenConfig
	socket, err := c.ListenPacket(ctx, "udp", addr)
	if err != nil {
		return nil, err
	}
	return Listen(socket, t.Config)
}

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.Datagram == 0 {
		c.Datagram = DefaultDatagram
	}
	if c.Linger == 0 {
		c.Linger = defaultLinger
	}
	if c.Inactivity == 0 {
		c.Inactivity = defaultInactivity
	}
	if c.Unanswered == 0 {
		c.Unanswered = min(defaultUnanswered, c.Inactivity)
	}
	if c.Clock == nil {
		c.Clock = clock.Real()
	}
	return c
}

package estimate

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/hhfr/hhfr/internal/inproc"
)

// place is a network in memory, whose time is that of a bubble.
type place struct {
	mu     sync.Mutex
	places map[string]*door
}

// door is one of its listeners.
type door struct {
	addr  net.Addr
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (n *place) listen(addr netip.AddrPort) *door {
	d := &door{net.TCPAddrFromAddrPort(addr), make(chan net.Conn), sync.Once{}, make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.places[addr.String()] = d
	return d
}

// Dial implements [streamer.Transport].
func (n *place) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.dialFrom(ctx, addr, nil)
}

// dialFrom dials from an address; nil: the one that is dialed.
func (n *place) dialFrom(ctx context.Context, addr string, from net.Addr) (net.Conn, error) {
	n.mu.Lock()
	d := n.places[addr]
	n.mu.Unlock()
	here, there := inproc.Pipe(0)
	if from == nil {
		from = d.addr
	}
	select {
	case d.conns <- at{there, from}:
		return at{here, d.addr}, nil
	case <-d.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *place) dial(ctx context.Context, _, addr string) (net.Conn, error) { return n.Dial(ctx, addr) }

// Listen implements [streamer.Transport]; nobody calls it.
func (n *place) Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.ErrUnsupported
}

func (d *door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return c, nil
	case <-d.done:
		return nil, net.ErrClosed
	}
}

func (d *door) Addr() net.Addr { return d.addr }

func (d *door) Close() error {
	d.once.Do(func() { close(d.done) })
	return nil
}

// at is a connection with an address.
type at struct {
	net.Conn
	addr net.Addr
}

func (c at) LocalAddr() net.Addr  { return c.addr }
func (c at) RemoteAddr() net.Addr { return c.addr }
func (c at) CloseWrite() error    { return c.Conn.(interface{ CloseWrite() error }).CloseWrite() }

package accept

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
)

// Probed is a listener that can be asked whether its connections are still served.
type Probed struct {
	net.Listener
	current atomic.Pointer[probe] // nil: none in progress
}

// NewProbed returns l with that ability. A server that takes bytes as they come and closes a
// connection that is broken before its first byte never notices a probe.
func NewProbed(l net.Listener) *Probed { return &Probed{Listener: l} }

// probe is one question.
type probe struct {
	dialed chan struct{} // closed when local is known
	local  string        // of the connection that asks; empty: it could not be opened
}

// errProbe breaks the connection of a probe.
var errProbe = errors.New("a probe, not a client")

// Answers opens a connection to the listener's own address and waits until the program has accepted
// it, read from it and closed it. The error says why that did not happen before ctx is done.
func (p *Probed) Answers(ctx context.Context) error {
	ask := &probe{dialed: make(chan struct{})}
	if !p.current.CompareAndSwap(nil, ask) {
		return errors.New("a probe is in progress")
	}
	defer p.current.Store(nil)
	addr := reachable(p.Addr())
	conn, err := new(net.Dialer).DialContext(ctx, addr.Network(), addr.String())
	if err == nil {
		ask.local = conn.LocalAddr().String()
	}
	close(ask.dialed)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Read(make([]byte, 1))
	if ctx.Err() != nil {
		return fmt.Errorf("%s: a connection was not served: %w", addr, context.Cause(ctx))
	}
	var reset *net.OpError
	if errors.Is(err, io.EOF) || errors.As(err, &reset) {
		return nil // closed
	}
	return fmt.Errorf("%s: a connection was served as a client's: %w", addr, err)
}

// reachable is an address at which a listener's can be dialed from this machine.
func reachable(a net.Addr) net.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok || !t.IP.IsUnspecified() {
		return a
	}
	local := *t
	if local.IP = net.IPv6loopback; t.IP.To4() != nil {
		local.IP = net.IPv4(127, 0, 0, 1)
	}
	return &local
}

// Accept implements [net.Listener].
func (p *Probed) Accept() (net.Conn, error) {
	c, err := p.Listener.Accept()
	if ask := p.current.Load(); err == nil && ask != nil {
		return &asking{c, ask}, nil
	}
	return c, err
}

// asking is a connection that came while a probe was in progress, and may be its.
type asking struct {
	net.Conn
	probe *probe
}

// Read implements [net.Conn].
func (a *asking) Read(b []byte) (int, error) {
	<-a.probe.dialed
	if a.probe.local == a.RemoteAddr().String() {
		return 0, errProbe
	}
	return a.Conn.Read(b)
}

// NetConn is the connection below.
func (a *asking) NetConn() net.Conn { return a.Conn }

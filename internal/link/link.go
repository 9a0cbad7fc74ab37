// Package link is a thin link in the process: a relay of bytes that delays and paces them like a
// modem does, on an injected clock, so that a slow session can run faster than in real time.
//
// A [Link] relays bytes; a [Path] is for datagrams, and only computes when they arrive.
//
// Each direction of a [Link] sends one packet after another: of at most 1460 bytes, and 40 more for
// its headers; all connections share it. A packet arrives half a round trip after its last byte was
// sent. What waits to be sent is bounded by the profile's queue, shared too; a writer waits while
// it is full. Setting up a connection costs a round trip, and closing one half; neither costs
// bytes. Nothing is lost or reordered. Two runs that write the same at the same times have the same
// figures.
package link

import (
	"context"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// Link joins two ends, near and far. All methods may be called concurrently. The caller must call
// Close.
type Link struct {
	clock   clock.Clock
	profile Profile
	up      *linkDirection // from near to far
	down    *linkDirection

	mu          sync.Mutex
	closed      bool
	conns       map[*linkConn]struct{}
	connections int
	began, last time.Time
	wait        sync.WaitGroup
}

// Relay creates a link. c is the clock it waits on; nil means the machine's clock. Errors:
// BadProfile, and Unsupported for a profile with impairments for datagrams only.
func Relay(c clock.Clock, p Profile) (*Link, error) {
	p, err := p.forConnections()
	if err != nil {
		return nil, err
	}
	if c == nil {
		c = clock.Real()
	}
	return &Link{clock: c, profile: p, up: newWay(c, p), down: newWay(c, p), conns: map[*linkConn]struct{}{}}, nil
}

// Pipe returns the two ends of an established connection. Error: Closed if the link is.
func (l *Link) Pipe() (near, far net.Conn, err error) {
	n, f, err := l.pipe(addr("near"), addr("far"))
	if err != nil {
		return nil, nil, err
	}
	return n, f, nil
}

// addr is an end of a link.
type addr string

func (addr) Network() string  { return "link" }
func (a addr) String() string { return string(a) }

func (l *Link) pipe(local, remote net.Addr) (near, far *linkConn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, &Error{Code: Closed}
	}
	l.connections++
	l.startLocked()
	up, down := newFlow(l, l.up), newFlow(l, l.down)
	near = &linkConn{link: l, in: down, out: up, local: local, remote: remote}
	far = &linkConn{link: l, in: up, out: down, local: remote, remote: local}
	l.conns[near], l.conns[far] = struct{}{}, struct{}{}
	return near, far, nil
}

// startLocked starts the clock of the first connection.
func (l *Link) startLocked() {
	if l.began.IsZero() {
		l.began = l.clock.Now()
		l.last = l.began
	}
}

// arrived notes the time of the last arrival.
func (l *Link) arrived(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at.After(l.last) {
		l.last = at
	}
}

// Dial connects through the link: next opens the connection from its far end on. It takes a round
// trip, and the time of next; ctx bounds it.
func (l *Link) Dial(ctx context.Context, next func(context.Context) (net.Conn, error)) (net.Conn, error) {
	l.mu.Lock()
	l.startLocked()
	l.mu.Unlock()
	if err := l.clock.Sleep(ctx, l.profile.RTT/2); err != nil {
		return nil, err
	}
	beyond, err := next(ctx)
	if slept := l.clock.Sleep(ctx, l.profile.RTT-l.profile.RTT/2); slept != nil && err == nil {
		_ = beyond.Close()
		err = slept
	}
	if err != nil {
		return nil, err
	}
	l.arrived(l.clock.Now())
	if b, ok := beyond.(interface{ SetReadBuffer(int) error }); ok {
		// Otherwise the kernel would read megabytes ahead of the link, and their writer would
		// believe them sent.
		_ = b.SetReadBuffer(receiveBuffer)
	}
	near, far, err := l.pipe(beyond.LocalAddr(), beyond.RemoteAddr())
	if err != nil {
		_ = beyond.Close()
		return nil, err
	}
	if !l.splice(far, beyond) {
		_ = near.Close()
		return nil, &Error{Code: Closed}
	}
	return near, nil
}

// DialContext wraps the function of that name of an http.Transport or a net.Dialer.
func (l *Link) DialContext(next func(ctx context.Context, network, addr string) (net.Conn,
	error)) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return l.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return next(ctx, network, addr) })
	}
}

// Transport is what streams run over; it is the interface of that name in package streamer.
type Transport interface {
	Dial(ctx context.Context, addr string) (net.Conn, error)
	Listen(ctx context.Context, addr string) (net.Listener, error)
}

// Over is a transport whose dialed connections go through the link; listeners are at its far end.
func (l *Link) Over(next Transport) Transport { return over{l, next} }

type over struct {
	link *Link
	Transport
}

// Dial connects through the link.
func (o over) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return o.link.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return o.Transport.Dial(ctx, addr) })
}

// Close breaks all connections and waits for the link's goroutines. It is idempotent.
func (l *Link) Close() error {
	l.mu.Lock()
	l.closed = true
	conns := make([]*linkConn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
	l.wait.Wait()
	return nil
}

// Direction is what one direction carried.
type Direction struct {
	// Bytes are the bytes that were written, Wire those with the headers of their packets.
	Octets, Wire int64
	// Packets is the number of packets.
	Packets int64
	// Busy is how long the line was busy: Wire divided by the bandwidth.
	Busy time.Duration
}

// Stats are the figures of a link.
type Stats struct {
	// Up is from near to far, Down the other direction.
	Up, Down Direction
	// Connections is the number of established connections.
	Connections int
	// Elapsed is the time on the link's clock from the first connection until the last packet
	// arrived.
	Elapsed time.Duration
}

// Stats returns the figures up to now. Packets count when they are queued.
func (l *Link) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Up: l.up.stats(), Down: l.down.stats(), Connections: l.connections, Elapsed: l.last.Sub(l.began)}
}

// Expected is the time that the link's connections take for their bytes and that many round trips,
// if one end always waits for the other.
func (l *Link) Expected(roundTrips int) time.Duration {
	s := l.Stats()
	return s.Up.Busy + s.Down.Busy + time.Duration(roundTrips)*l.profile.RTT
}

// Forward carries the connections that a listener at the near end accepts through the link, to the
// connections that next opens at its far end; if next fails, they are closed. It ends when the
// listener is closed, and returns why. The caller closes the listener before the link.
func (l *Link) Forward(listener net.Listener, next func(context.Context) (net.Conn, error)) error {
	var dialling sync.WaitGroup
	defer dialling.Wait()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		accepted, err := listener.Accept()
		if err != nil {
			return err
		}
		dialling.Go(func() {
			near, err := l.Dial(ctx, next)
			if err != nil {
				_ = accepted.Close()
				return
			}
			if !l.splice(near.(*linkConn), accepted) {
				_ = near.Close()
			}
		})
	}
}

package accept

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/netconn"
)

// Room counts what peers use, such as connections. All methods are safe for concurrent use.
type Room struct {
	// Max is the maximum number in all.
	Max int
	// PerPeer is the maximum for one peer (see [Peer]); 0: any number.
	PerPeer int
	// Log gets a warning when a peer is rejected, and no other until half of the slots are free
	// again; nil: nothing is logged.
	Log *slog.Logger

	mu    sync.Mutex
	n     int
	full  bool // a peer was rejected, and n is above half of Max since
	peers map[string]*held
}

// held is the usage of one peer.
type held struct {
	room *Room
	peer string
	n    int
	full bool
}

// Slot is a slot of a peer in a [Room], for those who keep many. The zero value is none.
type Slot struct {
	by   *held
	left atomic.Bool
}

// Leave gives the slot back; it may be called again, and concurrently.
func (s *Slot) Leave() {
	if s.by != nil && !s.left.Swap(true) {
		s.by.room.leave(s.by)
	}
}

// Enter takes a slot for a peer, to be released by leave, once; false: there is none.
func (r *Room) Enter(addr net.Addr) (leave func(), ok bool) {
	s := new(Slot)
	if !r.Take(s, addr.String()) {
		return nil, false
	}
	return s.Leave, true
}

// Take takes a slot for a peer as s, which is none yet; false: there is none.
func (r *Room) Take(s *Slot, addr string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	peer := Peer(addr)
	h := r.peers[peer]
	if h == nil {
		h = &held{room: r, peer: peer}
	}
	switch {
	case r.n >= r.Max:
		r.refuse(&r.full, addr, r.Max)
		return false
	case r.PerPeer > 0 && peer != "" && h.n >= r.PerPeer:
		r.refuse(&h.full, addr, r.PerPeer)
		return false
	}
	if r.peers == nil {
		r.peers = map[string]*held{}
	}
	r.peers[peer] = h
	h.n++
	r.n++
	s.by = h
	return true
}

// Len is how many slots are taken.
func (r *Room) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

func (r *Room) refuse(full *bool, addr string, limit int) {
	if !*full && r.Log != nil {
		r.Log.Warn("too many connections: further ones are refused", "peer", addr, "limit", limit)
	}
	*full = true
}

func (r *Room) leave(h *held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n--
	r.full = r.full && r.n > r.Max/2
	h.n--
	h.full = h.full && h.n > r.PerPeer/2
	if h.n == 0 {
		delete(r.peers, h.peer)
	}
}

// Peer is the peer that an address counts for: an IPv4 address, or the network of 64 bits of an
// IPv6 address, since a host can have all of that. It is empty for anything but an IP address.
func Peer(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil {
		return ""
	}
	ip := ap.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	network, err := ip.Prefix(64)
	if err != nil {
		return ""
	}
	return network.String()
}

// Limit accepts those connections of l for which room has a slot, until they are closed; others
// are refused (see [Refusals]), in TLS if secure is given. Who accepts handles their TLS in its own
// way.
func Limit(l net.Listener, room *Room, secure *tls.Config) net.Listener {
	limited := &limited{Listener: l, room: room, secure: secure}
	limited.ctx, limited.stop = context.WithCancel(context.Background())
	return limited
}

type limited struct {
	net.Listener
	room     *Room
	secure   *tls.Config // nil: it is not needed
	refusals Refusals
	ctx      context.Context // of the refusals
	stop     context.CancelFunc

	mu     sync.Mutex
	closed bool
	wait   sync.WaitGroup
}

// Accept implements [net.Listener].
func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if leave, ok := l.room.Enter(conn.RemoteAddr()); ok {
			return &guest{conn, leave}, nil
		}
		l.refuse(conn)
	}
}

func (l *limited) refuse(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	leave, ok := l.refusals.Enter(conn.RemoteAddr())
	if !ok || l.closed {
		_ = conn.Close()
		return
	}
	if l.secure != nil {
		conn = tls.Server(conn, l.secure)
	}
	l.wait.Go(func() {
		defer leave()
		Refuse(l.ctx, conn)
	})
}

// Close implements [net.Listener], and ends the refusals.
func (l *limited) Close() error {
	err := l.Listener.Close()
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.stop()
	l.wait.Wait()
	return err
}

// guest is a connection that has a slot.
type guest struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}

// NetConn is the connection below, as for a *tls.Conn.
func (g *guest) NetConn() net.Conn { return g.Conn }

// Read implements [net.Conn].
func (g *guest) Read(b []byte) (int, error) { return netconn.Read(g.Conn, b) }

// Write implements [net.Conn].
func (g *guest) Write(b []byte) (int, error) { return netconn.Write(g.Conn, b) }

// TryWrite writes what the connection below takes at once; see package netconn.
func (g *guest) TryWrite(b []byte) int { return netconn.TryWrite(g.Conn, b) }

// CloseWrite ends the outgoing direction, or the whole connection if that is not possible.
func (g *guest) CloseWrite() error {
	if err := netconn.CloseWrite(g.Conn); !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return g.Close()
}

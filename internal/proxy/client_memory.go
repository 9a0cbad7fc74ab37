package proxy

import (
	"context"
	"crypto/rand"
	"net"
	"net/netip"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

type principals struct {
	mu       sync.Mutex
	registry *principal.Registry
}

func newPrincipals(mode principal.Mode) principals {
	var key [32]byte
	_, _ = rand.Read(key[:]) // never fails
	return principals{registry: principal.NewRegistry(mode, key)}
}

// visitor is a connection of a client: where it is from, whose memory it uses, and what it begins
// with.
type visitor struct {
	principal.Client
	from  principal.Peer
	first nextHead
}

// nextHead is the outcome of waiting for a head, of n bytes.
type nextHead struct {
	h   http1.Head
	n   int
	st  waitResult
	err error
}

func (p *core) nextHead(ctx context.Context, in *sock.Source) (next nextHead) {
	next.h, next.n, next.st, next.err = readHead(ctx, in, p.cfg.Idle, p.cfg.Pause, false)
	return next
}

// visitor waits for the first head of a connection, which says whose memory it uses.
func (u *nearWay) visitor(in *sock.Source) (v visitor) {
	v.first = u.p.nextHead(u.p.ctx, in)
	v.from = peerOf(in.Conn)
	if v.first.st == stateWhole {
		v.Next(u.judge(v.from, &v.first.h, true))
	} else {
		v.Next(principal.Verdict{})
	}
	return v
}

// peerOf is where a connection comes from.
func peerOf(conn net.Conn) (from principal.Peer) {
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		from.Addr = at.Addr()
	}
	if state := httpmsg.TLS(conn); state != nil && len(state.PeerCertificates) > 0 {
		from.Certificate = state.PeerCertificates[0].Raw
	}
	return from
}

// judge says what a request may share; opens: it is the first one of its connection.
func (u *nearWay) judge(from principal.Peer, h *http1.Head, opens bool) principal.Verdict {
	u.principals.mu.Lock()
	v := u.principals.registry.Judge(from, h, opens, u.p.cfg.Clock.Now())
	u.principals.mu.Unlock()
	if v.Emptied {
		u.p.cfg.Log.Debug("an address shows a second proof", "peer", from.Addr, "upstream", u.cfg.Name)
		if l, _ := u.links.Get(); l != nil {
			l.forget(from.Addr.Unmap())
		}
	}
	if v.Proposes {
		u.p.cfg.Log.Warn("clients that open a connection for each call pay for what the one before has said; if "+
			"nothing but one's devices uses this address, --client-per-address saves that", "peer", from.Addr,
			"connections", principal.Manifold, "upstream", u.cfg.Name)
	}
	return v
}

// keeps is the owner of a lane whose connection had this key.
func (u *nearWay) keeps(key principal.Key) principal.Key {
	u.principals.mu.Lock()
	defer u.principals.mu.Unlock()
	if !u.principals.registry.Keeps(key, u.p.cfg.Clock.Now()) {
		return principal.Key{}
	}
	return key
}

// follow judges a further request. If it may be another client's, the calls before it come to their
// ends, and both proxies restart the lane. false: the request cannot go on this lane, or none can.
func (c *caller) follow(h *http1.Head) bool {
	if !c.client.Next(c.l.u.judge(c.client.from, h, false)) {
		return true
	}
	for c.progress.open() > 0 {
		select {
		case <-c.done:
		case <-c.reading.Done():
			return false
		}
	}
	if c.l.stream.Hello().Abilities&changesClients == 0 ||
		c.lane.Send(c.ctx, &streamer.Message{Head: line(change)}) != nil {
		c.readEnd.moves = true // to another lane, and another connection of the upstream
		return false
	}
	c.lane.Restart()
	c.place.owner = principal.Key{}
	return true
}

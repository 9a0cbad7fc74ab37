package proxy

import (
	"context"
	"net"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// carry sends a connection's bytes to the upstream, over a lane if there is a partner, as long as
// its requests stay there. It reports whether the next request goes elsewhere.
func (u *upstream) carry(in *sock.Source, j journey) (moves bool) {
	p := u.p
	if u.sequences != nil {
		return u.sequences.carry(in, j)
	}
	l, err := u.streams.links.Get()
	if wrong := schemeError(err); wrong != nil {
		if said, _ := in.Wait(p.ctx, 0, p.cfg.Silence); http1.LooksLikeStart(said) {
			u.refuse(in, said, reasonOf(err), wrong)
			return false
		}
	}
	if l == nil {
		p.cfg.Log.Debug("plain", "peer", in.Conn.RemoteAddr(), "upstream", u.cfg.Name, "why", err)
		if since := u.streams.links.Trying(); since > slowAttempt {
			u.streams.teller.waiting(since)
		}
		return u.plain.plainly(in, nil, reasonOf(err), j)
	}
	client := u.streams.visitor(in)
	l.await(client.Key)
	place, ok := l.enter(client.Key)
	if !ok {
		return u.plain.plainly(in, nil, plainLane, j)
	}
	return newCaller(l, client, place, in, j).run()
}

// dial opens a connection to the upstream for a lane: over a lane of the next pair, if
// there is one. A tunnel may go to an upstream of another scheme: clients speak TLS to it
// themselves.
func (u *upstream) dial(ctx context.Context, tunnel bool) (net.Conn, error) {
	if u.sequences != nil && !tunnel {
		return u.sequences.dial(), nil
	}
	l, err := u.streams.links.Get()
	if wrong := schemeError(err); wrong != nil && !tunnel {
		return nil, wrong
	}
	if l == nil {
		return u.dialPlain(ctx)
	}
	return u.p.within(func(in *sock.Source) { u.carry(in, journey{whole: true}) }), nil
}

package session

import (
	"cmp"
	"context"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// rememberMet remembers how the session of a stream can be joined again, once its peer has allowed
// it.
func (n *negotiation) rememberMet(hello *streamer.Hello, facts negotiate.Facts) {
	if len(hello.Token) == 0 || hello.Lifetime == 0 {
		return
	}
	facts.Expires, facts.Proxy = n.cfg.Clock.Now().Add(lifetimeOf(hello)), hello.Proxy
	if facts.Transport == negotiate.TransportURI("upgrade") {
		facts.Transport = negotiate.TransportURI(negotiate.OwnTransport(n.url.Scheme == "https"))
	}
	c := &negotiate.Context{Facts: facts, Token: hello.Token, Stages: hello.Stages, Limits: &hello.Limits}
	n.dialer.putMet(context.Background(), n.url, c, nil)
}

// lifetimeOf returns how long the token in a peer's hello is valid.
func lifetimeOf(h *streamer.Hello) time.Duration {
	const most = 10 * 366 * 24 * time.Hour
	return time.Duration(min(h.Lifetime, uint64(most/time.Second))) * time.Second
}

// last has the session of a stream last until that ends, here as at its peer: halfway through its
// lifetime, what is recorded of it is kept for another one.
func (n *negotiation) last() {
	facts := n.agreed.Facts
	hello := n.stream.Hello()
	lifetime := cmp.Or(lifetimeOf(&hello), facts.Expires.Sub(n.cfg.Clock.Now()))
	if lifetime <= 0 {
		<-n.stream.Done()
		return
	}
	timer := n.cfg.Clock.NewTimer(lifetime / 2)
	defer timer.Stop()
	for {
		select {
		case <-n.stream.Done():
			return
		case <-timer.C():
		}
		timer.Reset(lifetime / 2)
		for _, uri := range [...]string{facts.Session.URI(), metURI(n.url)} {
			ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Timeout)
			kept, err := coders.Extend(ctx, n.cfg.Store, uri, facts.Session, n.cfg.Clock.Now(), lifetime)
			if kept != nil {
				err = unchanging.KeepScope(ctx, n.cfg.Store, kept, n.cfg.archived(lifetime))
			}
			cancel()
			if err != nil {
				n.log.Warn("session not kept", "err", err)
			}
		}
	}
}

// watchMet remembers the session of a stream, from when its peer's hello has come; and, when the
// stream ends, what the peer then knows.
func (n *negotiation) watchMet() {
	select {
	case <-n.stream.Met():
	case <-n.stream.Done():
		if !isMet(n.stream) {
			if err := n.stream.Err(); n.met != nil && (isFull(err) || isNobody(err)) {
				n.dialer.putMet(context.Background(), n.url, n.met, ctxstore.If(0))
			}
			return
		}
	}
	hello := n.stream.Hello()
	n.share(&hello)
	n.rememberMet(&hello, n.confirmed(*n.agreed.Facts, &hello))
	n.last()
	if !coders.Learned(n.agreed.Facts.PeerShapes, n.coder) {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.cfg.Timeout)
	defer cancel()
	coders.KeepKnown(ctx, n.cfg.Store, metURI(n.url), n.agreed.Facts.Session, n.cfg.Clock.Now(), n.coder,
		func(err error) {
			n.log.Warn("session not updated", "err", err)
		})
}

package session

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Dial opens one session; see [Dialer.Dial].
func Dial(ctx context.Context, rawURL string, cfg Config) (*Session, error) {
	d, err := NewDialer(cfg)
	if err != nil {
		return nil, err
	}
	return d.Dial(ctx, rawURL)
}

// Dial negotiates with the service at an http or https URL and opens the stream. When the peer does
// not agree, for whatever reason, the session speaks plain SOAP and [Session.Agreed] gives the
// reason. With a sequence the peer is tried for as long as Config.Reconnect allows. ctx bounds Dial
// only.
//
// Errors: BadConfig for a URL that is none; Unreachable when no server is there at all; NoHHFR with
// RequireHHFR; the error of ctx; with an assurance also a *[ctxstore.Error], Held while another
// session has the sequence.
func (d *Dialer) Dial(ctx context.Context, rawURL string) (*Session, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	s, err := d.dial(ctx, u)
	if err != nil || s.outbox == nil || !s.outbox.closed {
		return s, err
	}
	err = s.Finish(ctx)
	_ = s.Close() // the peer may have closed the stream after the sequence
	if err != nil {
		return nil, err
	}
	return d.dial(ctx, u)
}

// dial is Dial for an outbox that may only have a close handshake left to complete.
func (d *Dialer) dial(ctx context.Context, u *url.URL) (*Session, error) {
	if err := d.cfg.suitsMode(u); err != nil {
		return nil, err
	}
	nodes, err := nodesOf(u, d.cfg.Nodes)
	if err != nil {
		return nil, err
	}
	var q *outbox
	if d.cfg.sequenced() {
		if q, err = d.openOutbox(ctx, u); err != nil {
			return nil, sequenceError(err)
		}
	}
	s := &Session{}
	s.init(d, nodes, q)
	s.plainSOAP = plainSOAP{&s.runner, httpmsg.DefaultHeadOf(u), newPlainCalls()}
	n := s.negotiation()
	if q == nil { // a sequence waits for the peer that knows it, whatever that peer spoke before
		err = d.recall(ctx, u)
	}
	if err == nil {
		n, _, err = s.attempt(ctx, false, d.cfg.RequireHHFR)
	}
	if errors.Is(err, errNotAsked) {
		s.step(machine.Postponed{})
		s.agreed.Why, s.agreed.Tried = err.Error(), n.agreed.Tried
		return s, nil
	}
	if s.outbox != nil && (err != nil || ctx.Err() != nil) {
		s.outbox.close()
	}
	switch {
	case ctx.Err() != nil:
		if n.stream != nil {
			n.stream.Abort(streamer.CloseGoingAway, "the caller gave up")
		}
		s.cancel()
		return nil, context.Cause(ctx)
	case err == nil:
		s.begin(n)
		return s, nil
	case isUnreachable(err):
		s.cancel()
		return nil, err
	}
	s.beginPlain(ctx, n, err)
	if d.cfg.RequireHHFR {
		s.cancel()
		n.dropReferrer()
		return nil, s.noHHFR(err)
	}
	return s, nil
}

// beginPlain makes the session speak plain SOAP, for a reason that later sessions remember if it
// lasts.
func (s *Session) beginPlain(ctx context.Context, n *negotiation, why error) {
	s.agreed = n.agreed
	s.agreed.Why = why.Error()
	s.adopt(n)
	refused := refusalOf(why)
	s.step(machine.Refused{Portal: refused.portal})
	s.agreed.Remembered, s.agreed.NoStream = refused.remembered, refused.blocked
	if refused.err != nil && !refused.remembered && !refused.notAsked && !refused.portal && !s.agreed.NoRoom() &&
		(!refused.undecided || !s.cfg.AsksAgain) {
		s.dialer.remember(ctx, s.url, refused)
	}
	s.log.Info("plain SOAP", "why", s.agreed.Why)
	s.tell()
}

// noHHFR returns the error of a session that must not speak plain SOAP.
func (s *Session) noHHFR(why error) error {
	remote := refusalOf(why).err != nil
	if s.cfg.sequenced() {
		why = fmt.Errorf("%w; plain SOAP cannot promise %s", why,
			strings.TrimPrefix(s.dialer.assurance(), negotiate.AssurancePrefix))
	}
	return &negotiate.Error{Code: negotiate.NoHHFR, At: -1, Remote: remote, Err: why, Agreed: &s.agreed}
}

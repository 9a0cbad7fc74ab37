package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Dialer opens sessions. It is safe for concurrent use.
type Dialer struct{ cfg Config }

// NewDialer checks the configuration. Errors: BadConfig.
func NewDialer(cfg Config) (*Dialer, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Dialer{cfg}, nil
}

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

func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, &negotiate.Error{Code: negotiate.BadConfig, At: -1, Err: err}
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return nil, negotiate.BadConfigf("%q is no http or https URL", u.Redacted())
	}
	u.Fragment = ""
	return u, nil
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
	s := newSession(d, nodes)
	if d.cfg.sequenced() {
		if s.outbox, err = d.openOutbox(ctx, u); err != nil {
			s.cancel()
			return nil, sequenceError(err)
		}
	}
	n, err := s.firstStream(ctx)
	if errors.Is(err, errNotAsked) {
		s.fresh = true
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

// suitsMode returns an error if the mode cannot ask for what the configuration needs.
func (c *Config) suitsMode(u *url.URL) error {
	if needs := c.needsOffer(u.Scheme == "https"); c.Mode == negotiate.FirstCall && needs != "" {
		return negotiate.BadConfigf("a first call cannot ask for %s; mode %s or %s can", needs, negotiate.Auto,
			negotiate.Explicit)
	}
	if needs := c.undeclarable(); c.Mode == negotiate.Declared && needs != "" {
		return negotiate.BadConfigf("a description cannot declare %s; mode %s or %s can", needs, negotiate.Auto,
			negotiate.Explicit)
	}
	return nil
}

// firstStream opens the first stream of the session; without a sequence only if it is not
// remembered that the peer speaks plain SOAP.
func (s *Session) firstStream(ctx context.Context) (*negotiation, error) {
	if s.outbox != nil { // a sequence waits for the peer that knows it, whatever that peer spoke before
		return s.retry(ctx, false)
	}
	if err := s.dialer.recall(ctx, s.url); err != nil {
		return s.negotiation(), err
	}
	return s.first(ctx)
}

// beginPlain makes the session speak plain SOAP, for a reason that later sessions remember if it
// lasts.
func (s *Session) beginPlain(ctx context.Context, n *negotiation, why error) {
	s.agreed = n.agreed
	s.agreed.Why, s.plain = why.Error(), true
	s.adopt(n)
	var refused *refusal
	if errors.As(why, &refused) {
		s.agreed.Remembered, s.agreed.NoStream = refused.remembered, refused.blocked
		s.portal = refused.portal
		if !refused.remembered && !refused.notAsked && !refused.portal && !s.agreed.NoRoom() &&
			(!refused.undecided || !s.cfg.AsksAgain) {
			s.dialer.remember(ctx, s.url, refused)
		}
	}
	s.cfg.Log.Info("plain SOAP", "url", loggable(s.url), "why", s.agreed.Why)
	s.tell()
}

// noHHFR returns the error of a session that must not speak plain SOAP.
func (s *Session) noHHFR(why error) error {
	var refused *refusal
	remote := errors.As(why, &refused)
	if s.cfg.sequenced() {
		why = fmt.Errorf("%w; plain SOAP cannot promise %s", why,
			strings.TrimPrefix(s.dialer.assurance(), negotiate.AssurancePrefix))
	}
	return &negotiate.Error{Code: negotiate.NoHHFR, At: -1, Remote: remote, Err: why, Agreed: &s.agreed}
}

// refusal is a reason for plain SOAP that the peer gave, and that is remembered.
type refusal struct {
	err        error
	remembered bool
	passing    bool // it may pass
	portal     bool // it may come from somebody else than the peer, and is passing: it is not remembered
	notAsked   bool // no peer was asked
	unsent     bool // there was no connection to send anything on
	silent     bool // and nobody answered in the time for that
	undecided  bool // the connection ended before an answer, or that is status 503
	// after is how long such an answer asks to wait; 0: it does not say.
	after   time.Duration
	blocked string // the address of the stream that could not be opened
}

// MayPass reports whether [Dialer.Dial] failed for a reason that may pass: the same can be tried
// again.
func MayPass(err error) bool {
	var refused *refusal
	return errors.As(err, &refused) && refused.passing
}

// AskAgain reports whether [Dialer.Dial] failed because the peer has not decided: the connection
// ended before an answer, or that has status 503. after is how long the answer asks to wait
// (Retry-After); 0: it does not say.
func AskAgain(err error) (again bool, after time.Duration) {
	var refused *refusal
	if !errors.As(err, &refused) {
		return false, 0
	}
	return refused.undecided, refused.after
}

// BlockedHint is the advice where [negotiate.Agreed].NoStream is set.
const BlockedHint = "open that port on the path, or let the peer accept streams on an open port (--listen, --tcp)"

// blockedWarning is the log line for it where no caller is told.
const blockedWarning = "plain SOAP: a stream was agreed on and cannot be opened"

// noStream returns the refusal for a stream that was agreed on and could not be opened.
func noStream(addr string, err error) *refusal {
	return &refusal{err: fmt.Errorf("no stream to %s (%w)", addr, cause(err)), passing: true, blocked: addr}
}

// cause returns an error of the network without its address, for texts that name the address
// already.
func cause(err error) error {
	var system *os.SyscallError
	var op *net.OpError
	switch {
	case errors.As(err, &system):
		return system.Err
	case errors.As(err, &op):
		return op.Err
	}
	return err
}

// mayPass reports whether the peer may agree soon: it was not reached, had trouble, or somebody
// else answered. A stream that could not be opened is hardly open soon.
func (r *refusal) mayPass() bool { return r.portal || r.passing && r.blocked == "" }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

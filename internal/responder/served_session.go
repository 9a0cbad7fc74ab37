package responder

import (
	"context"
	"net/url"
	"sync/atomic"
	"weak"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// servedSession is the session that a handler serves.
type servedSession struct {
	agreed keptFacts
	// opener is what to apply to requests; nil: nothing. It is set before the first of them.
	opener *upgradedRequest
	client *remoteClient // of its stream

	made atomic.Pointer[weak.Pointer[sessionInUse]] // nil: it was not used yet
}

// sessionInUse is what is needed of a session while it is in use. It is soon made anew: the next
// garbage collection takes it, since most sessions are idle.
type sessionInUse struct {
	facts    negotiate.Facts
	path     string // that was negotiated
	requests *httpmsg.Requests
	replies  httpmsg.ReplyHeads
}

func newServed(facts *negotiate.Facts) *servedSession { return &servedSession{agreed: keep(facts)} }

// isOnePath reports whether only requests like the first are served.
func (s *servedSession) isOnePath() bool { return s != nil && s.opener != nil && s.opener.onePath }

// use returns what is needed of the session.
func (s *servedSession) use() *sessionInUse {
	if last := s.made.Load(); last != nil {
		if made := last.Value(); made != nil {
			return made
		}
	}
	made := &sessionInUse{facts: s.agreed.facts()}
	made.path, made.requests = unescaped(made.facts.Path), httpmsg.NewRequests(&made.facts)
	kept := weak.Make(made)
	s.made.Store(&kept)
	return made
}

// requests makes requests of the session's messages.
func (s *servedSession) requests() *httpmsg.Requests { return s.use().requests }

// servedKey is the key of the session in the context of a handler.
type servedKey struct{}

// in returns ctx with the session.
func (s *servedSession) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, servedKey{}, s)
}

// servedBy returns the session that a handler with this context serves; nil: none.
func servedBy(ctx context.Context) *servedSession {
	s, _ := ctx.Value(servedKey{}).(*servedSession)
	return s
}

// FactsOf returns the facts of the session that a handler serves, from the context it got; nil if
// the context belongs to no session. They must not be changed.
func FactsOf(ctx context.Context) *negotiate.Facts {
	if s := servedBy(ctx); s != nil {
		return &s.use().facts
	}
	return nil
}

// pathFor returns the path that a message of a session goes to: that of the request target in its
// head, or the negotiated one.
func (s *servedSession) pathFor(head []byte) string {
	if head != nil {
		// A malformed head goes where the session was negotiated; the service there sees it as it
		// is.
		if h, _, err := http1.ParseHead(head, 0); err == nil && !h.IsReply() {
			if u, err := url.ParseRequestURI(string(h.Target())); err == nil {
				return u.Path
			}
		}
	}
	return s.use().path
}

func unescaped(path string) string {
	if p, err := url.PathUnescape(path); err == nil {
		return p
	}
	return path
}

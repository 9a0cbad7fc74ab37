package responder

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"weak"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// dispatch hands exchanges to Serve with their path, or to the Handler.
func (r *Responder) dispatch(served *servedSession) streamer.ExchangeHandler {
	return func(ctx context.Context, x *streamer.Exchange) {
		if r.cfg.serve != nil {
			r.cfg.serve(ctx, served, x)
			return
		}
		r.cfg.Serve(ctx, served.pathFor(x.Message().Head), x)
	}
}

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

// replySchema returns the schema that describes the replies of a session; nil if none does, or a
// shape does.
func (r *Responder) replySchema(ctx context.Context, facts *negotiate.Facts) *schema.Schema {
	if facts.ReplyDescription != "" {
		if c := r.contract(facts.Path, true); c != nil && c.URI() == facts.ReplyDescription {
			return nil // it says more
		}
	}
	if r.cfg.ReplySchema != nil {
		if own := r.cfg.ReplySchema(unescaped(facts.Path)); own != nil {
			return own
		}
	}
	if !strings.HasPrefix(facts.ReplyDescription, schema.URIPrefix) {
		return nil
	}
	entry, err := r.cfg.Store.Get(ctx, facts.ReplyDescription)
	if err != nil {
		r.cfg.Log.Warn("schema of replies not found", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	s, err := schema.Parse(entry.Value)
	if err != nil {
		r.cfg.Log.Warn("schema of replies not read", "schema", facts.ReplyDescription, "err", err)
		return nil
	}
	return s
}

func unescaped(path string) string {
	if p, err := url.PathUnescape(path); err == nil {
		return p
	}
	return path
}

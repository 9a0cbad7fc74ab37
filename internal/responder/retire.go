package responder

import (
	"context"
	"errors"
	"slices"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// forget deletes the contexts of sessions that were dropped: they can no longer be joined.
func (r *Responder) forget(ctx context.Context, gone []dropped) {
	for _, d := range gone {
		if d.revision == 0 {
			continue
		}
		r.drop(ctx, d.id, ctxstore.If(d.revision))
	}
}

// drop deletes the context of a session, if that is still at a revision; nil: at any.
func (r *Responder) drop(ctx context.Context, id negotiate.SessionID, at *uint64) {
	r.dropScope(ctx, id)
	err := r.cfg.Store.Delete(ctx, id.URI(), at)
	// it is gone, or joined again
	if err != nil && !errors.Is(err, ctxstore.NotFound) && !errors.Is(err, ctxstore.Conflict) {
		r.cfg.Log.Warn("context of a session not deleted", "session", id.String(), "err", err)
	}
}

// endedSession is a session whose context is still in the store, with the space that the context
// takes, in contexts without headers.
type endedSession struct {
	id     negotiate.SessionID
	weight int
}

// retire records that a session's stream has ended. Its context stays until it expires, for a peer
// that joins the session again and for decoding a recording; the number of such contexts is
// bounded, unless they are archived.
func (r *Responder) retire(ctx context.Context, id negotiate.SessionID, headers []string) {
	const plain = 1 << 10 // bytes of a context without headers, roughly
	weight := 1
	for _, block := range headers {
		weight += 1 + len(block)/plain
	}
	if !r.registry.remove(id) || r.cfg.Archive {
		return
	}
	r.mu.Lock()
	r.ended = append(r.ended, endedSession{id, weight})
	r.endedWeight += weight
	var oldest []negotiate.SessionID
	for ; len(r.ended) > 1 && r.endedWeight > keptContexts*r.cfg.MaxSessions; r.ended = r.ended[1:] {
		oldest = append(oldest, r.ended[0].id)
		r.endedWeight -= r.ended[0].weight
	}
	r.mu.Unlock()
	for _, id := range oldest {
		r.drop(ctx, id, nil)
	}
}

// unretire records that an ended session is joined again.
func (r *Responder) unretire(id negotiate.SessionID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.ended, func(e endedSession) bool { return e.id == id }); i >= 0 {
		r.endedWeight -= r.ended[i].weight
		r.ended = slices.Delete(r.ended, i, i+1)
	}
}

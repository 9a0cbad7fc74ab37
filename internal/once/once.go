// Package once has requests handled once each, by any of several servers that have a store in
// common: what was answered is answered again from there. Each request is a message of a sequence
// of its own (pkg/wsrm).
package once

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// OnceConfig is what a [OnceFilter] is made of. All fields are required.
type OnceConfig struct {
	Store ctxstore.Store
	// Life is how long a request is remembered after it was handled. Effects in a transaction are
	// for good.
	Life time.Duration
	// Transactional reports whether the service at a path puts its effects into the transaction
	// that it finds in the context that Within makes; others have effects of their own. uri is
	// under which the effects are in the store.
	Transactional func(path string) bool
	Within        func(ctx context.Context, tx *wsrm.Tx, uri string) context.Context
}

// Handle answers a request, nil for no reply. atomic: an error means that nothing has happened.
type Handle = func(ctx context.Context, atomic bool) (reply []byte, err error)

// OnceFilter has requests handled once. It is safe for concurrent use.
type OnceFilter struct{ cfg OnceConfig }

// New makes one.
func New(cfg OnceConfig) *OnceFilter { return &OnceFilter{cfg} }

const (
	// maxReply is how long a reply may be that is recorded, in bytes.
	maxReply = 12 << 20
	// Pauses while another server handles the same request, and how long that is waited for.
	firstPause, longestPause = 50 * time.Millisecond, 2 * time.Second
	patience                 = 30 * time.Second
)

// MaxReply is how long a reply may be that is recorded, in bytes.
func (f *OnceFilter) MaxReply() int { return maxReply }

// Do has handle answer the request with an id, for the service at a path, unless it is answered
// already: then reply is what that was. nil: there is no reply. Without a transaction handle's
// reply is one also when it cannot be recorded. known is false if another server began the request,
// and nobody knows whether it was handled: for 30 s it has not ended. Errors: those of the store
// and, of a transaction, of handle, after which nothing has happened: so it is where a reply in one
// is longer than [OnceFilter.MaxReply].
func (f *OnceFilter) Do(ctx context.Context, id, path string, handle Handle) (
	reply []byte, known bool, err error) {
	sum := sha256.Sum256([]byte(id))
	uri := ctxstore.SequenceURI([16]byte(sum[:16]))
	begun := time.Now()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		r, err := f.open(ctx, uri)
		if err != nil {
			return nil, false, err
		}
		switch {
		case r.begun:
		case r.done:
			return r.reply, true, nil
		case f.cfg.Transactional(path):
			reply, err = r.transact(ctx, f.cfg.Within, handle)
			if !errors.Is(err, ctxstore.Conflict) {
				return reply, true, err
			}
			continue // another server was first
		default:
			reply, err = r.handle(ctx, handle)
			if !errors.Is(err, ctxstore.Conflict) {
				return reply, true, err
			}
			continue
		}
		if time.Since(begun) >= patience {
			return nil, false, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, false, context.Cause(ctx)
		}
	}
}

// onceRequest is what is known of one.
type onceRequest struct {
	engine      *wsrm.Engine
	uri         string
	done, begun bool
	reply       []byte
}

// engineStore is the store of an engine's state.
type engineStore struct {
	OnceFilter
	of *onceRequest
}

// Commit implements [wsrm.Store].
func (s engineStore) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if s.of.done { // who asks for the reply changes nothing
		return expect, nil
	}
	opt := ctxstore.PutOptions{IfRevision: &expect, TTL: s.cfg.Life}
	if len(s.of.engine.Effect()) > 0 {
		opt.TTL = 0
	}
	return s.cfg.Store.Put(ctx, uri, value, opt)
}

// open reads what is known of a request.
func (f *OnceFilter) open(ctx context.Context, uri string) (*onceRequest, error) {
	r := &onceRequest{uri: uri}
	cfg, store := wsrm.Config{Assurance: wsrm.ExactlyOnce, Hold: maxReply}, engineStore{*f, r}
	e, err := f.cfg.Store.Get(ctx, uri)
	switch {
	case errors.Is(err, ctxstore.NotFound):
		r.engine, err = wsrm.New(cfg, store, uri)
	case err == nil:
		r.engine, err = wsrm.Restore(cfg, store, uri, e.Value, e.Revision)
	}
	if err != nil {
		return nil, err
	}
	actions, err := r.step(ctx, wsrm.Event{Kind: wsrm.Connected})
	if err != nil {
		return nil, err
	}
	r.done = r.engine.IsDone(1) // also what was begun
	for _, a := range actions {
		r.begun = r.begun || a.Kind == wsrm.Unknown && a.Remote
	}
	if r.begun || !r.done {
		return r, nil
	}
	// What is sent again is the reply.
	if actions, err = r.engine.Step(ctx, time.Now(), wsrm.Event{Kind: wsrm.Wake}); err != nil {
		return nil, err
	}
	for _, a := range actions {
		if a.Kind == wsrm.Transmit {
			r.reply = append([]byte{}, a.Message...)
		}
	}
	return r, nil
}

func (r *onceRequest) step(ctx context.Context, ev wsrm.Event) ([]wsrm.Action, error) {
	return r.engine.Step(ctx, time.Now(), ev)
}

// first has the engine deliver the request, whose text it need not see.
func (r *onceRequest) first(ctx context.Context) (wsrm.Action, error) {
	actions, err := r.step(ctx, wsrm.Event{Kind: wsrm.Arrived, Number: 1, Message: []byte{}})
	for _, a := range actions {
		if a.Kind == wsrm.Deliver {
			return a, err
		}
	}
	return wsrm.Action{}, errors.Join(err, errors.New("a request that is not handled"))
}

// handlerOnce is a handler with a transaction.
type handlerOnce func(tx *wsrm.Tx) ([]byte, error)

// Deliver implements [wsrm.Handler].
func (h handlerOnce) Deliver(_ context.Context, tx *wsrm.Tx, _ []byte) ([]byte, error) {
	return h(tx)
}

// transact has a request handled in a transaction.
func (r *onceRequest) transact(ctx context.Context, within func(context.Context, *wsrm.Tx, string) context.Context,
	handle Handle) (reply []byte, err error) {
	a, err := r.first(ctx)
	if err != nil {
		return nil, err
	}
	_, err = r.engine.Deliver(ctx, time.Now(), a, handlerOnce(func(tx *wsrm.Tx) ([]byte, error) {
		reply, err = handle(within(ctx, tx, r.uri), true)
		return reply, err
	}))
	if err == nil {
		_, err = r.step(ctx, wsrm.Event{Kind: wsrm.Wake})
	}
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// handle has a request handled that has effects of its own.
func (r *onceRequest) handle(ctx context.Context, handle Handle) ([]byte, error) {
	if _, err := r.first(ctx); err != nil {
		return nil, err
	}
	if _, err := r.engine.Begin(ctx, time.Now(), 1); err != nil {
		return nil, err
	}
	reply, err := handle(ctx, false)
	if err != nil {
		return nil, err
	}
	if _, err := r.step(ctx, wsrm.Event{Kind: wsrm.Committed, Number: 1, Message: reply}); err == nil {
		_, _ = r.step(ctx, wsrm.Event{Kind: wsrm.Wake}) // who asks again hears that it is unknown
	}
	return reply, nil
}

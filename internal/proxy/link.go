package proxy

import (
	"context"
	"errors"
	"sync"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// link is one session as the near end.
type link struct {
	p       *core
	u       *nearWay
	session *session.Session
	stream  *streamer.Stream

	mu      sync.Mutex
	callers map[uint64]*caller
	gone    chan struct{} // closed when a caller has left its lane; nil: nobody waits for that
	vacant  vacant
	tell    clock.Timer       // of tellEnds; nil: none was needed yet
	expire  clock.Timer       // of expireLocked; likewise
	clients map[uint64]uint64 // by lane: how many were there before
	highest uint64

	over   chan struct{} // closed when its stream accepts no further call
	retire func()        // closes over
}

// negotiate opens a session with the upstream; the error says why there is none.
func (u *nearWay) negotiate(ctx context.Context) (*link, error) {
	p := u.p
	l := &link{p: p, u: u, callers: map[uint64]*caller{}, clients: map[uint64]uint64{}, over: make(chan struct{})}
	l.retire = sync.OnceFunc(func() { close(l.over) })
	d, err := session.NewDialer(session.Config{
		Mode: u.cfg.Mode, RequireHHFR: true,
		HTTPClient: u.offering(), Transports: u.transports, Store: p.cfg.Store,
		Archive: p.cfg.Archive, Coders: p.cfg.Coders, Contract: p.cfg.Contract, RequestSchema: p.cfg.Schema,
		AllowHost: u.cfg.AllowHost, AllowCleartext: u.cfg.AllowCleartext, RememberFor: u.cfg.RememberFor,
		AsksAgain: true,
		Timeout:   p.cfg.Timeout,
		Handler:   l.serve, WrapConn: p.cfg.WrapDialed, OnSession: p.cfg.OnSession, Stream: p.cfg.Stream,
		Clock: p.cfg.Clock, Log: p.cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	l.session, err = u.meet(ctx, d)
	var refused *negotiate.Error
	switch {
	case errors.As(err, &refused) && refused.Agreed != nil:
		again, after := session.AskAgain(err)
		return nil, &noSession{*refused.Agreed, again, after}
	case err != nil:
		return nil, err
	}
	l.stream = l.session.Stream()
	if !l.stream.Hello().Proxy {
		_ = l.session.Close()
		return nil, errNoPartner
	}
	p.cfg.Log.Info("session", "session", l.session.Agreed().Facts.Session.String(), "upstream", u.cfg.Name)
	return l, nil
}

// meet opens a session that the upstream has confirmed: a remembered session may no longer be
// valid, and no call must go over a stream that is rejected. Instead, another one is requested.
func (u *nearWay) meet(ctx context.Context, d *session.Dialer) (*session.Session, error) {
	for {
		sess, err := d.Dial(ctx, u.cfg.URL.String())
		if err != nil {
			return nil, err
		}
		stream := sess.Stream()
		select {
		case <-stream.Met():
			return sess, nil
		case <-stream.Done():
			id := sess.Agreed().Facts.Session
			u.p.cfg.Log.Info("session not taken", "session", id.String(), "upstream", u.cfg.Name, "err",
				stream.Err())
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		_ = sess.Close()
		if err != nil {
			return nil, err
		}
	}
}

// Alive reports whether the stream accepts calls.
func (l *link) Alive() bool {
	select {
	case <-l.over:
		return false
	case <-l.stream.Done():
		return false
	default:
		return l.stream.Err() == nil
	}
}

// Wait waits until the stream accepts no further call, or ctx is done.
func (l *link) Wait(ctx context.Context) {
	select {
	case <-l.over:
	case <-l.stream.Done():
	case <-ctx.Done():
	}
}

// Used reports whether anything was sent over the stream.
func (l *link) Used() bool { return l.stream.Stats().Sent.Messages > 0 }

// take makes a caller serve the far end's requests of its lane.
func (l *link) take(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.callers[c.number] = c
}

// drop is for a caller whose connection is over; another one may serve the lane already.
func (l *link) drop(c *caller) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.callers[c.number] == c {
		delete(l.callers, c.number)
	}
}

// serve handles what the far end begins: the report that the upstream has closed while no call was
// in progress.
func (l *link) serve(_ context.Context, x *streamer.Exchange) {
	c, err := parse(x.Message().Head)
	if err != nil || c.kind != ended && c.kind != broken {
		return
	}
	octets, err := x.Message().ReadAll(maxServerInitiated)
	if err != nil {
		return
	}
	l.mu.Lock()
	caller := l.callers[x.Lane()]
	l.mu.Unlock()
	if caller != nil && caller.progress.follows(c.client) {
		caller.over.put(upstreamEnd{broken: c.kind == broken, calls: c.number, octets: octets})
	}
}

// Close ends the session.
func (l *link) Close() error {
	defer l.u.near.Sweep()
	l.mu.Lock()
	for _, timer := range []clock.Timer{l.tell, l.expire} {
		if timer != nil {
			timer.Stop()
		}
	}
	l.mu.Unlock()
	return l.session.Close()
}

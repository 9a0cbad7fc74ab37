package session

import (
	"context"
	cryptotls "crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// unusable is the error why nothing went over a stream that TLS selected. It makes net/http forget
// the connection and send the request over another, as with a connection of HTTP/2 that is over.
type unusable struct{ err error }

func (e *unusable) Error() string {
	return fmt.Sprintf("the stream that TLS selected is of no use: %v", e.err)
}

// Unwrap returns the cause.
func (e *unusable) Unwrap() error { return e.err }

// IsHTTP2NoCachedConnError is the method by which net/http recognizes such errors.
func (e *unusable) IsHTTP2NoCachedConnError() {}

// selected is a connection on which TLS selected streams, for the request that asks. If no such
// request arrives, because it has taken another path meanwhile, the connection is shut after
// selectedIdle.
type selected struct {
	a     *asker
	conn  *cryptotls.Conn
	taken func()    // stops the timer that shuts the connection
	once  sync.Once // the connection is used, or shut
	n     *negotiation
	err   error
}

// selectedIdle is how long a connection waits for its request. The responder waits longer for
// hello.
const selectedIdle = 5 * time.Second

func newSelected(a *asker, conn *cryptotls.Conn) *selected {
	t := &selected{a: a, conn: conn}
	idle := time.AfterFunc(selectedIdle, t.shut)
	stop := context.AfterFunc(a.ctx, t.shut)
	t.taken = func() { idle.Stop(); stop() }
	return t
}

// shut closes a connection that is not used.
func (t *selected) shut() {
	t.once.Do(func() {
		t.err = errors.New("it was not used in time")
		_ = t.conn.Close()
	})
}

// RoundTrip implements [http.RoundTripper].
func (t *selected) RoundTrip(req *http.Request) (*http.Response, error) {
	asking, ok := req.Context().Value(askKey{}).(*ask)
	if !ok {
		t.shut()
		return nil, &unusable{errors.New("the request asks for none")}
	}
	asking.declined.Store(true) // the next connection speaks HTTP
	t.once.Do(func() {
		t.taken()
		t.n, t.err = t.open(req, asking)
	})
	switch {
	case t.err != nil:
		return nil, &unusable{t.err}
	case t.n.stream.Over():
		return nil, &unusable{errors.New("it has ended")}
	case asking.question != nil:
		return synthetic(req), t.met(req.Context(), asking)
	}
	head, err := httpmsg.RequestHead(req)
	if err != nil {
		_ = httpmsg.CloseReader(req.Body)
		return nil, err
	}
	body := httpmsg.Keep(httpmsg.BodyOf(req))
	reply, err := t.n.stream.Lane(0).Call(req.Context(), &streamer.Message{Head: head, Body: body.Reader()})
	if !streamFailed(err, streamer.Unsent) {
		body.Release()
	}
	switch {
	case streamFailed(err, streamer.Unsent):
		// only after the stream has released the body: net/http reads its own
		if again, ok := body.Again(req.Context()); ok {
			_ = httpmsg.CloseReader(again)
		}
		return nil, &unusable{err}
	case err != nil:
		return nil, err
	}
	asking.n, asking.reply = t.n, reply
	return synthetic(req), nil
}

// met waits until it is clear that the peer takes the session.
func (t *selected) met(ctx context.Context, asking *ask) error {
	select {
	case <-t.n.stream.Met():
		asking.n = t.n
		return nil
	case <-t.n.stream.Done():
		return &unusable{t.n.stream.Err()}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// open begins the stream: a first contact with the service that the request is for.
func (t *selected) open(req *http.Request, asking *ask) (*negotiation, error) {
	n := asking.negotiation(t.a.by)
	facts := n.plainFacts(negotiate.NewSessionID(), "tls", portOf(n.url))
	facts.Path = negotiate.PathOf(req.URL)
	n.named = n.cfg.hint() != nil
	n.transport, n.address = facts.Transport, t.conn.RemoteAddr().String()
	ctx := context.WithoutCancel(req.Context())
	cfg, err := n.streamConfig(ctx, &facts, n.named)
	if err != nil {
		_ = t.conn.Close()
		return nil, err
	}
	early := streamer.EarlyLimits
	cfg.Session, cfg.Target, cfg.Early = facts.Session, targetOf(req.URL), &early
	cfg.Description = n.cfg.hint()
	if err := n.over(ctx, t.conn, cfg, &facts, t.conn.RemoteAddr().String()); err != nil {
		return nil, err
	}
	asking.began(t.a.by, n)
	return n, nil
}

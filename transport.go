package hhfr

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/session"
)

// Transport puts hhfr under an unchanged client of net/http. Its SOAP requests go over one session
// for each scheme, host and port. Everything else, and what goes to peers that do not know hhfr, is
// ordinary HTTP, and no request waits for a peer to agree. The zero value works; fields must not be
// changed after the first request. It is an [http.RoundTripper], safe for concurrent use.
//
// A session without requests ends after IdleConnTimeout, and takes no memory from then on, nor does
// a peer that does not know hhfr. The next request begins with what Config.Store remembers, and so
// with a stream. A request lasts until the body of its response is read to its end or closed. A
// session with messages under a guarantee that the service has not taken yet stays.
//
// Errors are *[Error] (in the [net/url.Error] of [http.Client]), also those of the bodies of
// replies. The errors of one request are those of [Client.Call]. When its Timeout is over,
// [http.Client] may replace an error by one of its own, which says nothing of what was sent; with a
// deadline in the context of a request it does not.
type Transport struct {
	// Base carries plain HTTP; nil: one like [http.DefaultTransport], with Config.TLS. With both
	// Base and Config.TLS, requests fail as Invalid.
	Base http.RoundTripper
	// Config configures the sessions. Config.Header goes with SOAP and all other requests, but to
	// no other scheme, host or port that a redirection leads to.
	Config Config
	// IdleConnTimeout is how long a session may go without a request before it ends; 0: 90 seconds,
	// as with [http.DefaultTransport]. Below 0 requests fail as Invalid. It is not for connections
	// of plain HTTP: those close when Base says so, without Base after 5 seconds.
	IdleConnTimeout time.Duration

	once   sync.Once
	below  *session.RoundTripper
	http   *http.Transport // nil: Base
	broken error           // why Config or Base cannot work
	tally  tally
}

// open creates the transport below, once.
func (t *Transport) open() error {
	t.once.Do(func() {
		base := t.Base
		switch {
		case base == nil:
			t.http = t.Config.transport()
			base = t.http
		case t.Config.TLS != nil:
			t.broken = invalid(errors.New("both Base and Config.TLS: set the TLS of Base"))
			return
		}
		if t.IdleConnTimeout < 0 {
			t.broken = invalid(fmt.Errorf("IdleConnTimeout of %v: it cannot be below 0", t.IdleConnTimeout))
			return
		}
		cfg, err := t.Config.session(nil)
		if err == nil {
			cfg.Idle, cfg.Stream.Carried = t.IdleConnTimeout, &t.tally.streams
			t.below, err = session.NewRoundTripper(base, cfg)
		}
		t.broken = fault(err)
	})
	return t.broken
}

// RoundTrip sends one request; see [http.RoundTripper].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	switch {
	case req == nil:
		return nil, invalid(errors.New("no request"))
	case req.Header == nil:
		_ = closeBody(req.Body)
		return nil, invalid(errors.New("a request without a Header"))
	}
	if err := t.open(); err != nil {
		_ = closeBody(req.Body)
		return nil, err
	}
	t.tally.begin()
	resp, err := t.roundTrip(req)
	if err != nil {
		t.tally.end()
		return nil, err
	}
	return t.forCaller(resp, req), nil
}

func (t *Transport) roundTrip(req *http.Request) (*http.Response, error) {
	sent := t.withHeader(req)
	if resp, streamed, err := t.below.OverStream(sent); streamed {
		if err != nil {
			return nil, unanswered(req.Context(), err, false)
		}
		return resp, nil
	}
	var connected atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }}
	ctx := httptrace.WithClientTrace(req.Context(), trace)
	resp, err := t.below.RoundTrip(sent.WithContext(ctx))
	switch {
	case err != nil && !connected.Load() && !isPossible(sent):
		return nil, invalid(err)
	case err != nil:
		return nil, unanswered(ctx, err, connected.Load())
	}
	return resp, nil
}

// isPossible reports whether net/http would send a request.
func isPossible(req *http.Request) bool {
	return req.URL != nil && req.URL.Host != "" && (req.URL.Scheme == "http" || req.URL.Scheme == "https") &&
		checkFields(req.Header) == nil
}

// withHeader returns a request with Config.Header.
func (t *Transport) withHeader(req *http.Request) *http.Request {
	if len(t.Config.Header) == 0 || session.IsElsewhere(req) {
		return req
	}
	sent := req.WithContext(req.Context())
	sent.Header = req.Header.Clone()
	t.Config.addTo(sent.Header)
	return sent
}

// forCaller returns a response to what was sent for req as the response to req.
func (t *Transport) forCaller(resp *http.Response, req *http.Request) *http.Response {
	resp.Request = req
	if _, both := resp.Body.(io.Writer); both { // the connection of another protocol
		t.tally.end()
		return resp
	}
	body := &received{Reader: resp.Body}
	body.tally.Store(&t.tally)
	resp.Body = body
	return resp
}

// CloseIdleConnections ends sessions without requests, and closes unused connections of plain HTTP.
// It does not wait for that. Requests may follow, as with [http.Transport]. [http.Client] has a
// method that calls it.
func (t *Transport) CloseIdleConnections() {
	if t.open() == nil {
		t.below.CloseIdleConnections()
	}
}

// Close ends all sessions, and waits for their goroutines. It is idempotent. Later requests are
// Unsent. A Transport that is not used any more ends its sessions after IdleConnTimeout without it.
func (t *Transport) Close() error {
	if err := t.open(); err != nil {
		return err
	}
	err := t.below.Close()
	if t.http != nil {
		t.http.CloseIdleConnections()
	}
	return fault(err)
}

package session

import (
	"cmp"
	"context"
	cryptotls "crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// asker sends the requests of a session that go as plain SOAP, among them the one that asks for a
// stream. Its connections are those of the transport that it was made from, except for streams that
// TLS selects.
type asker struct {
	cfg   *Config
	ctx   context.Context // done when the session is closed
	nodes *nodes
	by    starter
	base  http.RoundTripper // a copy of the transport; the transport itself if its kind is unknown
	alone *http.Transport   // a copy for questions that have a connection to themselves; nil if there are none
	own   bool              // base is one of net/http, which reports its connections
}

// starter is a session, which uses the streams that its requests open.
type starter interface {
	negotiation() *negotiation
	begin(*negotiation)
}

// ask is the outcome of the request that asks, besides its answer.
type ask struct {
	question *negotiation        // the negotiation that the request is for; nil: it is a call
	conn     net.Conn            // the connection that the request was sent on
	alone    bool                // it goes by HTTP/1.1, over a connection that nothing else uses
	n        *negotiation        // its stream is open
	pending  *streamer.Pending   // for the reply that comes over an upgraded connection
	reply    *streamer.Message   // the reply that came over a stream that TLS selected
	invited  *upgrade.Invitation // the invitation in an answer
	refused  refusal             // why there will be no stream
	answer   *http.Response      // without its body; nil: none has come

	// A dial in the background reads these.
	plain    atomic.Bool // it goes without the fields
	declined atomic.Bool // it has had a stream that TLS selected
}

type askKey struct{}

// negotiation returns the negotiation that the request opens a stream for.
func (k *ask) negotiation(by starter) *negotiation {
	if k.question != nil {
		return k.question
	}
	return by.negotiation()
}

// began makes the session use a stream that a call has opened. The stream of a question belongs to
// its asker.
func (k *ask) began(by starter, n *negotiation) {
	if k.question == nil {
		n.tried(negotiate.FirstCall, nil)
		by.begin(n)
	}
}

// RoundTrip implements [http.RoundTripper].
func (a *asker) RoundTrip(req *http.Request) (*http.Response, error) {
	asking, ok := req.Context().Value(askKey{}).(*ask)
	if !ok || !a.nodes.has(req.URL) { // redirected to another origin
		return a.base.RoundTrip(req)
	}
	if req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		asking.declined.Store(true) // it could not be sent again if a stream that TLS selects were refused
	}
	for {
		resp, err := a.try(asking, req)
		again := asking.again(req, resp, err)
		if again == nil {
			return resp, err
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		req = again
	}
}

// try sends the request once.
func (a *asker) try(asking *ask, req *http.Request) (*http.Response, error) {
	if asking.plain.Load() {
		return a.base.RoundTrip(req)
	}
	fields := req.Header.Clone()
	if fields == nil {
		fields = http.Header{}
	}
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { a.got(asking, fields, info.Conn) }}
	out := req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	out.Header = fields
	stages, err := a.stages(req.Context())
	if err != nil {
		return nil, err
	}
	wish := upgrade.Wish{Stages: stages | streamer.BriefHello, Description: a.cfg.hint()}
	fields[negotiate.Field] = []string{wish.String()} // spelled as it is; Set would change the case
	resp, err := a.transport(asking).RoundTrip(out)
	if err != nil {
		return nil, err
	}
	asking.answer = resp
	return a.answered(asking, req, resp)
}

// transport returns the one for a request that asks.
func (a *asker) transport(k *ask) http.RoundTripper {
	if k.alone && a.alone != nil {
		return a.alone
	}
	return a.base
}

// stages returns the stages that this end asks for.
func (a *asker) stages(ctx context.Context) (uint64, error) {
	cfg := &a.cfg.Stream
	coder, err := a.cfg.Coders(ctx, coders.Spec{Representation: 1, Limits: cfg.Limits})
	if err != nil {
		return 0, err
	}
	return coder.Stages() &^ cfg.Without, nil
}

// got makes the request ask for an upgrade of its connection, if that is possible. It runs before
// anything of the request is written.
func (a *asker) got(k *ask, h http.Header, conn net.Conn) {
	k.conn = conn
	if c, ok := conn.(*cryptotls.Conn); ok && c.ConnectionState().NegotiatedProtocol != "" &&
		c.ConnectionState().NegotiatedProtocol != "http/1.1" {
		h.Del("Connection") // left by a connection that was tried before
		h.Del("Upgrade")
		return
	}
	if !a.own || !a.nodes.may(upgrades) {
		return
	}
	h.Set("Connection", "Upgrade")
	h.Set("Upgrade", negotiate.Protocol)
}

// answered processes the answer to the request that asks.
func (a *asker) answered(asking *ask, req *http.Request, resp *http.Response) (*http.Response, error) {
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		return a.upgraded(asking, req, resp)
	case asking.n != nil: // TLS selected a stream
		return resp, nil
	case resp.StatusCode == http.StatusBadRequest,
		resp.StatusCode == http.StatusUpgradeRequired,
		resp.StatusCode == http.StatusNotImplemented:
		asking.refused.err = fmt.Errorf("a request that asks for a stream is answered with HTTP status %d",
			resp.StatusCode)
	default:
		asking.refused.portal = mayBePortal(resp)
		asking.refused.passing = asking.refused.portal || saysNothing(resp.StatusCode)
		asking.refused.err = errors.New("the answer to the first call offers no stream")
		if value := resp.Header.Get(negotiate.Field); value != "" {
			i, err := upgrade.ParseInvitation(value)
			if asking.refused.passing = err == nil; asking.refused.passing && i.Token != nil {
				asking.invited, asking.refused.err = i, nil
			}
			resp.Header.Del(negotiate.Field) // nobody else may use its token
		}
	}
	return resp, nil
}

// saysNothing reports whether an answer with such a status proves nothing about hhfr: it may come
// from somebody else than the service, or be another one next time.
func saysNothing(status int) bool {
	switch status {
	case http.StatusUnauthorized,
		http.StatusForbidden,
		http.StatusProxyAuthRequired,
		http.StatusRequestTimeout,
		http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError && status != http.StatusNotImplemented
}

// upgraded makes a stream of a connection that was upgraded.
func (a *asker) upgraded(asking *ask, req *http.Request, resp *http.Response) (*http.Response, error) {
	rest, ok := resp.Body.(io.ReadWriteCloser)
	conn := asking.conn
	if !ok || conn == nil || !upgrade.HasToken(resp.Header, "Upgrade", negotiate.Protocol) {
		_ = resp.Body.Close()
		return nil, errors.New("status 101 that was not asked for")
	}
	n := asking.negotiation(a.by)
	address := portOf(n.url)
	if i, err := upgrade.ParseInvitation(resp.Header.Get(negotiate.Field)); err == nil {
		address, n.onePath = cmp.Or(i.Address, address), i.OnePath
	}
	ctx, cancel := context.WithTimeout(req.Context(), a.cfg.Timeout)
	defer cancel()
	p, err := n.upgraded(ctx, &sharedConn{ReadAheadConn: httpmsg.NewReadAheadConn(conn, rest)}, req.URL, address,
		req.Method != http.MethodOptions)
	if err != nil {
		return nil, coded(negotiate.FateUnknown, err)
	}
	asking.n, asking.pending = n, p
	asking.began(a.by, n)
	return synthetic(req), nil
}

// synthetic returns a response that stands for a reply that comes over a stream.
func synthetic(req *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK,
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{},
		Body:       http.NoBody,
		Request:    req,
	}
}

// again returns the request to send once more, without asking. It does so where the answer says
// that nothing else is wrong with the request and its body can be read again. nil: the answer
// counts.
func (k *ask) again(req *http.Request, resp *http.Response, err error) *http.Request {
	switch {
	case k.plain.Load() || k.n != nil || req.Context().Err() != nil:
		return nil
	case k.question != nil:
		return nil
	case err != nil && k.conn == nil: // no server was there
		return nil
	case err != nil:
		k.refused.err = fmt.Errorf("no answer to a request that asks for a stream: %w", withoutURL(err))
		if !isSafe(req.Method) {
			return nil
		}
		k.plain.Store(true)
	case resp.StatusCode == http.StatusUpgradeRequired,
		k.refused.err != nil && resp.StatusCode != http.StatusOK && isSafe(req.Method):
		k.plain.Store(true)
	default:
		return nil
	}
	next := req.Clone(req.Context())
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			return nil
		}
		body, err := req.GetBody()
		if err != nil {
			return nil
		}
		next.Body = body
	}
	return next
}

func isSafe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions ||
		method == http.MethodTrace
}

// upgraded makes a stream of a connection on which a request for the URL was answered with 101.
func (n *negotiation) upgraded(
	ctx context.Context, conn net.Conn, u *url.URL, address string, exchange bool,
) (*streamer.Pending, error) {
	facts := n.plainFacts(negotiate.SessionID{}, "upgrade", address)
	facts.Path = negotiate.PathOf(u)
	n.transport, n.address = facts.Transport, address
	n.named = n.cfg.hint() != nil
	cfg, err := n.streamConfig(ctx, &facts, false)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	stream, p, err := streamer.DialUpgraded(ctx, conn, cfg, exchange)
	if err != nil {
		return nil, err
	}
	hello := stream.Hello()
	facts = n.confirmed(facts, &hello)
	facts.Session = stream.Session()
	if hello.Lifetime > 0 {
		facts.Expires = n.cfg.Clock.Now().Add(time.Duration(min(hello.Lifetime, 1<<31)) * time.Second)
	}
	if n.cfg.OnSession != nil {
		n.cfg.OnSession(facts, conn)
	}
	return p, n.opened(ctx, stream, &facts)
}

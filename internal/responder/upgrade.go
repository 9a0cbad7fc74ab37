package responder

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// serveAsking serves a request that asks for a stream. Its connection becomes a stream when the
// service has read the request to its end; the reply is then that to exchange 1. If the service
// replies before that, the reply goes as plain HTTP. Where the connection cannot be upgraded, the
// answer names the address where a stream can be opened.
func (r *Responder) serveAsking(w http.ResponseWriter, req *http.Request, services http.Handler) {
	wish, upgrade, ok := upgrade.Asks(req)
	if !ok || r.cfg.Serves != nil && !r.cfg.Serves(req.URL.Path) {
		r.servePlain(w, req, services)
		return
	}
	if !upgrade {
		r.invite(w, req, wish.Description)
		services.ServeHTTP(w, req)
		return
	}
	ctx, cancel := context.WithCancel(req.Context())
	defer cancel()
	u := &upgrading{r: r, w: w, header: w.Header(), wish: wish, ctx: ctx, cancel: cancel, over: make(chan struct{})}
	defer close(u.over)
	asking := req.WithContext(ctx)
	u.req = asking
	if read, whole := readWhole(req); whole {
		asking.Body = read
		u.upgrade()
	} else {
		asking.Body = &upgradingBody{read, u}
	}
	u.serve(services)
}

// serveQuestion answers a request of the method OPTIONS that asks for a stream and is no exchange:
// by an upgrade, or, if the connection cannot be upgraded, by status 204 with the field. It returns
// false where there can be no session.
func (r *Responder) serveQuestion(w http.ResponseWriter, req *http.Request) bool {
	wish, upgradable, ok := upgrade.Asks(req)
	if !ok || r.cfg.Serves != nil && req.URL.Path != "*" && !r.cfg.Serves(req.URL.Path) {
		return false
	}
	if upgradable && r.cfg.OnePath {
		w.Header().Set(negotiate.Field, upgrade.Version) // a call may be upgraded
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	if upgradable {
		// If the request has a body, that body belongs to no message.
		if n, err := io.Copy(io.Discard, io.LimitReader(req.Body, maxPeek+1)); err != nil || n > maxPeek {
			return false
		}
		took := false
		err := r.upgrade(r.streamContext(req), &Upgrade{Request: req, wish: wish}, func() (net.Conn, error) {
			conn, err := hijacked(w)
			took = err == nil
			return conn, err
		}, r.streams.own, nil)
		if err != nil {
			r.cfg.Log.Info("connection not upgraded", "peer", req.RemoteAddr, "err", err)
			return took
		}
		return true
	}
	r.invite(w, req, wish.Description)
	if w.Header().Get(negotiate.Field) == "" {
		return false
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// shortBody is the longest body that is read before its service begins, in bytes. A request that
// asks, with such a body of known length, is then upgraded at once, whatever the service does.
const shortBody = 64 << 10

// readWhole reads a short body of known length. It returns the body, and whether that is in memory.
func readWhole(req *http.Request) (body io.ReadCloser, whole bool) {
	if req.ContentLength < 0 || req.ContentLength > shortBody {
		return req.Body, false
	}
	var all bytes.Buffer
	all.Grow(int(req.ContentLength) + bytes.MinRead)
	_, err := all.ReadFrom(req.Body)
	data := all.Bytes()
	if err != nil || int64(len(data)) != req.ContentLength {
		return &httpmsg.Peeked{
			Reader: io.MultiReader(bytes.NewReader(data), httpmsg.Failing(err)),
			Closer: req.Body,
		}, false
	}
	return &httpmsg.Peeked{Reader: bytes.NewReader(data), Closer: req.Body}, true
}

// invite names in the field of an answer where a stream can be opened, if one can. description
// names the one that the initiator has.
func (r *Responder) invite(w http.ResponseWriter, req *http.Request, description []byte) {
	transport := negotiate.OwnTransport(req.TLS != nil)
	if r.cfg.Addresses[transport] == "" || r.cfg.admit(req) != nil {
		return
	}
	i, err := r.invitation(req, transport, description)
	if err != nil {
		r.cfg.Log.Info("no stream offered", "peer", req.RemoteAddr, "err", err)
		return
	}
	w.Header().Set(negotiate.Field, i.String())
	// The token is for this initiator only.
	w.Header().Add("Cache-Control", "no-store")
}

// invitation makes a session that waits to be joined.
func (r *Responder) invitation(req *http.Request, transport string, description []byte) (*upgrade.Invitation, error) {
	o := &negotiate.Offer{
		Schemes:         []string{negotiate.Scheme},
		Representations: []string{negotiate.RepresentationURI("binary")},
		Transports:      []string{negotiate.TransportURI(transport)},
	}
	if c := r.descriptions.named(description, req.URL.EscapedPath()); c != nil {
		o.Request = &negotiate.Description{Fingerprint: c.URI()}
		o.Reply = o.Request
	}
	a, err := r.offers.answer(req.Context(), req, o)
	if err != nil {
		return nil, err
	}
	return &upgrade.Invitation{
		Transport: transport,
		Address:   a.Address,
		Session:   a.Session,
		Token:     a.Token[:],
		Lifetime:  a.Lifetime,
	}, nil
}

// upgrading is a request whose connection may be upgraded. It is the ResponseWriter of its service.
type upgrading struct {
	r      *Responder
	w      http.ResponseWriter
	header http.Header // the header of w, which only the service may ask for
	req    *http.Request
	wish   upgrade.Wish
	ctx    context.Context
	cancel context.CancelFunc
	over   chan struct{} // closed when the service has returned

	mu      sync.Mutex
	decided bool            // the request is answered as plain HTTP, or its connection is upgraded
	plain   bool            // the request is answered as plain HTTP
	vain    bool            // no other request is upgraded either
	x       *exchangeWriter // nil: plain HTTP
}

// serve runs the service with the request.
func (u *upgrading) serve(services http.Handler) {
	ended := false
	defer func() {
		u.mu.Lock()
		x := u.x
		u.mu.Unlock()
		if x == nil {
			_ = u.to() // for a service that wrote nothing
			return     // net/http handles it, and a panic as well
		}
		x.end(u.r.cfg.Log, u.req.URL.Path, ended, recover())
	}()
	services.ServeHTTP(u, u.req)
	ended = true
}

// upgradingBody is the body of a request, at whose end the connection may be upgraded.
type upgradingBody struct {
	io.ReadCloser
	u *upgrading
}

// Read reads the body.
func (b *upgradingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.u.upgrade()
	}
	return n, err
}

// to returns what the service writes to from now on.
func (u *upgrading) to() http.ResponseWriter {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.x != nil {
		return u.x
	}
	if !u.plain && !u.vain { // in the service's goroutine, to which the fields belong
		u.header.Set(negotiate.Field, upgrade.Version) // another request may be upgraded
	}
	u.plain = true
	u.decided = true
	return u.w
}

// Header returns the fields to be sent.
func (u *upgrading) Header() http.Header { return u.header }

// WriteHeader sets the status, once; informational ones are sent at once, and decide nothing.
func (u *upgrading) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.x == nil {
			u.w.WriteHeader(status)
			return
		}
		u.x.WriteHeader(status)
		return
	}
	u.to().WriteHeader(status)
}

// Write writes the body.
func (u *upgrading) Write(p []byte) (int, error) { return u.to().Write(p) }

// Flush sends what is buffered; see [http.Flusher].
func (u *upgrading) Flush() { _ = u.FlushError() }

// FlushError is Flush with an error; see [http.ResponseController].
func (u *upgrading) FlushError() error { return http.NewResponseController(u.to()).Flush() }

// EnableFullDuplex lets the request be read while the reply is written. It decides nothing; only
// writing does.
func (u *upgrading) EnableFullDuplex() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.x != nil {
		return http.NewResponseController(u.x).EnableFullDuplex()
	}
	return http.NewResponseController(u.w).EnableFullDuplex()
}

// Hijack is for services that upgrade to another protocol.
func (u *upgrading) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(u.to()).Hijack()
}

// Unwrap is for [http.ResponseController]: deadlines are those of the connection, as long as that
// is plain HTTP; a stream takes none.
func (u *upgrading) Unwrap() http.ResponseWriter {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.x != nil {
		return u.x
	}
	return u.w
}

// upgrade makes the connection a stream, unless the reply has begun, or there can be no session.
func (u *upgrading) upgrade() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.decided {
		return
	}
	u.decided = true
	exchange := make(chan *streamer.Exchange, 1)
	hijack := func() (net.Conn, error) { return hijacked(u.w) }
	serve := func(_ context.Context, x *streamer.Exchange) {
		exchange <- x
		<-u.over
	}
	// The service has its request already.
	asked := &Upgrade{Request: u.req, Message: &streamer.Message{}, Serve: serve, wish: u.wish}
	err := u.r.upgrade(u.r.streamContext(u.req), asked, hijack, u.r.streams.own, nil)
	if err != nil {
		u.r.cfg.Log.Info("connection not upgraded", "peer", u.req.RemoteAddr, "err", err)
		u.vain = !errors.Is(err, errNoRoom) && !errors.Is(err, errNoConn)
		return
	}
	x := <-exchange
	u.x = &exchangeWriter{ctx: u.ctx, x: x, replyHead: replyHead{header: u.header}}
	context.AfterFunc(x.Context(), u.cancel)
}

// streamContext returns the context of the stream that a request opens. It has no end of its own.
func (r *Responder) streamContext(req *http.Request) context.Context {
	ctx := context.Background()
	if r.cfg.StreamContext != nil {
		ctx = context.WithoutCancel(r.cfg.StreamContext(ctx, req))
	}
	return ctx
}

// hijacked takes a connection from net/http, together with what net/http has read ahead of it.
func hijacked(w http.ResponseWriter) (net.Conn, error) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{}) // set by the server
	if n := buffered.Reader.Buffered(); n > 0 {
		ahead, _ := buffered.Peek(n)
		return httpmsg.NewReadAheadConn(conn, io.MultiReader(bytes.NewReader(ahead), netconn.Of(conn))), nil
	}
	return conn, nil
}

// Upgrade is a request that was read to its end and asks for a stream over its connection.
type Upgrade struct {
	Request *http.Request
	// Message is the request as the message of exchange 1, and Serve is what serves it. Without
	// Serve it is no exchange.
	Message *streamer.Message
	Serve   streamer.ExchangeHandler
	wish    upgrade.Wish
}

// Upgradable reports whether a request asks for a stream over its connection.
func Upgradable(req *http.Request) bool {
	_, upgrade, ok := upgrade.Asks(req)
	return ok && upgrade
}

// ServeUpgraded upgrades a connection that the caller accepted, and runs its stream to its end;
// open is as for [Responder.ServeConn]. take returns the connection, once it is clear that there is
// a session. An error before that leaves the connection as it is.
func (r *Responder) ServeUpgraded(
	ctx context.Context, take func() (net.Conn, error), u *Upgrade, open func(negotiate.Facts) Opened,
) error {
	u.wish, _, _ = upgrade.Asks(u.Request)
	over := make(chan struct{})
	if err := r.upgrade(ctx, u, take, open, func() { close(over) }); err != nil {
		return err
	}
	<-over
	return nil
}

// upgrade begins a session from a request, and has its stream served over the connection that
// hijack returns; over is called when that has ended (nil: nothing is). An error leaves the
// connection as it is, unless hijack was called, and over is not called.
func (r *Responder) upgrade(
	ctx context.Context, u *Upgrade, hijack func() (net.Conn, error), open func(negotiate.Facts) Opened, over func(),
) (err error) {
	if err := r.cfg.admit(u.Request); err != nil {
		return err
	}
	v := r.streams.count(u.Request.RemoteAddr)
	if v == nil {
		return errNoConn
	}
	v.client = clientOf(u.Request)
	opening, cancel := v.opening(ctx)
	defer cancel()
	defer func() {
		if err != nil {
			v.end()
		}
	}()
	j, err := r.joins.begin(opening, u.Request, firstTerms{
		streamer.NewBriefSession(), "upgrade", negotiate.RepresentationURI("binary"), u.wish.Description})
	if err != nil {
		return err
	}
	if err := v.take(opening, j, 1); err != nil {
		return err
	}
	conn, err := hijack()
	if err != nil {
		return err
	}
	a, begun, err := v.admit(opening, j, conn, open)
	if err != nil {
		_ = conn.Close()
		return err
	}
	if v.served != nil {
		v.served.opener = upgradedBy(u.Request, r.cfg.OnePath)
	}
	cfg := v.plainConfig()
	cfg.Session = j.facts.Session
	head := upgrade.SwitchingProtocols(r.elsewhere(u.Request), v.served.isOnePath())
	stream, err := streamer.AcceptUpgraded((*streamContext)(v), conn, cfg, head, a, u.wish.Stages, u.Message, u.Serve)
	if err != nil {
		return err
	}
	v.live(ctx, conn, stream, begun, over)
	return nil
}

// elsewhere returns the address where streams are opened later; empty if that is where a request
// came in.
func (r *Responder) elsewhere(req *http.Request) string {
	if a := r.joins.addressFor(req); a != upgrade.OwnPort(req) {
		return a
	}
	return ""
}

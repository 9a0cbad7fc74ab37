package proxy

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// errUpgraded ends a connection as one of HTTP: a stream has run over it to its end.
var errUpgraded = errors.New("upgraded")

// asks reports whether a request asks for a stream.
func (p *Proxy) asks(h *http1.Head) bool {
	_, ok := h.Get(negotiate.Field)
	return ok
}

// invitation answers a question whose connection cannot be upgraded with where streams are opened;
// nil if it is none.
func (p *Proxy) invitation(in *sock.Source, h *http1.Head, n int, last bool) []byte {
	if string(h.Method()) != http.MethodOptions {
		return nil
	}
	req, err := p.request(in.Conn, in.Peek()[:n])
	if err != nil || req.ContentLength != 0 || responder.Upgradable(req) {
		return nil
	}
	w := &answerWriter{header: http.Header{}, status: http.StatusNotFound}
	p.offers.ServeHTTP(w, req)
	if w.header.Get(negotiate.Field) == "" {
		return nil
	}
	return w.octets(last)
}

// upgrade answers a request that asks for a stream over its connection, and serves that to its end:
// Upgrade is hop by hop, and this is the next one. A near proxy asks by OPTIONS; what else asks
// speaks for itself. It is false, with nothing taken, for a request that is no such, is too long to
// be held, or is to have no session: that goes on as it is. taken is called when the connection is
// a stream's.
func (p *Proxy) upgrade(in *sock.Source, h *http1.Head, n int, taken func()) bool {
	method := string(h.Method())
	if method != http.MethodOptions && method != http.MethodPost {
		return false
	}
	req, err := p.request(in.Conn, in.Peek()[:n])
	if err != nil || !responder.Upgradable(req) {
		return false
	}
	f, err := http1.RequestFraming(h)
	if _, expects := h.Get("Expect"); err != nil || expects {
		return false
	}
	g, st := gather(p.ctx, in, n, f, p.cfg.MaxBuffer, p.cfg.Pause)
	if st != stateWhole {
		return false
	}
	far := newFar(p)
	defer far.end()
	u := &responder.Upgrade{Request: req}
	if method == http.MethodPost {
		u.Message, u.Serve = streamer.NewMessage(bytes.Clone(in.Peek()[:n]), bytes.Clone(g.entity)), far.serve
	}
	took := false
	err = p.responder.ServeUpgraded(p.ctx, func() (net.Conn, error) {
		took = true
		taken()
		return p.upgradable(in, n+g.octets)
	}, u, far.opens)
	if err != nil {
		p.cfg.Log.Info("connection not upgraded", "peer", in.Conn.RemoteAddr(), "err", err)
	}
	return took
}

// upgradable gives the connection behind a request of so many octets, which a recorder sees as
// well.
func (p *Proxy) upgradable(in *sock.Source, request int) (net.Conn, error) {
	if p.cfg.WrapAccepted == nil {
		in.Take(request)
		return oneport.GiveBack(in), nil
	}
	conn := p.cfg.WrapAccepted(oneport.GiveBack(in))
	_, err := io.CopyN(io.Discard, conn, int64(request))
	return conn, err
}

// request is what a client says, as net/http has it.
func (p *Proxy) request(conn net.Conn, octets []byte) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(octets)))
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = conn.RemoteAddr().String()
	if secure, ok := conn.(interface{ ConnectionState() tls.ConnectionState }); ok {
		state := secure.ConnectionState()
		r.TLS = &state
	}
	return r.WithContext(negotiate.WithLocalAddr(p.ctx, conn.LocalAddr())), nil
}

package proxy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// errUpgraded ends a connection as one of HTTP: a stream has run over it to its end.
var errUpgraded = errors.New("upgraded")

// asks reports whether a request asks for a stream.
func asks(h *http1.Head) bool {
	_, ok := h.Get(negotiate.Field)
	return ok
}

// invitation answers an OPTIONS request whose connection cannot be upgraded with the address of
// streams; nil if it is none.
func (f *front) invitation(in *sock.Source, h *http1.Head, n int, last bool) []byte {
	if string(h.Method()) != http.MethodOptions {
		return nil
	}
	req, err := f.p.request(in.Conn, in.Peek()[:n])
	if err != nil || req.ContentLength != 0 || responder.Upgradable(req) {
		return nil
	}
	w := &answerWriter{header: http.Header{}, status: http.StatusNotFound}
	f.offers.ServeHTTP(w, req)
	if w.header.Get(negotiate.Field) == "" {
		return nil
	}
	return w.wire(last)
}

// upgrade answers a request that asks for a stream over its connection, and serves that to its end:
// Upgrade is hop by hop, and this is the next hop. A near proxy asks by OPTIONS; any other client
// that asks speaks hhfr itself. It is false, with nothing consumed, for a request that does not
// ask, is too long to be held, or may have no session: such a request is forwarded. taken is called
// when the connection becomes a stream.
func (f *front) upgrade(in *sock.Source, h *http1.Head, n int, taken func()) bool {
	p := f.p
	method := string(h.Method())
	if method != http.MethodOptions && method != http.MethodPost {
		return false
	}
	req, err := p.request(in.Conn, in.Peek()[:n])
	if err != nil || !responder.Upgradable(req) {
		return false
	}
	framing, err := http1.RequestFraming(h)
	if _, expects := h.Get("Expect"); err != nil || expects {
		return false
	}
	g, st := gather(p.ctx, in, n, framing, p.cfg.MaxBuffer, p.cfg.Timeout)
	if st != stateWhole {
		return false
	}
	far := newFar(p, f, in.Conn.RemoteAddr())
	defer far.end()
	u := &responder.Upgrade{Request: req}
	if method == http.MethodPost {
		u.Message, u.Serve = streamer.NewMessage(bytes.Clone(in.Peek()[:n]), bytes.Join(g.entity(), nil)), far.serve
	}
	took := false
	err = f.responder.ServeUpgraded(p.ctx, func() (net.Conn, error) {
		took = true
		taken()
		return p.upgradable(in, n+g.octets)
	}, u, far.opens)
	if err != nil {
		p.cfg.Log.Info("connection not upgraded", "peer", in.Conn.RemoteAddr(), "err", err)
	}
	return took
}

// upgradable returns the connection after a request of that many bytes, which a recorder sees as
// well.
func (p *core) upgradable(in *sock.Source, request int) (net.Conn, error) {
	if p.cfg.WrapAccepted == nil {
		in.Take(request)
		return oneport.GiveBack(in), nil
	}
	given := oneport.GiveBack(in)
	conn := netconn.Wrap(p.cfg.WrapAccepted(given), given)
	_, err := io.CopyN(io.Discard, conn, int64(request))
	return conn, err
}

// request is a client's request, as net/http has it.
func (p *core) request(conn net.Conn, octets []byte) (*http.Request, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(octets)))
	if err != nil {
		return nil, err
	}
	r.RemoteAddr = conn.RemoteAddr().String()
	r.TLS = httpmsg.TLS(conn)
	return r.WithContext(upgrade.WithLocalAddr(p.ctx, conn.LocalAddr())), nil
}

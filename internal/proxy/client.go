package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// serveClient serves one connection of a client to its end: offers are answered, all else is
// forwarded. A connection that was silent for long may still become a stream.
func (p *Proxy) serveClient(conn net.Conn) {
	if stream := p.serveHTTP(conn); stream != nil {
		p.serveStream(stream)
	}
}

// serveHTTP serves a connection of a client to its end, nil, or until it becomes a stream.
func (p *Proxy) serveHTTP(conn net.Conn) (stream net.Conn) {
	in := p.newSource(conn)
	defer func() {
		if stream == nil {
			_ = in.Conn.Close()
		}
	}()
	// A client in the middle of a reply when the proxy closes must not see an orderly end: this
	// ends the waiting, and the writer ends the connection. A stream ends in order.
	undo := context.AfterFunc(p.ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer undo()
	silence := p.cfg.Silence
	if oneport.Silent(conn) {
		silence = -1 // that is over
	}
	if _, err := in.Wait(p.ctx, 0, silence); errors.Is(err, sock.ErrPaused) {
		return p.plainOrStream(in, nil, true)
	}
	if p.ctx.Err() != nil {
		return nil
	}
	for answered := p.responder != nil; answered; {
		var last bool
		var err error
		if answered, last, err = p.answer(in, func() { undo() }); err != nil {
			return nil
		}
		if last {
			sock.Finish(p.ctx, in)
			return nil
		}
		if answered {
			// A peer that makes offers keeps its connection open, and may send nothing more on it.
			if data, _ := in.Wait(p.ctx, 0, p.cfg.Idle); len(data) == 0 {
				return nil
			}
		}
	}
	p.forward(in)
	return nil
}

// forward sends a connection's bytes upstream, over a lane if there is a partner.
func (p *Proxy) forward(in *sock.Source) {
	l, err := p.links.Get()
	if wrong := schemeError(err); wrong != nil {
		if said, _ := in.Wait(p.ctx, 0, p.cfg.Silence); http1.LooksLikeStart(said) {
			p.refuse(in, said, wrong)
			return
		}
	}
	if l == nil {
		p.cfg.Log.Debug("plain", "peer", in.Conn.RemoteAddr(), "why", err)
		p.plain(in, nil)
		return
	}
	number, ok := l.enter()
	if !ok {
		p.plain(in, nil)
		return
	}
	newCaller(p, l, number, in).run()
}

// answer answers an offer if the client sends one next; last: the client wants the connection
// closed after it. An error ends the connection. upgraded is called when the connection becomes a
// stream.
func (p *Proxy) answer(in *sock.Source, upgraded func()) (answered, last bool, _ error) {
	h, n, st, _ := readHead(p.ctx, in, 0, p.cfg.Pause, false)
	if st != stateWhole {
		return false, false, nil
	}
	last = isLast(&h)
	if p.asks(&h) {
		if p.upgrade(in, &h, n, upgraded) {
			return true, true, errUpgraded
		}
		if reply := p.invitation(in, &h, n, last); reply != nil {
			in.Take(n)
			_, err := in.Conn.Write(reply)
			return true, last, err
		}
	}
	if string(h.Method()) != http.MethodPost {
		return false, false, nil
	}
	f, err := http1.RequestFraming(&h)
	if _, expects := h.Get("Expect"); err != nil || expects || f.Kind != http1.Length && f.Kind != http1.Chunked ||
		f.Length > negotiate.MaxOffer {
		return false, false, nil
	}
	g, isOffer := p.offer(in, n, f)
	if !isOffer {
		return false, false, nil
	}
	reply := p.reply(in.Conn, in.Peek()[:n+g.octets], last)
	in.Take(n + g.octets)
	_, err = in.Conn.Write(reply)
	return true, last, err
}

// isLast reports whether the client wants the connection closed after this request (RFC 9112,
// section 9.6).
func isLast(h *http1.Head) bool {
	connection := h.Tokens("Connection")
	return slices.Contains(connection, "close") || string(h.Version()) == "HTTP/1.0" &&
		!slices.Contains(connection, "keep-alive")
}

// offer checks whether a body after a head of skip bytes is an offer, and if so returns all of it.
func (p *Proxy) offer(in *sock.Source, skip int, f http1.Framing) (g gathered, _ bool) {
	const look = 4 << 10 // negotiation.md, section 2
	for limit := 512; ; limit *= 2 {
		g, st := gather(p.ctx, in, skip, f, limit, p.cfg.Pause)
		start := g.entity
		if st != stateWhole && !g.chunks {
			start = in.Peek()[skip : skip+g.octets]
		}
		got := soap.Recognize(start[:min(len(start), look)])
		switch {
		case got.Complete && got.Operation != negotiate.OfferName, st != stateWhole && st != stateFull,
			st == stateWhole && !got.Complete, len(start) >= look && !got.Complete:
			return g, false
		case st == stateWhole:
			return g, true
		case limit > 2*negotiate.MaxOffer:
			return g, false
		}
	}
}

// reply is the answer to an offer, as sent to the client.
func (p *Proxy) reply(conn net.Conn, offer []byte, last bool) []byte {
	r, err := p.request(conn, offer)
	if err != nil {
		return errorReply(http.StatusBadRequest, "no target of an offer")
	}
	w := &answerWriter{header: http.Header{}, status: http.StatusOK}
	p.offers.ServeHTTP(w, r)
	return w.wire(last)
}

// answerWriter receives the answer of a responder.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// wire is the answer as it goes to the client.
func (w *answerWriter) wire(last bool) []byte {
	if w.status != http.StatusNoContent {
		w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
	}
	if last {
		w.header.Set("Connection", "close")
	}
	out := bytes.NewBuffer(fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status)))
	_ = w.header.Write(out)
	return append(append(out.Bytes(), "\r\n"...), w.body.Bytes()...)
}

func (w *answerWriter) Header() http.Header         { return w.header }
func (w *answerWriter) WriteHeader(status int)      { w.status = status }
func (w *answerWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

// errorReply is a proxy's own reply to a client whose connection it then closes.
func errorReply(status int, text string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s\n", status, http.StatusText(status), len(text)+1, text)
}

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
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// serveClient serves one connection of a client to its end: offers are answered, all else is
// forwarded. A connection that was silent for long may still become a stream.
func (f *front) serveClient(conn net.Conn) {
	if stream := f.serveHTTP(conn); stream != nil {
		f.serveStream(stream)
	}
}

// serveHTTP serves a connection of a client to its end, nil, or until it becomes a stream.
func (f *front) serveHTTP(conn net.Conn) (stream net.Conn) {
	p := f.p
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
		if stream, over := f.silent(in); over || stream != nil {
			return stream
		}
	}
	if p.ctx.Err() != nil {
		return nil
	}
	if p.contexts.serve(p, in) {
		return nil
	}
	for answered := f.responder != nil; answered; {
		var last bool
		var err error
		if answered, last, err = f.answer(in, func() { undo() }); err != nil {
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
	f.forward(in, true)
	return nil
}

// silent serves a client that has sent nothing for long. Its server may speak first, if one route
// takes everything; with several it is not known which server that is. It returns the connection if
// it is a stream after all, and reports whether it is over.
func (f *front) silent(in *sock.Source) (stream net.Conn, over bool) {
	r := f.routes()
	if r != nil && r.all != nil && r.all.use.enter() {
		defer r.all.use.leave()
		return r.all.plainOrStream(in, nil, plainSilent, f), true
	}
	if f.responder != nil && f.isLateStream(f.p.ctx, in) {
		return oneport.GiveBack(in), true
	}
	return nil, false
}

// forward sends a connection's bytes to the upstreams of its requests. first: what comes next is
// what the client began with.
func (f *front) forward(in *sock.Source, first bool) {
	for again := true; again; first = false {
		j, refusal := f.choose(in, first)
		if f.p.isDraining() { // it may not have been looked where this goes
			f.drained(in, j)
			return
		}
		if j.to == nil {
			_, _ = in.Conn.Write(refusal)
			sock.Finish(f.p.ctx, in)
			return
		}
		again = j.to.carry(in, j)
		j.to.use.leave()
	}
}

// drained tells a client whose next request came while the proxy shuts down.
func (f *front) drained(in *sock.Source, j journey) {
	if j.to != nil {
		j.to.use.leave()
	}
	if said, _ := in.Wait(f.p.ctx, 0, f.p.cfg.Silence); http1.LooksLikeStart(said) {
		_, _ = in.Conn.Write(busyReply(drainingText))
	}
	sock.Finish(f.p.ctx, in)
}

// noRoute is why a request goes nowhere.
func (p *Proxy) noRoute(host, path string) error {
	err := fmt.Errorf("no route of this proxy's configuration takes host %q and path %q; the request was not sent",
		host, path)
	p.cfg.Log.Info("no route", "host", host, "path", path)
	return &Error{Code: NoRoute, At: -1, Err: err}
}

// carry sends a connection's bytes to the upstream, over a lane if there is a partner, as long as
// its requests stay there. It reports whether the next request goes elsewhere.
func (u *upstream) carry(in *sock.Source, j journey) (moves bool) {
	p := u.p
	if u.forwarder != nil {
		return u.inSequence(in, j)
	}
	l, err := u.links.Get()
	if wrong := schemeError(err); wrong != nil {
		if said, _ := in.Wait(p.ctx, 0, p.cfg.Silence); http1.LooksLikeStart(said) {
			p.refuse(in, said, wrong)
			return false
		}
	}
	if l == nil {
		p.cfg.Log.Debug("plain", "peer", in.Conn.RemoteAddr(), "upstream", u.cfg.Name, "why", err)
		if since := u.links.Trying(); since > slowAttempt {
			u.teller.waiting(since)
		}
		return u.plainly(in, nil, reasonOf(err), j)
	}
	client := u.client(in.Conn)
	place, ok := l.enter(client)
	if !ok {
		return u.plainly(in, nil, plainLane, j)
	}
	return newCaller(l, client, place, in, j).run()
}

// answer answers an offer if the client sends one next; last: the client wants the connection
// closed after it. An error ends the connection. upgraded is called when the connection becomes a
// stream.
func (f *front) answer(in *sock.Source, upgraded func()) (answered, last bool, _ error) {
	p := f.p
	ctx, cancel := p.headTime()
	h, n, st, _ := readHead(ctx, in, 0, p.cfg.Pause, false)
	cancel()
	if st != stateWhole {
		return false, false, nil
	}
	h = h.Clone()
	last = isLast(&h)
	if asks(&h) {
		if f.upgrade(in, &h, n, upgraded) {
			return true, true, errUpgraded
		}
		if reply := f.invitation(in, &h, n, last); reply != nil {
			in.Take(n)
			_, err := in.Conn.Write(reply)
			return true, last, err
		}
	}
	if string(h.Method()) != http.MethodPost {
		return false, false, nil
	}
	framing, err := http1.RequestFraming(&h)
	if _, expects := h.Get("Expect"); err != nil || expects ||
		framing.Kind != http1.Length && framing.Kind != http1.Chunked || framing.Length > negotiate.MaxOffer {
		return false, false, nil
	}
	g, isOffer := p.offer(in, n, framing)
	if !isOffer {
		return false, false, nil
	}
	reply := f.reply(in.Conn, in.Peek()[:n+g.octets], last)
	in.Take(n + g.octets)
	_, err = in.Conn.Write(reply)
	return true, last, err
}

// isLast reports whether the connection is closed after this message (RFC 9112, section 9.6).
func isLast(h *http1.Head) bool {
	connection := h.Tokens("Connection")
	return slices.Contains(connection, "close") || string(h.Version()) == "HTTP/1.0" &&
		!slices.Contains(connection, "keep-alive")
}

// offer checks whether a body after a head of skip bytes is an offer, and if so returns all of it.
func (p *Proxy) offer(in *sock.Source, skip int, f http1.Framing) (g gathered, _ bool) {
	for limit := 512; ; limit *= 2 {
		g, st := gather(p.ctx, in, skip, f, limit, p.cfg.Pause)
		start := g.start
		if st != stateWhole && !g.chunks {
			start = in.Peek()[skip : skip+g.octets]
		}
		got := soap.Recognize(start[:min(len(start), maxStart)])
		switch {
		case got.Complete && got.Operation != negotiate.OfferName, st != stateWhole && st != stateFull,
			st == stateWhole && !got.Complete, len(start) >= maxStart && !got.Complete:
			return g, false
		case st == stateWhole:
			return g, true
		case limit > 2*negotiate.MaxOffer:
			return g, false
		}
	}
}

// reply is the answer to an offer, as sent to the client.
func (f *front) reply(conn net.Conn, offer []byte, last bool) []byte {
	r, err := f.p.request(conn, offer)
	if err != nil {
		return errorReply(http.StatusBadRequest, "no target of an offer")
	}
	w := &answerWriter{header: http.Header{}, status: http.StatusOK}
	f.offers.ServeHTTP(w, r)
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
func errorReply(status int, text string, fields ...string) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n%s"+
		"Connection: close\r\n\r\n%s\n", status, http.StatusText(status), len(text)+1, strings.Join(fields, ""), text)
}

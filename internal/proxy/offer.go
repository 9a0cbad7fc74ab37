package proxy

import (
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

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

// offer checks whether a body after a head of skip bytes is an offer, and if so returns all of it:
// once it is known to be one, its rest may come as late as a packet that is sent again.
func (p *core) offer(in *sock.Source, skip int, f http1.Framing) (g gathered, _ bool) {
	pause := p.cfg.Pause
	for limit := 512; ; {
		g, st := gather(p.ctx, in, skip, f, limit, pause)
		start := g.start
		if st != stateWhole && !g.chunks {
			start = in.Peek()[skip : skip+g.octets]
		}
		got := soap.Recognize(start[:min(len(start), maxStart)])
		isOffer := got.Complete && got.Operation == negotiate.OfferName
		switch {
		case got.Complete && !isOffer, st == stateWhole && !isOffer, len(start) >= maxStart && !isOffer:
			return g, false
		case st == stateWhole:
			return g, true
		case st == statePaused && isOffer && pause < p.cfg.Timeout:
			pause = p.cfg.Timeout
		case st != stateFull || limit > 2*negotiate.MaxOffer:
			return g, false
		default:
			limit *= 2
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

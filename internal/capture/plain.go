package capture

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/spool"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// httpReader extracts the plain SOAP from the HTTP messages of a connection.
type httpReader struct {
	*flow.HTTP
	conn   *capturedConn
	soap   int // messages
	others int // requests with a body and no SOAP in them, nor in their replies
	offers map[int]*negotiate.Offer
}

// plain is what is known of an exchange. A request that is not SOAP waits for its reply, which may
// be.
type plain struct {
	number  int
	request *Decoded
	waits   bool
}

func newHTTPReader(c *capturedConn) *httpReader {
	h := &httpReader{conn: c}
	h.HTTP = flow.NewHTTP(flow.HTTPConfig{Body: c.r.cfg.MaxMessage,
		Bodies:  func() flow.BodyStore { return c.r.bodies.Body() },
		Coded:   func() flow.BodyStore { return c.r.bodies.Whole() },
		Request: h.request, Reply: h.reply, NoReply: h.noReply})
	return h
}

func (h *httpReader) request(x *flow.HTTPExchange) {
	p := &plain{request: h.decode(x, x.Request, false)}
	x.User = p
	if p.waits = !isSOAP(p.request); !p.waits {
		h.give(p, p.request)
		p.request = nil
	}
}

func (h *httpReader) reply(x *flow.HTTPExchange) {
	if x == h.Switch && upgrades(x.Reply) {
		h.upgrade(x)
		x.Reply.Body.Free()
		return
	}
	p, _ := x.User.(*plain)
	if p == nil {
		p = &plain{}
	}
	d := h.decode(x, x.Reply, true)
	switch {
	case isSOAP(d):
		if p.waits {
			h.give(p, p.request)
		}
		h.give(p, d)
	case p.waits:
		h.other(p.request)
		d.content.Free()
	case p.number > 0 || x.User != nil:
		h.give(p, d)
	default:
		d.content.Free()
	}
}

func (h *httpReader) noReply(x *flow.HTTPExchange) {
	if p, _ := x.User.(*plain); p != nil && p.waits {
		h.other(p.request)
	}
}

// other counts a request that has nothing to do with SOAP.
func (h *httpReader) other(d *Decoded) {
	if d.BodyOctets > 0 {
		h.others++
	}
	d.content.Free()
}

// give passes a message on.
func (h *httpReader) give(p *plain, d *Decoded) {
	if h.soap++; h.soap == 1 {
		h.conn.r.met(h.conn.flow)
	}
	if !d.negotiation() {
		if p.number == 0 {
			p.number = h.conn.r.numbers.next()
		}
		d.Number = p.number
	}
	h.learn(d)
	h.conn.r.give(d)
}

// learn reads what a negotiation agrees on.
func (h *httpReader) learn(d *Decoded) {
	if !d.negotiation() || !d.Whole() {
		return
	}
	at := int(d.Exchange)
	if !d.Reply {
		if o, _, err := negotiate.ParseOffer(d.Body); err == nil && len(h.offers) < maxOffers {
			if h.offers == nil {
				h.offers = map[int]*negotiate.Offer{}
			}
			h.offers[at] = o
			h.conn.r.contexts.sawCommon(o.Common)
		}
		return
	}
	o := h.offers[at]
	delete(h.offers, at)
	a, err := negotiate.ParseAnswer(d.Body)
	if err != nil || o == nil {
		return
	}
	contexts := &h.conn.r.contexts
	if a.ContextStore != "" {
		contexts.seen(a.Session).common = o.Common
	}
	if a.HeadersKept > 0 && a.HeadersKept == len(o.Headers)+len(o.References) {
		contexts.seen(a.Session).headers = contexts.offered(h.conn.r.shapes.ctx, o)
	}
}

func isSOAP(d *Decoded) bool { return d.Version != soap.None }

func (h *httpReader) decode(x *flow.HTTPExchange, m *flow.HTTPMessage, reply bool) *Decoded {
	body, _ := m.Body.(*spool.Spooled)
	d := &Decoded{Head: m.Octets, Wire: m.Wire, First: m.First, Last: m.Last, Packet: m.FirstPacket, State: Unchecked,
		Exchange: uint64(x.ID), Origin: h.Requests, Reply: reply, flow: h.conn.flow.ID, content: body,
		Src: h.conn.flow.Src, Dst: h.conn.flow.Dst}
	if (d.Origin == 1) != reply {
		d.Src, d.Dst = d.Dst, d.Src
	}
	if !m.Complete() {
		d.State, d.Why = Incomplete, m.Why.String()
	}
	if !reply || namesFragments(x.Request) {
		h.conn.r.putFragmentsBack(d)
	}
	contentType, _ := m.Field("Content-Type")
	unread := asXML(h.conn.r, d, contentType)
	if err := d.open(); err != nil {
		d.State, d.Why = Undecodable, err.Error()
	}
	d.recognize()
	if d.Version == soap.None {
		d.Version = soap.ParseContentType(contentType).BinaryVersion()
	}
	if m.CodingErr != nil {
		unread = fmt.Errorf("content coding %s: %w", m.Coding, m.CodingErr)
	}
	if unread != nil {
		d.Why = strings.TrimSpace(d.Why + " " + unread.Error())
	}
	return d
}

// namesFragments reports whether the reply to a request may have references. Of a request that was
// not captured nothing is known.
func namesFragments(request *flow.HTTPMessage) bool {
	if request == nil {
		return true
	}
	_, named := request.Field(negotiate.FragmentsField)
	return named
}

// negotiation reports whether the message is one by which two ends agree on a session; such
// messages are listed, but not counted.
func (d *Decoded) negotiation() bool {
	return !d.HHFR && (d.Operation.Space == xmlns.HHFRNegotiation)
}

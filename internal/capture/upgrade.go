package capture

import (
	"net/url"
	"slices"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// upgrades reports whether a head asks for a stream, or agrees to one (docs/wire-format.md, section
// 3.1).
func upgrades(m *flow.HTTPMessage) bool {
	return m != nil && slices.Contains(m.Tokens("Upgrade"), negotiate.Protocol) &&
		slices.Contains(m.Tokens("Connection"), "upgrade")
}

// passed reports whether the bytes of a packet, which belong to no HTTP message, are those of a
// stream: then the reply that agreed to it is not in the capture.
func (h *httpReader) passed(dir int, b []byte) bool {
	if h.Heads == 0 || !h.Lost(dir) {
		return false
	}
	if _, ok := frame.Opening(b); ok {
		return true
	}
	_, _, ok := frame.FindSync(b, 0)
	return ok
}

// unseen begins a stream with a packet that shows one. Only a hello shows where its direction
// begins.
func (c *capturedConn) unseen(dir int, b []byte, m flow.Mark) error {
	if err := c.tunnel(); err != nil {
		return err
	}
	for i := range c.ways {
		if i != dir || !frame.BeginsStream(b) {
			c.ways[i].tape.gap(-1)
		}
	}
	w := &c.ways[dir]
	if err := w.taped(0, b); err != nil {
		return err
	}
	w.octets(0, b, m)
	return c.r.failed()
}

// upgrade makes the reply to a request a message of the stream: the one to the first exchange of
// lane 0.
func (h *httpReader) upgrade(x *flow.HTTPExchange) {
	h.conn.upgraded = true
	p, _ := x.User.(*plain)
	if p == nil {
		return // not there
	}
	if u, err := url.ParseRequestURI(x.Request.Target()); err == nil {
		h.conn.service = serviceOf(u)
	}
	options := x.Request.Method() == "OPTIONS"
	if p.waits && !options {
		h.give(p, p.request)
	}
	if p.waits && options {
		h.other(p.request)
	}
	if p.waits = false; p.number > 0 && !options {
		*h.conn.sequence(h.Requests, 0) = sequence{
			last: 1,
			runs: []numberRun{{exchange: 1, count: 1, number: p.number}},
		}
	}
}

// tunnel starts over where HTTP ends.
func (c *capturedConn) tunnel() error {
	h := c.http
	c.http = nil
	if x := h.Waiting(); h.Switch == nil && x != nil && upgrades(x.Request) {
		h.upgrade(x)
	}
	h.Close([2]flow.End{})
	if h.soap > 0 && h.others > 0 {
		c.r.summary.Others[OtherRequests] += h.others
	}
	for i := range c.ways {
		w := &c.ways[i]
		w.looks.end()
		w.tape.drop()
		w.in, w.looks, w.tape, w.tail, w.total, w.since = nil, frames{all: &c.r.looks}, tape{}, nil, 0, 0
		if b, m := h.Rest(i); len(b) > 0 {
			if err := w.taped(0, b); err != nil {
				return err
			}
			w.octets(0, b, m)
		}
	}
	return c.r.failed()
}

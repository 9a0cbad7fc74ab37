package frame

import (
	"github.com/hhfr/hhfr/internal/bin"
)

// MessageState is what the fragments of a message so far say about the next. The zero value is that
// before the first.
type MessageState uint8

// The bits of a state; but for Begun, those of an open message in a sync (section 6).
const (
	HeadGoesOn MessageState = 2
	BodyBegun  MessageState = 4
	BodyIsText MessageState = 8
	Begun      MessageState = 16
	// bodyPlain: the body is under number 0. A sync does not say that.
	bodyPlain MessageState = 32

	stateMask = HeadGoesOn | BodyBegun | BodyIsText
)

func (m MessageState) has(bit MessageState) bool { return m&bit != 0 }

func (m *MessageState) set(bit MessageState, on bool) {
	if *m &^= bit; on {
		*m |= bit
	}
}

// follow takes note of a fragment with these parts.
func (m *MessageState) follow(p *Parts) {
	m.set(Begun, true)
	m.set(HeadGoesOn, p.HasHead && !p.Head.Last)
	if p.HasBody {
		m.set(BodyBegun, true)
		m.set(BodyIsText, p.Body.Text)
		if p.Body.First {
			m.set(bodyPlain, p.Body.Shape == 0)
		}
	}
}

// RawPart is one segment of head or body, as it lies in a payload. First: the part begins here,
// under shape number Shape. Last: it ends here. Text: a segment of section 10.6. It aliases the
// payload.
type RawPart struct {
	First, Last, Text bool
	// Plain: the number stands for nothing yet; the part is text, of which it will be the shape.
	Plain   bool
	Shape   uint64
	Segment []byte
}

// Parts are what a payload holds: up to one segment of the head and one of the body.
type Parts struct {
	HasHead, HasBody bool
	Head, Body       RawPart
}

// cut takes the payload of the message's next fragment apart (section 5, "Payload"; section 10.6),
// into p, which is empty. at is the offset of the payload's first octet. After an error (an
// *[Error]) neither state nor p must be used again.
func (m *MessageState) cut(f *Data, p *Parts, at int64) error {
	c := bin.NewCursor(f.Payload, at)
	return m.take(&c, f, p)
}

// take is cut with the cursor of the payload.
func (m *MessageState) take(c *bin.Cursor, f *Data, p *Parts) error {
	at := c.At()
	switch {
	case m.has(Begun) && f.Head != m.has(HeadGoesOn):
		return fault(BadState, at, "head segment missing or out of place")
	case m.has(BodyIsText) && !f.Text:
		return fault(BadState, at, "fragment without T after text")
	}
	begins := !f.Head
	if f.Head {
		p.HasHead, p.Head.First = true, f.First
		if f.First {
			c.Name("shape number of the head", bin.Uint)
			p.Head.Shape = c.Uvarint()
		}
		c.Name("length of the head segment", bin.Uint)
		size := c.Uvarint()
		if c.Err() == nil && size/2 > uint64(c.Len()) {
			return fault(Truncated, c.At(), "head segment of %d octets, %d there", size/2, c.Len())
		}
		more := size&1 != 0
		m.set(HeadGoesOn, more)
		p.Head.Last = !more
		c.Name("head segment", bin.Raw)
		p.Head.Segment = c.Take(int(size / 2))
		begins = !more && c.Len() > 0
		if more && c.Len() > 0 {
			return fault(Trailing, c.At(), "%d octets after a head that goes on", c.Len())
		}
	}
	m.set(Begun, true)
	if begins {
		p.HasBody, p.Body.First, p.Body.Last, p.Body.Text = true, !m.has(BodyBegun), f.Last, f.Text
		if p.Body.First {
			c.Name("shape number of the body", bin.Uint)
			p.Body.Shape = c.Uvarint()
		}
		c.Name("body segment", bin.Raw)
		p.Body.Segment = c.Rest()
		m.set(BodyBegun, true)
		m.set(BodyIsText, f.Text)
		if p.Body.First {
			m.set(bodyPlain, p.Body.Shape == 0)
		}
	}
	switch {
	case c.Err() != nil:
		return own(c.Err())
	case p.Body.Text && (p.Body.First || m.has(bodyPlain)):
		return fault(BadState, at, "text in place of the rest, and there is no shape that it could be the rest of")
	case f.Last && !m.has(BodyBegun):
		return fault(BadState, at, "last fragment, and no body has begun")
	case f.Text && !p.HasBody:
		return fault(BadState, at, "text without body")
	}
	return nil
}

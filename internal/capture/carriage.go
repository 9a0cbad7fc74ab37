package capture

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/wire"
)

// Carriage is how a message of a stream was carried.
type Carriage struct {
	// Payload is what its data frames have without their framing, in bytes.
	Payload    int64
	Head, Body CarriedPart
}

// CarriedPart is how a head or body was carried; the zero value: it was not.
type CarriedPart struct {
	// Shape is what all its messages have in common; nil: it went as text.
	Shape *shape.Shape
	// Segments counts the segments of its content. Packed is what these took on the wire, and
	// Content what they are unpacked, in bytes.
	Segments        int
	Packed, Content int64
	// Places is what each place of the shape cost, in bits before compression, as
	// [columns.Bill.Add] says it; empty: it did not go in columns.
	Places []int64
}

// carry notes a segment.
func (c *CarriedPart) carry(p *wire.Part) {
	if !p.There {
		return
	}
	if p.Program != nil {
		c.Shape = p.Program.Shape()
	}
	if p.Bill != nil {
		c.Places = p.Bill.Add(c.Places, p.Program)
	}
	c.Segments++
	c.Packed += int64(p.Packed)
	c.Content += int64(len(p.Content))
}

// carry notes a fragment.
func (c *Carriage) carry(ev *wire.Event) {
	c.Payload = ev.Message.Payload
	c.Head.carry(&ev.Head)
	c.Body.carry(&ev.Body)
}

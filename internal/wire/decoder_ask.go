package wire

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
)

// ask has whoever drives the decoder ask for the shape behind a number, if anything waits for it.
func (d *Decoder) ask(number uint64, e *numberedShape) error {
	if d.cfg.MaxHeld < 0 {
		return nil
	}
	d.shapes.asked.Put(number, e)
	if n := d.shapes.asked.Len(); n > d.cfg.MaxShapes+maxAsked {
		return &Error{Code: Limits, At: d.at, Err: fmt.Errorf("%d shapes were asked for and did not come", n)}
	}
	d.emit(Event{Kind: Lacks, Number: number})
	return nil
}

// unread has the sender asked for the shape that a part announces by its text, which was not read.
func unread(d *Decoder, m *IncomingMessage, i int, s *frame.RawPart) error {
	e := m.parts[i].entry
	if !s.Plain || e.program != nil || !e.unread {
		return nil
	}
	e.unread = false
	return d.ask(s.Shape, e)
}

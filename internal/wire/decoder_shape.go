package wire

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
)

// shape takes what the sender says of a number of its own, or asks of one of the other direction.
func (d *Decoder) shape(f frame.Shape) error {
	switch f.Form {
	case frame.Unknown:
		d.emit(Event{Kind: Asked, Number: f.Number})
		return nil
	case frame.Reference:
		e, err := d.stands(f.Number, entryOf(f.Fingerprint, d.cfg.Shapes.Find(f.Fingerprint)))
		if err != nil {
			return err
		}
		if e.program == nil {
			return d.ask(f.Number, e)
		}
		return nil
	}
	if d.joined && f.Offset > 0 && !d.shapes.pieces.Begun(f.Number) {
		if f.Offset+uint64(len(f.Piece)) < f.Total {
			return nil
		}
		_, err := d.stands(f.Number, &numberedShape{}) // its first pieces came before
		return err
	}
	packed, err := d.shapes.pieces.Add(f, d.at)
	if err != nil || packed == nil {
		return err
	}
	e, err := d.shapes.define(packed)
	if err != nil {
		return &Error{Code: BadShape, At: d.at, Err: fmt.Errorf("number %d: %w", f.Number, err)}
	}
	if e, err = d.stands(f.Number, e); err == nil && e.base != nil && e.program == nil {
		err = d.ask(f.Number, e)
	}
	return err
}

// stands has a number stand for a shape. A number that waited for this one has it now; what waits
// for another that the number stood for will never be joined. It gives what the number stands for.
func (d *Decoder) stands(number uint64, e *numberedShape) (*numberedShape, error) {
	old := d.shapes.entries.Get(number)
	if old == nil {
		old = d.shapes.asked.Get(number)
	}
	switch {
	case old == nil:
	case old.awaits(e):
		d.shapes.complete(old, e.program)
		e = old
	case old.same(e):
		e = old // a repetition; what is open uses it
	case old.uses > 0 && old.named && e.named && old.name != e.name:
		return nil, fmt.Errorf("number %d stands for another shape, and an open message uses it", number)
	}
	d.shapes.asked.Delete(number)
	if err := d.shapes.set(number, e); err != nil {
		return nil, &Error{Code: Limits, At: d.at, Err: err}
	}
	if old != nil && old != e && old.program == nil && !old.unread && d.held.waits(old) {
		if err := d.giveUp(); err != nil {
			return nil, err
		}
	}
	return e, d.release()
}

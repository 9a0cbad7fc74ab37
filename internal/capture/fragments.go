package capture

import (
	"cmp"
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/soap"
)

// putFragmentsBack makes a message of plain SOAP whole: it puts back what it refers to in a context
// store.
func (r *Reader) putFragmentsBack(d *Decoded) {
	if d.content == nil || d.State != Unchecked {
		return
	}
	start, err := d.content.Start()
	if err != nil || !unchanging.Refers(start) {
		return
	}
	r.need()
	by, fragments, err := r.contexts.restorer.Restore(r.shapes.ctx, start)
	var lost *unchanging.Unrestored
	if errors.As(err, &lost) {
		d.LacksContext = cmp.Or(lost.URI, lost.Reference)
		seen := soap.Recognize(start)
		d.Version, d.Operation = seen.Version, seen.Operation
		d.State, d.Why = Undecodable, "a fragment that it refers to is not put back: "+lost.Err.Error()
		d.couldNotRead(failureOf(lost.Err))
		d.content.Free()
		return
	}
	if fragments == 0 {
		return
	}
	rest := d.content.Reader()
	whole := r.bodies.Body()
	_, err = io.CopyN(io.Discard, rest, int64(len(start)))
	if err == nil {
		_, err = whole.Write(by)
	}
	if err == nil {
		_, err = io.Copy(whole, rest)
	}
	if err != nil {
		d.State, d.Why = Undecodable, err.Error()
	}
	d.content.Free()
	d.content = whole
}

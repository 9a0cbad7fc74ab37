package wire

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
)

// sync checks what came since the one before, and goes on from this one.
func (d *Decoder) sync(f frame.Sync, n int) error {
	if d.known && (f.Word != d.word || f.Origin() != d.origin) || d.following && f.Offset != uint64(d.at) {
		return &Error{Code: WrongCheck, At: d.at,
			Err: errors.New("a sync that is not of this direction, or not at its place")}
	}
	if err := supported(f.Origin()); err != nil {
		return err
	}
	if len(f.Shapes) > d.cfg.MaxShapes {
		return &Error{Code: Limits, At: d.at, Err: fmt.Errorf("more than %d shape numbers", d.cfg.MaxShapes)}
	}
	var v Verdict
	if d.following {
		right, known := d.checks.Agree(f)
		v = d.verdict(right && d.shapes.stand(f.Shapes), known)
	}
	d.sure = d.sure || d.following
	if d.following && v.Right {
		d.checks.Next(f)
	} else {
		d.lose()
		d.checks.Seed(f)
		d.joined = true
	}
	d.known, d.following, d.floating, d.word, d.origin = true, v.Right || len(f.Open) < frame.MaxOpen, false, f.Word,
		f.Origin()
	d.at = int64(f.Offset)
	d.numbering.Sync(f)
	d.shapes.list(f.Shapes)
	d.lanes.next(&d.held)
	d.syncEnd = d.at + int64(n)
	d.emit(Event{Kind: Synced, Verdict: v})
	return d.release()
}

// search looks for the beginning of the direction, or for a sync, and tells how many bytes are
// passed over. It is false when what b begins with is to be decoded.
func (d *Decoder) search(b []byte) (passed int, searching bool) {
	if !d.known && d.at == 0 && !d.floating {
		if frame.MayOpen(b) {
			if _, ok := frame.Opening(b); ok || frame.Incomplete(b) {
				return 0, false
			}
		}
	}
	for from := 0; ; {
		at, s, ok := frame.FindSync(b, from)
		if !ok {
			return frame.SyncFree(b, from), true
		}
		if d.mayJoin(s, d.at+int64(at)) {
			return at, at > 0
		}
		from = at + 1
	}
}

// mayJoin judges a sync that was found at an offset.
func (d *Decoder) mayJoin(s frame.Sync, at int64) bool {
	if len(s.Open) >= frame.MaxOpen {
		return false
	}
	return !d.known || s.Word == d.word && s.Origin() == d.origin && (d.floating && s.Offset >= uint64(d.at) ||
		s.Offset == uint64(at))
}

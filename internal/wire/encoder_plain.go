package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/shape/recall"
)

const (
	// leastPlain and mostPlain are from and up to how many octets on content is compared.
	leastPlain, mostPlain = 24, 2 << 10
	// plainLooks is how many messages under a shape are compared at least, of which the first half
	// counts for nothing, as they pay for what is remembered of them; mostLooks how many where both
	// ways take about the same. plainRest is how many go then until that is done once more.
	plainLooks, mostLooks, plainRest = 4, 16, 256
	// mostPlains is for how many shapes a lane compares.
	mostPlains = 8
)

// plainWay gives that of the bodies of a shape on the lane of a message; nil: there is none.
func (e *Encoder) plainWay(m *Outgoing, at *partOut, size int) *plainWay {
	if !at.remember || at.fresh || e.cfg.Origin.Stages&Zstd == 0 || size < leastPlain || size > mostPlain {
		return nil
	}
	lane := e.lanes.of(m.Lane)
	w := lane.plain.Get(at.sent)
	if w == nil && lane.plain.Len() < mostPlains {
		w = &plainWay{beside: new(recall.History)}
		lane.plain.Put(at.sent, w)
	}
	return w
}

// asItIs appends a segment as it is, by the window of its lane, which may take so much more until
// it has some; false: it does not go so.
func (e *Encoder) asItIs(
	dst []byte, w *plainWay, m *Outgoing, content []byte, room int, now time.Time,
) ([]byte, bool) {
	lane, from := e.lanes.of(m.Lane), len(dst)
	if !lane.affords(len(content), now) {
		return dst, false
	}
	out, done := e.cfg.Compression.recalled(append(append(dst, 0), content...), from, &lane.window,
		min(room, 4+len(content)/16))
	if !done {
		return dst, false
	}
	lane.used, lane.awake = now, true
	if w.seen++; w.seen == plainRest {
		*w = plainWay{beside: new(recall.History)}
	}
	return out, true
}

// look compares a message that went packed.
func (w *plainWay) look(e *Encoder, lane *sentLane, content []byte, packed int, now time.Time) {
	w.seen++
	if w.beside == nil {
		if w.seen == plainRest {
			*w = plainWay{beside: new(recall.History)}
		}
		return
	}
	if !lane.affords(len(content), now) {
		w.seen--
		return
	}
	plain := e.cfg.Compression.lenRecalled(w.beside, content)
	if w.seen <= plainLooks/2 {
		return
	}
	w.packed, w.plain = w.packed/2+packed, w.plain/2+plain
	switch {
	case w.seen < plainLooks:
	case w.plain < w.packed*15/16:
		*w = plainWay{taken: true}
	case w.plain > w.packed*5/4 || w.seen == mostLooks:
		*w = plainWay{}
	}
}

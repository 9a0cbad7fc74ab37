package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/shape/recall"
)

const (
	// leastUnpacked and mostUnpacked are from and up to how many octets on content is compared.
	leastUnpacked, mostUnpacked = 24, 2 << 10
	// unpackedLooks is how many messages under a shape are compared at least, of which the first
	// half counts for nothing, as they pay for what is remembered of them; mostLooks how many where
	// both ways take about the same. unpackedRest is how many go then until that is done once more.
	unpackedLooks, mostLooks, unpackedRest = 4, 16, 256
	// mostUnpackedTrials is for how many shapes a lane compares.
	mostUnpackedTrials = 8
)

// unpackedTrial gives that of the bodies of a shape on the lane of a message; nil: there is none.
func (e *Encoder) unpackedTrial(m *Outgoing, at *partOut, size int) *unpackedTrial {
	if !at.remember || at.fresh || e.cfg.Origin.Stages&Zstd == 0 || size < leastUnpacked || size > mostUnpacked {
		return nil
	}
	lane := e.lanes.of(m.Lane)
	w := lane.unpacked.Get(at.sent)
	if w == nil && lane.unpacked.Len() < mostUnpackedTrials {
		w = &unpackedTrial{beside: new(recall.History)}
		lane.unpacked.Put(at.sent, w)
	}
	return w
}

// asItIs appends a segment as it is, by the window of its lane, which may take so much more until
// it has some; false: it does not go so.
func (e *Encoder) asItIs(
	dst []byte, w *unpackedTrial, m *Outgoing, content []byte, room int, now time.Time,
) ([]byte, bool) {
	lane, from := e.lanes.of(m.Lane), len(dst)
	if !lane.affords(len(content), now) {
		return dst, false
	}
	out, done := e.cfg.Compression.recalled(append(append(dst, 0), content...), from, windowOf(e, lane),
		min(room, 4+len(content)/16))
	if !done {
		return dst, false
	}
	lane.used, lane.awake = now, true
	if w.seen++; w.seen == unpackedRest {
		*w = unpackedTrial{beside: new(recall.History)}
	}
	return out, true
}

// look compares a message that went packed.
func (w *unpackedTrial) look(e *Encoder, lane *sentLane, content []byte, packed int, now time.Time) {
	w.seen++
	if w.beside == nil {
		if w.seen == unpackedRest {
			*w = unpackedTrial{beside: new(recall.History)}
		}
		return
	}
	if !lane.affords(len(content), now) {
		w.seen--
		return
	}
	unpacked := e.cfg.Compression.lenRecalled(w.beside, content)
	if w.seen <= unpackedLooks/2 {
		return
	}
	w.packed, w.unpacked = w.packed/2+packed, w.unpacked/2+unpacked
	switch {
	case w.seen < unpackedLooks:
	case w.unpacked < w.packed*15/16:
		*w = unpackedTrial{taken: true}
	case w.unpacked > w.packed*5/4 || w.seen == mostLooks:
		*w = unpackedTrial{}
	}
}

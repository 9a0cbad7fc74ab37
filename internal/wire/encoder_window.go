package wire

import (
	"math"
	"time"

	"github.com/hhfr/hhfr/internal/shape/recall"
)

const (
	// mostRecalled is how much of a part is compressed by a window, in bytes: what goes on is like
	// itself, and a frame takes far less time.
	mostRecalled = 512 << 10
	// leastCompared is from how many octets on a segment of a long part is compressed in both ways.
	// Where a frame is as short, such as of base64, all that goes on has frames.
	leastCompared = 8 << 10
)

// compress makes the segment dst[from:] what travels with the stage [Zstd]. It may take so much at
// most if it does not get smaller.
func (e *Encoder) compress(
	dst []byte, from int, m *Outgoing, at *partOut, packed bool, most int, now time.Time,
) []byte {
	lane, size := e.lanes.of(m.Lane), len(dst)-from
	w, longer, tried := e.window(m, at, packed, size), 0, lane.trialsOf(packed)
	framed := math.MaxInt // not known
	switch {
	case w == nil:
	case !at.inLane:
		if size >= leastCompared {
			framed = e.cfg.Compression.lenFramed(dst[from:])
		}
	case !packed:
	case lane.affords(size, now):
		tried = nil
		if n := 4 + size/16; !at.fresh && size+n <= most && lane.invests.worth() {
			longer = n
		}
	case !at.fresh:
		w = nil
	}
	dst = e.cfg.Compression.compress(dst, from, packed, w, longer, tried)
	if longer > 0 || tried == nil && len(dst)-from < size {
		lane.invests.note(len(dst)-from < size)
	}
	if w == nil {
		return dst
	}
	if at.recalled += size; framed <= len(dst)-from {
		at.recalled, at.window = mostRecalled+1, nil
	}
	if at.inLane {
		lane.texts += int64(len(dst) - from)
		lane.used, lane.awake = now, true
	}
	return dst
}

// window gives that by which a segment may be compressed; nil: by none. A window takes far more
// time than a frame, and so it is for what is unlike all before: texts, and what is long of the
// first content under a shape on the lane; and, while the lane sends little, for what is long of
// any content. What is like nothing in its place may be like something elsewhere: lists that move
// on by a row.
func (e *Encoder) window(m *Outgoing, at *partOut, packed bool, size int) *recall.History {
	switch {
	case at.recalled > mostRecalled, packed && (size < leastLong || !at.fresh && !at.inLane):
		return nil
	case at.inLane:
		return windowOf(e, e.lanes.of(m.Lane))
	}
	if at.window == nil {
		at.window = new(recall.History)
	}
	return at.window
}

// windowOf is that of a lane, for its next segment. It may get far where the peer reads that.
func windowOf(e *Encoder, lane *sentLane) *recall.History {
	if lane.window.GotFar = nil; e.cfg.Limits.Far {
		lane.window.GotFar = &e.lanes.gotFar
	}
	return &lane.window
}

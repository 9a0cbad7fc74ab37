package wire

import (
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Encoder turns content into the frames of one direction, behind its hello. It appends to a buffer
// that its owner takes. Not safe for concurrent use.
type Encoder struct {
	cfg       EncoderConfig
	at        int64
	buf       []byte
	numbering frame.Numbering
	checks    frame.Checks
	syncEnd   int64
	syncedAt  time.Time
	before    time.Time // of the last data frame
	worth     int64     // how many octets there must be for a sync to be cheap

	shapes sending
	lanes  sentLanes

	payload []byte // of the frame at hand, and a segment of it
	segment []byte
	written []Written
}

// NewEncoder makes the encoder of a direction whose hello took so many octets, at a moment.
func NewEncoder(cfg EncoderConfig, hello int, now time.Time) *Encoder {
	e := &Encoder{cfg: cfg.withDefaults(), at: int64(hello), syncEnd: int64(hello), syncedAt: now, before: now,
		checks: frame.NewChecks(cfg.Origin)}
	e.shapes.init()
	e.Limit(cfg.Limits)
	return e
}

// Bytes are those appended since [Encoder.Reset], Written their frames. They hold until the next
// call.
func (e *Encoder) Bytes() []byte { return e.buf }

func (e *Encoder) Written() []Written { return e.written }

// Reset forgets what was appended, once it is taken.
func (e *Encoder) Reset() { e.buf, e.written = e.buf[:0], e.written[:0] }

// Limit says what the peer's hello states of its limits.
func (e *Encoder) Limit(l frame.Limits) {
	l.MaxShapes = min(l.MaxShapes, maxSyncShapes)
	e.cfg.Limits = l
}

// MaxSegment is the longest segment that fits a fragment, in octets.
func (e *Encoder) MaxSegment() int { return int(e.cfg.Limits.MaxFragment) - SegmentRoom }

// append puts a frame behind the others.
func (e *Encoder) append(f frame.Frame) {
	from := len(e.buf)
	e.buf = f.AppendTo(e.buf)
	e.note(Written{Kind: f.Kind(), Octets: len(e.buf) - from})
}

func (e *Encoder) note(w Written) {
	w.At = e.at
	e.written = append(e.written, w)
	e.at += int64(w.Octets)
}

// Cancel appends a cancel.
func (e *Encoder) Cancel(f frame.Cancel) {
	e.checks.Cancel(f)
	e.append(f)
}

// Ack, Grant and Ask append what is said about the other direction: of a sequence, credit, and that
// a shape is lacking.
func (e *Encoder) Ack(octets []byte)    { e.append(frame.Ack{Octets: octets}) }
func (e *Encoder) Grant(w frame.Window) { e.append(w) }
func (e *Encoder) Ask(number uint64)    { e.append(frame.Shape{Number: number, Form: frame.Unknown}) }

// Close appends the end of the direction.
func (e *Encoder) Close(code frame.CloseCode, text string) {
	e.append(frame.Close{Code: code, Text: text, Messages: e.checks.Messages(), Check: e.checks.Check()})
}

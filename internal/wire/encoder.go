package wire

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// Encoder turns content into the frames of one direction, behind its hello. It appends to a buffer
// that its owner takes. Not safe for concurrent use.
type Encoder struct {
	cfg       EncoderConfig
	at        int64
	numbering frame.Numbering
	checks    frame.Checks
	syncEnd   int64
	syncedAt  time.Time
	before    time.Time // of the last data frame
	priceAt   int64     // behind how many octets the price of a sync is to be taken anew
	resynced  *resynced // nil: it was not

	shapes sending
	lanes  sentLanes

	*encoderRoom // nil while it sleeps
}

// encoderRoom is what an encoder needs only while frames are appended.
type encoderRoom struct {
	buf     []byte
	payload []byte // of the frame at hand, and a segment of it
	segment []byte
	written []Written
}

var encoderRooms = sync.Pool{New: func() any { return new(encoderRoom) }}

// maxRoom is the longest batch whose memory is kept for others, in bytes.
const maxRoom = 64 << 10

// Wake and Sleep may stand around calls that append, the bytes of which are taken by then: between
// them the encoder borrows what memory it needs for that. One that is awake stays so.
func (e *Encoder) Wake() {
	if e.encoderRoom == nil {
		e.encoderRoom = encoderRooms.Get().(*encoderRoom)
	}
}

// Sleep gives back what Wake has borrowed.
func (e *Encoder) Sleep() {
	if e.Reset(); cap(e.buf) <= maxRoom {
		encoderRooms.Put(e.encoderRoom)
	}
	e.encoderRoom = nil
}

// NewEncoder makes the encoder of a direction whose hello took so many octets, at a moment.
func NewEncoder(cfg EncoderConfig, hello int, now time.Time) *Encoder {
	e := &Encoder{cfg: cfg.withDefaults(), at: int64(hello), syncEnd: int64(hello), syncedAt: now, before: now,
		checks: frame.NewChecks(cfg.Origin), encoderRoom: new(encoderRoom)}
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

// Ack, Keep, Grant, Ask and Want append what is said about the other direction: of a sequence, of
// its long messages, credit, that a shape is lacking, and that a decoder is to begin there.
func (e *Encoder) Ack(octets []byte)    { e.append(frame.Ack{Octets: octets}) }
func (e *Encoder) Keep(f frame.Kept)    { e.append(f) }
func (e *Encoder) Grant(w frame.Window) { e.append(w) }
func (e *Encoder) Ask(number uint64)    { e.append(frame.Shape{Number: number, Form: frame.Unknown}) }
func (e *Encoder) Want()                { e.append(frame.Resync{}) }

// Close appends the end of the direction.
func (e *Encoder) Close(code frame.CloseCode, text string) {
	e.append(frame.Close{Code: code, Text: text, Messages: e.checks.Messages(), Check: e.checks.Check()})
}

// Package wire has the two machines of a direction of a stream (docs/wire-format.md): an [Encoder],
// which turns content into frames, and a [Decoder], which turns bytes into events. They have no
// socket, clock, goroutine or lock. Live streams, captures, files and measurements drive the same
// two.
//
// A machine owns what its direction knows: the numbers of shapes, the numbers of lanes and
// exchanges, checks and syncs, and what lanes remember between messages. Content comes from, and
// goes to, the split and join of package shape; nothing here reads a message.
package wire

import (
	"errors"

	faults "github.com/hhfr/hhfr/internal/fault"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Shapes is where the shapes behind fingerprints are, for one end. It must be safe for concurrent
// use.
type Shapes interface {
	// Find gives the shape with a fingerprint, compiled; nil if it is not here.
	Find(fp shape.Fingerprint) *program.Program
	// Keep keeps a shape that came, and gives it compiled.
	Keep(s *shape.Shape) *program.Program
}

// Emit is handed the segments of a message in order, those of the head first. What a segment holds
// is good until it returns.
type Emit func(head bool, p Part) error

// SplitStep cuts one message into segments for an [Emit]: its head, if it has one, then its body,
// by All, or by Write as it comes and Close. Errors are those of Emit. It belongs to one goroutine
// at a time.
type SplitStep interface {
	Head(head []byte) error
	All(body []byte) error
	Write(octets []byte) error
	// Flush hands out what was written so far; so many octets of the texts behind the last item are
	// among it, which the receiver is told ([Encoder.Flush]). force: also what had better wait for
	// the octets that follow.
	Flush(force bool) (settled int64, err error)
	Close() error
	// Free gives its buffers back; it must not be used after it.
	Free()
}

// Code tells kinds of [Error] apart. Those of broken rules of frames are *[frame.Error].
type Code uint8

const (
	// Unannounced: a shape number that stands for nothing.
	Unannounced Code = iota + 1
	// BadShape: what came for a shape is none.
	BadShape
	// BadContent: a segment that nothing packs to.
	BadContent
	// WrongCheck: a sync or close does not agree with what came.
	WrongCheck
	// Limits: more than this end said it takes.
	Limits
	// OutOfPlace: a frame where it must not stand.
	OutOfPlace
	// Lacking: the shape of the message is not here.
	Lacking
	// Forgotten: what the lane remembered is gone, since messages before were given up.
	Forgotten
)

var codeNames = map[Code]string{Unannounced: "number stands for no shape", BadShape: "not a shape",
	BadContent: "malformed content", WrongCheck: "check does not agree",
	Limits: "over the limits", OutOfPlace: "frame out of place", Lacking: "shape is missing",
	Forgotten: "it builds on messages that were given up"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is the offset in the direction of the first octet of the
// frame it is about.
type Error = faults.At[Code]

// fault is an error of the frame that begins at an offset; one of this package or of package frame
// stays as it is.
func fault(code Code, at int64, err error) error {
	var own *Error
	var f *frame.Error
	if errors.As(err, &own) || errors.As(err, &f) {
		return err
	}
	return &Error{Code: code, At: at, Err: err}
}

// Part is a segment of the content of a head or body.
type Part struct {
	There bool
	// First and Last segment of the part; Text: it goes on as text (section 10.6).
	First, Last, Text bool
	// Lasting: Content stays as it is. That of any other part is good until its [Emit] returns.
	Lasting bool
	// Reset: it came, and ends what its lane remembered.
	Reset bool
	// Program is what the part is joined by; nil: by nothing, the content is the text.
	Program *program.Program
	Content []byte
	// Packed is how many octets the content took on the wire, if it came.
	Packed int
	// Bill is what places cost, if that is wanted and the content came in columns.
	Bill *columns.Bill
}

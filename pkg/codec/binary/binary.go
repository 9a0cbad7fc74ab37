// Package binary is the representation `binary`: messages as shape and content (docs/wire-format.md, sections 4 and 9 to 11).
//
// A [Book] holds the shapes that one end knows, over all its streams; it finds the shape of a message, and learns one where there is none. A [Coder] is the codec of one
// stream: the tables of both directions, and split and join by them. It takes the place of streamer.Coder without importing it.
package binary

import (
	"context"
	"fmt"
)

// Fingerprint names a shape; see shape.Fingerprint.
type Fingerprint = [32]byte

// Shapes is where the shapes behind fingerprints are kept; ctxstore.Shapes is one. It must be safe for concurrent use.
type Shapes interface {
	// Get returns a shape's serialization; an error if it is not there.
	Get(ctx context.Context, fp Fingerprint) ([]byte, error)
	// Put keeps a shape.
	Put(ctx context.Context, serialization []byte) (Fingerprint, error)
}

// Options are those of one stream's coder. The zero value works.
type Options struct {
	// Text makes every message travel as text: the representation `xml`.
	Text bool
	// PeerKnows are fingerprints of shapes that the other end said it has; they are announced by reference.
	PeerKnows []Fingerprint
	// Refer makes every shape be announced by reference: whoever reads has the store.
	Refer bool
	// Without are stages, of [Columns], [Memory] and [Zstd], that this end does not do. There is no Memory without Columns.
	Without uint64
	// MaxShapes and MaxShapeBytes bound the table of the receiving direction, in numbers and octets of serialization; 0: 1024 and 4 MiB. Less
	// than 16 and 64 KiB count as that: so much the other end may use before it has read what this one keeps.
	MaxShapes     int
	MaxShapeBytes int64
}

const (
	defaultShapes     = 1024
	defaultShapeBytes = 4 << 20
	// shapesBeforeHello and octetsBeforeHello are how much of the other end's table is used before its hello is read.
	shapesBeforeHello = 16
	octetsBeforeHello = 64 << 10
	// maxPeerKnows bounds the shapes that the other end is known to have.
	maxPeerKnows = 1 << 16
	// bookShapes and bookBytes bound a book: shapes, and about what they take in memory, compiled, in octets. Beyond, the shape used longest ago goes.
	bookShapes = 4096
	bookBytes  = 16 << 20
	// window is how much of a message is looked at before its shape is chosen, in octets.
	window = 64 << 10
	// learnWindow is how much of a message the learner looks at, in octets; of a longer one the rest is expected to go on alike.
	learnWindow = 4 << 20
	// shapeWorth is the length from which on a body has its shape announced when it is the first of its kind, in octets. The shape of a shorter one is longer than the
	// body: it goes with the second. No SOAP envelope is that short.
	shapeWorth = 100
	// maxTries bounds the shapes that are tried on one message.
	maxTries = 64
	// storeTimeout bounds one access to the store, in seconds, so that a store that hangs cannot hold up a stream for ever.
	storeTimeout = 10
)

// Code tells kinds of [Error] apart.
type Code uint8

const (
	// Unannounced: a number that stands for no shape.
	Unannounced Code = iota + 1
	// BadShape: a serialization that is none.
	BadShape
	// Limits: more shapes than the receiving end said it keeps.
	Limits
	// Store: the store failed.
	Store
)

var codeNames = map[Code]string{Unannounced: "number stands for no shape", BadShape: "not a shape", Limits: "over the limits of the shape table", Store: "context store"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. Number is the shape number it is about, 0 if none.
type Error struct {
	Code   Code
	Number uint64
	Err    error
}

func (e *Error) Error() string {
	s := e.Code.String()
	if e.Number > 0 {
		s = fmt.Sprintf("shape number %d: %s", e.Number, s)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

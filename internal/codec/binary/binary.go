// Package binary is the representation `binary`: messages as shape and content
// (docs/wire-format.md, sections 4 and 9 to 11).
//
// A [Book] holds the shapes that one end knows, over all its streams; it finds the shape of a
// message, and learns one where there is none. A [Coder] is the codec of one stream: it cuts
// messages by shapes and learns new ones; what a direction knows of shapes is the business of
// package wire.
package binary

import (
	"context"
)

// Fingerprint names a shape; see shape.Fingerprint.
type Fingerprint = [32]byte

// Shapes is where the shapes behind fingerprints are kept; ctxstore.Shapes is one. It must be safe
// for concurrent use.
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
	// PeerKnows are fingerprints of shapes that the peer said it has; they are announced by
	// reference. Those used last stand last: a message that fits no shape at hand is tried on them
	// first.
	PeerKnows []Fingerprint
	// Refer says that whoever reads has the store.
	Refer bool
	// Describe, if given, may put a shape of a message that is whole and of no known kind into the
	// book, and reports whether it did. It may be called concurrently, and must not keep the
	// message.
	Describe func(message []byte) bool
	// Description, if given, widens what is learned from messages of new kinds. Shared: the peer
	// has the same, so that shapes may stand on its own shapes ([Coder.Share]).
	Description Describer
	Shared      bool
	// Without are stages, of [wire.Columns], [wire.Memory], [wire.Zstd] and [wire.Plain], that
	// this end does not do. There is no Memory without Columns, and no Plain without Zstd.
	Without uint64
	// MaxShapes and MaxShapeBytes bound the shapes that the stream carried and that are kept for
	// it, in number and bytes of serialization; 0: 1024 and 4 MiB.
	MaxShapes     int
	MaxShapeBytes int64
}

const (
	defaultShapes     = 1024
	defaultShapeBytes = 4 << 20
	// maxPeerKnows bounds the shapes that the peer is known to have.
	maxPeerKnows = 1 << 16
	// bookShapes and bookBytes bound a book: shapes, and about what they take in memory, compiled,
	// in bytes. Beyond, the shape used longest ago goes.
	bookShapes = 4096
	bookBytes  = 16 << 20
	// window is how much of a message is looked at before its shape is chosen, in bytes.
	window = 64 << 10
	// learnWindow is how much of a message the learner looks at, in bytes; of a longer one the
	// rest is expected to go on alike.
	learnWindow = 4 << 20
	// maxLearners is of how many messages of a stream at once that much is kept: bodies that nobody
	// reads, or that never end, must not have it all.
	maxLearners = 4
	// shapeWorth is the length from which on a body has its shape announced when it is the first of
	// its kind, in bytes. The shape of a shorter one is longer than the body: it goes with the
	// second. No SOAP envelope is that short.
	shapeWorth = 100
	// readAtOnce is how many shapes that the peer has are read from the store at a time: what an
	// offer names, roughly, and a millisecond of work.
	readAtOnce = 16
	// textualContent: a long body whose content is more than that part of it is hardly numbers.
	textualContent = 8
	// plainRows: a plain shape that is so many times as long as what is learned has many rows
	// written out.
	plainRows = 3
	// leastMarkup is how much markup content has at least that has much of it, in bytes.
	leastMarkup = 16
	// mostMarkup is how long a body is of which that is looked at, in bytes.
	mostMarkup = 512
	// maxTries bounds the shapes that are tried on one message.
	maxTries = 64
	// storeTimeout bounds one access to the store, in seconds, so that a store that hangs cannot
	// hold up a stream for ever.
	storeTimeout = 10
)

// Error is the error of this package: the store failed.
type Error struct{ Err error }

func (e *Error) Error() string { return "context store: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

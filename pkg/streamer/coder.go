package streamer

import (
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// Coder is the codec of one stream: it cuts messages into content, and knows shapes. Package
// codec/binary has one. Its methods are called concurrently.
type Coder interface {
	// Shapes are those here, and Peer tells which the peer has.
	wire.Shapes
	wire.Peer
	// Stages are those that this end can do to content on its way (docs/wire-format.md, section 3).
	Stages() uint64
	// PeerHas lists shapes that the peer has for sure, at most so many.
	PeerHas(most int) []shape.Fingerprint
	// Compression is what the streams of this end share; nil: nothing.
	Compression() *wire.Compression
	// Split begins to cut a message of a lane into segments of at most most bytes each.
	Split(lane uint64, most int, emit wire.Emit) wire.Splitter
}

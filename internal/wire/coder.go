package wire

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

// Coder is the codec of one stream: it cuts messages into content, and knows shapes. Package
// internal/codec/binary has one. Its methods are called concurrently.
type Coder interface {
	// Shapes are those here, and Peer tells which the peer has.
	Shapes
	Peer
	// Stages are those that this end can do to content on its way (docs/wire-format.md, section 3).
	Stages() uint64
	// PeerHas lists shapes that the peer has for sure, at most so many, those carried last at the
	// end.
	PeerHas(most int) []shape.Fingerprint
	// Compression is what the streams of this end share; nil: nothing.
	Compression() *Compression
	// Split begins to cut a message of a lane into segments of at most most bytes each.
	Split(lane uint64, most int, emit Emit) SplitStep
	// Restart gives a lane to another client: nothing that was cut for the one before decides how
	// what begins from now on is cut, or how long that takes.
	Restart(lane uint64)
}

// OwnShapes are [Shapes] that know the own shapes of descriptions (section 4.1).
type OwnShapes interface {
	// Styled returns the serialization of an own shape in a style; nil if it is not known.
	Styled(name transit.OwnName, style string) []byte
}

// DescribedPeer is a [Peer] that has descriptions of messages in common with this end.
type DescribedPeer interface {
	// Own returns the own shape that both ends have of what a shape is described by; nil: there is
	// none.
	Own(p *program.Program) *transit.Own
}

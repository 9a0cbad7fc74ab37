package negotiate

import (
	"context"
	"math"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// CoderSpec is what a session agreed on that its coder must know.
type CoderSpec struct {
	// Representation is the number in hello (docs/wire-format.md, section 3): 1 binary, 2 xml.
	Representation uint64
	// Limits are this end's, as the stream states them; zero fields mean the stream's defaults.
	Limits streamer.Limits
	// PeerKnows are fingerprints of shapes that the other end has, so that they can be referred to.
	PeerKnows [][32]byte
}

// Coders makes the coder of one end of one stream. It may be called concurrently. A coder that has a method PeerLimits(shapes int, octets int64)
// is told by it what the other end's hello says of its table of shapes.
type Coders func(context.Context, CoderSpec) (streamer.Coder, error)

// BookCoders makes coders that share the shapes of a book. Those that the other end has are tried first on messages.
func BookCoders(book *binary.Book) Coders {
	return func(ctx context.Context, spec CoderSpec) (streamer.Coder, error) {
		book.Load(ctx, spec.PeerKnows)
		return book.Coder(binary.Options{
			Text: representations[0].number != spec.Representation, PeerKnows: spec.PeerKnows,
			MaxShapes: spec.Limits.MaxShapes, MaxShapeBytes: spec.Limits.MaxShapeBytes,
		}), nil
	}
}

// tellLimits passes on what a hello says of its end's table.
func tellLimits(c streamer.Coder, h streamer.Hello) {
	if c, ok := c.(interface{ PeerLimits(int, int64) }); ok {
		c.PeerLimits(int(min(h.Limits.MaxShapes, math.MaxInt32)), int64(min(h.Limits.MaxShapeBytes, math.MaxInt64)))
	}
}

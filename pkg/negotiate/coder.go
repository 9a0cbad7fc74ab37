package negotiate

import (
	"bytes"
	"context"
	"io"
	"math"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
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
	// Schema describes the messages that this end sends; nil: nothing does.
	Schema *schema.Schema
}

// Coders makes the coder of one end of one stream. It may be called concurrently. A coder that has a method PeerLimits(shapes int, octets int64)
// is told by it what the other end's hello says of its table of shapes.
type Coders func(context.Context, CoderSpec) (streamer.Coder, error)

// BookCoders makes coders that share the shapes of a book. Those that the other end has are tried first on messages. The first message that a schema
// describes gets a shape by it.
func BookCoders(book *binary.Book) Coders {
	return func(ctx context.Context, spec CoderSpec) (streamer.Coder, error) {
		book.Load(ctx, spec.PeerKnows)
		text := representations[0].number != spec.Representation
		coder := book.Coder(binary.Options{
			Text: text, PeerKnows: spec.PeerKnows,
			MaxShapes: spec.Limits.MaxShapes, MaxShapeBytes: spec.Limits.MaxShapeBytes,
		})
		if spec.Schema == nil || text {
			return coder, nil
		}
		d := &describedCoder{Coder: coder, book: book, schema: spec.Schema}
		d.left.Store(describedTries)
		return d, nil
	}
}

// keepIn gives store and coders where there are none.
func keepIn(store ctxstore.Store, coders Coders, c clock.Clock) (ctxstore.Store, Coders) {
	if store == nil {
		store = memory.New(memory.Config{Clock: c})
	}
	if coders == nil {
		coders = BookCoders(binary.NewBook(ctxstore.Shapes{Store: store}))
	}
	return store, coders
}

// tellLimits passes on what a hello says of its end's table.
func tellLimits(c streamer.Coder, h streamer.Hello) {
	if c, ok := c.(interface{ PeerLimits(int, int64) }); ok {
		c.PeerLimits(int(min(h.Limits.MaxShapes, math.MaxInt32)), int64(min(h.Limits.MaxShapeBytes, math.MaxInt64)))
	}
}

const (
	// describedTries is how many messages are looked at for the one that a schema describes: where there are others, there are few of them first.
	describedTries = 16
	// describedWindow is the longest message that is looked at, in octets; longer ones are learned as others are.
	describedWindow = 256 << 10
)

// describedCoder makes the shape of the first message that a schema describes, and is else the coder of a book.
type describedCoder struct {
	*binary.Coder
	book   *binary.Book
	schema *schema.Schema
	left   atomic.Int32 // tries
}

// Split puts the shape into the book before the message is split.
func (d *describedCoder) Split(lane uint64, head []byte, body io.Reader, most int, emit func(bool, uint64, bool, []byte) error) error {
	if body != nil && d.left.Load() > 0 && d.left.Add(-1) >= 0 {
		start, err := io.ReadAll(io.LimitReader(body, describedWindow+1))
		if err == nil && len(start) <= describedWindow {
			d.describe(start)
			body = bytes.NewReader(start)
		} else {
			body = io.MultiReader(bytes.NewReader(start), failing{err}, body)
		}
	}
	return d.Coder.Split(lane, head, body, most, emit)
}

func (d *describedCoder) describe(message []byte) {
	if r := soap.Recognize(message); r.Operation.Local != d.schema.Root().Name {
		return
	}
	made, drift, err := d.schema.Shape(message)
	if err != nil {
		d.book.Log.Info("message not described by its schema", "schema", d.schema.URI(), "err", err)
		return
	}
	for _, e := range drift {
		d.book.Log.Info("message drifts from its schema", "schema", d.schema.URI(), "err", e)
	}
	d.left.Store(0)
	if _, err := d.book.Keep(made); err != nil {
		d.book.Log.Warn("shape not kept", "err", err)
	}
}

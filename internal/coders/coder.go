// Package coders makes the coder of one end of one stream from what its session agreed on.
package coders

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// CoderSpec is what a session agreed on that its coder must know.
type Spec struct {
	// Representation is the number in hello (docs/wire-format.md, section 3): 1 binary, 2 xml.
	Representation uint64
	// Limits are this end's, as the stream states them; zero fields mean the stream's defaults.
	Limits streamer.Limits
	// PeerKnows are fingerprints of shapes that the peer has, so that they can be referred to.
	PeerKnows [][32]byte
	// Schema describes the messages that this end sends; nil: nothing does.
	Schema *schema.Schema
}

// Coders makes the coder of one end of one stream. It may be called concurrently.
type Func func(context.Context, Spec) (streamer.Coder, error)

// BookCoders makes coders that share the shapes of a book. Those that the peer has are tried
// first on messages. The first message that a schema describes gets a shape by it.
func OfBook(book *binary.Book) Func {
	return func(ctx context.Context, spec Spec) (streamer.Coder, error) {
		book.Load(ctx, spec.PeerKnows)
		opt := binary.Options{
			Text: negotiate.Representations[0].Number != spec.Representation, PeerKnows: spec.PeerKnows,
			MaxShapes: spec.Limits.MaxShapes, MaxShapeBytes: spec.Limits.MaxShapeBytes,
		}
		if spec.Schema != nil {
			d := &describing{book: book, schema: spec.Schema}
			d.left.Store(describedTries)
			opt.Describe = d.describe
		}
		return book.Coder(opt), nil
	}
}

// keepIn gives store and coders where there are none.
func WithDefaults(store ctxstore.Store, coders Func, c clock.Clock) (ctxstore.Store, Func) {
	if store == nil {
		store = memory.New(memory.Config{Clock: c})
	}
	if coders == nil {
		coders = OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
	}
	return store, coders
}

const (
	// describedTries is how many messages are looked at for the one that a schema describes: where
	// there are others, there are few of them first.
	describedTries = 16
	// describedWindow is the longest message that is looked at, in bytes; longer ones are learned
	// as others are.
	describedWindow = 256 << 10
)

// describing makes the shape of the first message that a schema describes.
type describing struct {
	book   *binary.Book
	schema *schema.Schema
	left   atomic.Int32 // tries
}

// describe puts the shape of a message into the book; false if the schema does not describe it.
func (d *describing) describe(message []byte) bool {
	if len(message) > describedWindow || d.left.Load() <= 0 || d.left.Add(-1) < 0 {
		return false
	}
	if r := soap.Recognize(message); r.Operation.Local != d.schema.Root().Name {
		return false
	}
	made, drift, err := d.schema.Shape(message)
	if err != nil {
		d.book.Log.Info("message not described by its schema", "schema", d.schema.URI(), "err", err)
		return false
	}
	for _, e := range drift {
		d.book.Log.Info("message drifts from its schema", "schema", d.schema.URI(), "err", e)
	}
	d.left.Store(0)
	if _, err := d.book.Keep(made); err != nil {
		d.book.Log.Warn("shape not kept", "err", err)
		return false
	}
	return true
}

// keepKnown notes in a context of a session which shapes the peer has. Another stream of the
// session that does so meanwhile wins.
func KeepKnown(
	ctx context.Context, store ctxstore.Store, uri string, id negotiate.SessionID, now time.Time, coder streamer.Coder,
	failed func(error),
) {
	entry, err := store.Get(ctx, uri)
	if err != nil {
		if !errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound}) {
			failed(err)
		}
		return
	}
	c, err := negotiate.ParseContext(entry.Value)
	if err != nil || c.Session != id || !now.Before(c.Expires) {
		return
	}
	known := make(map[[32]byte]bool, len(c.PeerShapes))
	for _, fp := range c.PeerShapes {
		known[fp] = true
	}
	learned := false
	for _, fp := range coder.PeerHas(negotiate.MaxShapes) {
		if !known[fp] {
			c.PeerShapes, learned = append(c.PeerShapes, fp), true
		}
	}
	if !learned {
		return
	}
	c.PeerShapes = c.PeerShapes[max(0, len(c.PeerShapes)-negotiate.MaxShapes):] // the newest
	document, err := c.Marshal()
	if err == nil {
		_, err = store.Put(ctx, uri, document,
			ctxstore.PutOptions{IfRevision: ctxstore.If(entry.Revision), TTL: c.Expires.Sub(now)})
	}
	if err != nil && !errors.Is(err, &ctxstore.Error{Code: ctxstore.Conflict}) {
		failed(err)
	}
}

// keepSchema has a schema in a store for the time of a session.
func KeepSchema(ctx context.Context, store ctxstore.Store, s *schema.Schema, lifetime time.Duration) error {
	_, err := store.Put(ctx, s.URI(), s.Canonical(), ctxstore.PutOptions{TTL: lifetime})
	return err
}

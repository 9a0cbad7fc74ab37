// Package coders makes the coder of one end of one stream from what its session agreed on.
package coders

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Spec is what a session agreed on that its coder must know.
type Spec struct {
	// Representation is the number in hello (docs/wire-format.md, section 3): 1 binary, 2 xml.
	Representation uint64
	// Limits are this end's, as the stream states them; zero fields mean the stream's defaults.
	Limits streamer.Limits
	// PeerKnows are fingerprints of shapes that the peer has, so that they can be referred to; the
	// ones used last stand last.
	PeerKnows [][32]byte
	// Schema describes the messages that this end sends; nil: there is none.
	Schema *schema.Schema
	// Contract describes the messages of both directions; nil: nothing does. Shared: the peer has
	// the same description.
	Contract *typed.Contract
	Shared   bool
}

// Func makes the coder of one end of one stream. It may be called concurrently.
type Func func(context.Context, Spec) (streamer.Coder, error)

// OfBook makes coders that share the shapes of a book. Shapes that the peer has are tried first on
// messages, and read from the store as messages need them. The first message that a schema
// describes gets its shape from the schema.
func OfBook(book *binary.Book) Func {
	return func(_ context.Context, spec Spec) (streamer.Coder, error) {
		opt := binary.Options{
			Text: negotiate.Representations[0].Number != spec.Representation, PeerKnows: spec.PeerKnows,
			MaxShapes: spec.Limits.MaxShapes, MaxShapeBytes: spec.Limits.MaxShapeBytes,
			Describe: Describe(book, spec.Schema),
		}
		if spec.Contract != nil {
			opt.Description, opt.Shared = spec.Contract, spec.Shared
		}
		return book.Coder(opt), nil
	}
}

// Describe makes the option of a coder of a book that has the first message that a schema describes
// get its shape from the schema; nil for no schema.
func Describe(book *binary.Book, s *schema.Schema) func([]byte) bool {
	if s == nil {
		return nil
	}
	d := &describing{book: book, schema: s}
	d.left.Store(describedTries)
	return d.describe
}

// WithDefaults replaces a nil store and nil coders with the defaults.
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
	// describedTries is how many messages are examined for the one that a schema describes. Where a
	// service has other messages too, few of them come first.
	describedTries = 16
	// describedWindow is the longest message that is examined, in bytes; shapes of longer ones are
	// learned as usual.
	describedWindow = 256 << 10
)

// describing makes the shape of the first message that a schema describes.
type describing struct {
	book   *binary.Book
	schema *schema.Schema
	left   atomic.Int32 // tries left
}

// describe puts the shape of a message into the book; it returns false if the schema does not
// describe the message.
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
		d.book.Log.Warn("shape not stored", "err", err)
		return false
	}
	return true
}

// Recent is how many shapes a list of those used with a peer has at its end without an order of
// their own: a session that used no others leaves the list as it is.
const Recent = 8

// UsedLast returns a list of shapes with those at its end that were used now, cut to the last ones.
// It reports whether that is to be stored in place of the list.
func UsedLast(list, now [][32]byte, most int) (after [][32]byte, changed bool) {
	used, recent := map[[32]byte]bool{}, map[[32]byte]bool{}
	for _, fp := range list[max(0, len(list)-Recent):] {
		recent[fp] = true
	}
	for _, fp := range now {
		used[fp] = true
		changed = changed || !recent[fp]
	}
	for _, fp := range list {
		if !used[fp] {
			after = append(after, fp)
		}
	}
	after = append(after, now...)
	return after[max(0, len(after)-most):], changed
}

// Carried returns the shapes that a coder's stream has carried, the last ones at the end, at most
// as many as an offer may name.
func Carried(coder streamer.Coder) (fps [][32]byte) {
	for _, fp := range coder.PeerHas(negotiate.MaxShapes) {
		fps = append(fps, fp)
	}
	return fps
}

// Learned reports whether a stream has used shapes that its peer was not known to have, or that are
// not among those used last of these.
func Learned(known [][32]byte, coder streamer.Coder) bool {
	_, changed := UsedLast(known, Carried(coder), negotiate.MaxShapes)
	return changed
}

// KeepKnown records in the context of a session which shapes the peer has. If another stream of the
// session does so at the same time, the other one wins.
func KeepKnown(
	ctx context.Context, store ctxstore.Store, uri string, id negotiate.SessionID, now time.Time, coder streamer.Coder,
	failed func(error),
) {
	entry, err := store.Get(ctx, uri)
	if err != nil {
		if !errors.Is(err, ctxstore.NotFound) {
			failed(err)
		}
		return
	}
	c, err := negotiate.ParseContext(entry.Value)
	if err != nil || c.Session != id || !now.Before(c.Expires) {
		return
	}
	var changed bool
	if c.PeerShapes, changed = UsedLast(c.PeerShapes, Carried(coder), negotiate.MaxShapes); !changed {
		return
	}
	document, err := c.Marshal()
	if err == nil {
		o := ctxstore.PutOptions{IfRevision: ctxstore.If(entry.Revision), TTL: c.Expires.Sub(now)}
		if entry.Expires.IsZero() {
			o.TTL = 0 // it is archived
		}
		_, err = store.Put(ctx, uri, document, o)
	}
	if err != nil && !errors.Is(err, ctxstore.Conflict) {
		failed(err)
	}
}

// KeepSchema stores a schema for the lifetime of a session.
func KeepSchema(ctx context.Context, store ctxstore.Store, s *schema.Schema, lifetime time.Duration) error {
	_, err := store.Put(ctx, s.URI(), s.Compact(), ctxstore.PutOptions{TTL: lifetime})
	return err
}

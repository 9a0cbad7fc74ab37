// Package coding makes the codecs that both ends of a stream need (pkg/streamer), of the
// representations in docs/wire-format.md, section 3.
package coding

import (
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Shapes are what the streams of a program learn of their messages, each in a store from before its
// first use. Safe for concurrent use; a program has one for each store.
type Shapes struct{ book *binary.Book }

// In has the shapes of a store, which stays the caller's and is needed until the last stream has
// ended.
func In(store ctxstore.Store) *Shapes {
	return &Shapes{binary.NewBook(ctxstore.Shapes{Store: store})}
}

// Binary makes the codec of one end of one new stream, for the representation binary (1). The
// limits are those of that end.
func (s *Shapes) Binary(limits streamer.Limits) streamer.Coder { return s.coder(limits, false) }

// Text is Binary for the representation xml (2), whose messages travel as text.
func (s *Shapes) Text(limits streamer.Limits) streamer.Coder { return s.coder(limits, true) }

func (s *Shapes) coder(limits streamer.Limits, text bool) streamer.Coder {
	return s.book.Coder(binary.Options{
		Text: text, MaxShapes: limits.MaxShapes, MaxShapeBytes: limits.MaxShapeBytes,
	})
}

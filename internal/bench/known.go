package bench

import (
	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// known is the server's knowledge that lasts from one session to the next.
type known struct {
	store  ctxstore.Store
	coders coders.Func
}

func newKnown(store ctxstore.Store) known {
	return known{store, coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))}
}

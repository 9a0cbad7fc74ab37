package capture

import (
	"bytes"
	"context"
	"slices"
	"sort"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// storeIndex finds the shapes of a store by how their fingerprints begin. Syncs name many shapes,
// and most engines read all names whatever is asked for, so it lists all of them and keeps what
// they are. A store that others write to has more later: it is listed again when something is not
// found.
type storeIndex struct {
	all    []shape.Fingerprint // ascending
	listed bool
	misses int // searches that found nothing
	next   int // the number of misses that lists the store again
}

// eagerLists is how many misses each list the store again; after that it takes more and more of
// them, so that n misses list it some log n times.
const eagerLists = 16

// find returns the shapes of the store whose fingerprints begin so. known: there is one that came,
// which is enough.
func (x *storeIndex) find(
	ctx context.Context, store ctxstore.Store, beginning []byte, known bool,
) []shape.Fingerprint {
	if !x.listed {
		x.list(ctx, store)
		x.next = 2 // the first miss is fresh
	}
	found := x.begins(beginning)
	if len(found) > 0 || known {
		return found
	}
	if x.misses++; x.misses < x.next {
		return nil
	}
	x.next = max(x.misses+1, 2*x.misses-eagerLists)
	x.list(ctx, store)
	return x.begins(beginning)
}

func (x *storeIndex) begins(beginning []byte) []shape.Fingerprint {
	at := sort.Search(len(x.all), func(i int) bool { return bytes.Compare(x.all[i][:], beginning) >= 0 })
	n := sort.Search(len(x.all)-at, func(i int) bool { return !bytes.HasPrefix(x.all[at+i][:], beginning) })
	return x.all[at : at+n]
}

func (x *storeIndex) list(ctx context.Context, store ctxstore.Store) {
	x.all, x.listed = x.all[:0], true
	for info, err := range store.List(ctx, ctxstore.ShapePrefix) {
		if err != nil {
			continue // [storeReader] remembers it
		}
		if fp, ok := ctxstore.ParseShapeURI(info.URI); ok {
			x.all = append(x.all, fp)
		}
	}
	slices.SortFunc(x.all, func(a, b shape.Fingerprint) int { return bytes.Compare(a[:], b[:]) })
}

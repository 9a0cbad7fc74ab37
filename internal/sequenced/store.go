package sequenced

import (
	"context"
	"iter"
	"strings"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// principalStore is the part of a store that belongs to one principal: several of them have
// sequences to the same service.
type principalStore struct {
	ctxstore.Store
	suffix string
}

func (s principalStore) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	return s.Store.Get(ctx, uri+s.suffix)
}

func (s principalStore) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	return s.Store.Put(ctx, uri+s.suffix, value, opt)
}

func (s principalStore) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	return s.Store.Commit(ctx, uri+s.suffix, expect, value)
}

func (s principalStore) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	return s.Store.Delete(ctx, uri+s.suffix, ifRevision)
}

func (s principalStore) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			own := err != nil
			if !own {
				info.URI, own = strings.CutSuffix(info.URI, s.suffix)
			}
			if own && !yield(info, err) {
				return
			}
		}
	}
}

// Hold implements [ctxstore.Holder].
func (s principalStore) Hold(uri string) (release func(), err error) {
	return ctxstore.Hold(s.Store, uri+s.suffix)
}

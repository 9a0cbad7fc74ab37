package capture_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

var errMedium = errors.New("the medium fails")

// failing is a store that cannot be read: all of it, or what begins with a prefix.
type failing struct {
	ctxstore.Store
	prefix string
}

func (f failing) err(uri string) error {
	if !strings.HasPrefix(uri, f.prefix) {
		return nil
	}
	return &ctxstore.Error{Code: ctxstore.Unavailable, URI: uri, Err: errMedium}
}

func (f failing) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := f.err(uri); err != nil {
		return ctxstore.Entry{}, err
	}
	return f.Store.Get(ctx, uri)
}

func (f failing) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		if err := f.err(prefix); err != nil && !yield(ctxstore.Info{}, err) {
			return
		}
		for info, err := range f.Store.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
	}
}

// TestStoreFails: what a store failed to give is not missing in it, and the messages that need it
// say so.
func TestStoreFails(t *testing.T) {
	rec := record(t, withHeaders(), 1024, tenant, replyTo)
	var second []run // from the middle on, shapes and headers are in the store alone
	for i, one := range runsOf(t, rec.file, nil) {
		half := len(one.octets) / 2
		second = append(second, run{capture.RunName(1, i, int64(half)), one.octets[half:]})
	}
	store := copyStore(t, rec.server)
	for _, prefix := range []string{"", ctxstore.SessionPrefix} {
		t.Run("entries "+prefix, func(t *testing.T) {
			for _, one := range second {
				r, err := decodeStreams(t, []run{one}, capture.DecodeConfig{Store: failing{store, prefix}})
				require.NoError(t, err)
				require.ErrorIs(t, r.StoreFailure, errMedium)
				unread := 0
				for _, m := range r.Messages {
					if m.Lacks != "" || m.LacksContext != "" {
						unread++
						assert.True(t, m.Unread)
						assert.Contains(t, m.Why, errMedium.Error())
						assert.NotContains(t, m.Why, "neither")
					}
				}
				assert.Positive(t, unread)
			}
		})
	}

	r, err := decodeStreams(t, second, capture.DecodeConfig{Store: store})
	require.NoError(t, err)
	require.NoError(t, r.StoreFailure, "that an entry is not there is no failure")
	for _, m := range r.Messages {
		assert.False(t, m.Unread)
	}
}

// TestListFails: the shapes that a store lists are found, though it reports others as damaged.
func TestListFails(t *testing.T) {
	rec := record(t, withHeaders(), 1024, tenant, replyTo)
	for i, one := range runsOf(t, rec.file, nil) {
		half := len(one.octets) / 2
		second := []run{{capture.RunName(1, i, int64(half)), one.octets[half:]}}
		whole, err := decodeStreams(t, second, capture.DecodeConfig{Store: copyStore(t, rec.server)})
		require.NoError(t, err)
		r, err := decodeStreams(t, second, capture.DecodeConfig{Store: listFails{copyStore(t, rec.server)}})
		require.NoError(t, err)
		require.ErrorIs(t, r.StoreFailure, errMedium)
		assert.Equal(t, whole.Counts(), r.Counts())
	}
}

// listFails reports a damaged entry before all others.
type listFails struct{ ctxstore.Store }

func (l listFails) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	return func(yield func(ctxstore.Info, error) bool) {
		if !yield(ctxstore.Info{}, &ctxstore.Error{Code: ctxstore.Corrupt, Err: errMedium}) {
			return
		}
		for info, err := range l.Store.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
	}
}

package engine_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/internal/engine"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// slow is a storage without entries, in which reading one takes until a test lets it go on.
type slow struct {
	engine.Storage
	reads  chan struct{}
	closed atomic.Bool
}

func (s *slow) Get(uri string) (ctxstore.Entry, error) {
	s.reads <- struct{}{} // it has begun
	s.reads <- struct{}{} // it may end
	if s.closed.Load() {
		panic("read after Close")
	}
	return ctxstore.Entry{}, &ctxstore.Error{Code: ctxstore.NotFound, URI: uri}
}

func (s *slow) Close() error { s.closed.Store(true); return nil }

// TestCloseWaitsForCalls: the storage is closed behind the calls that have begun; later ones do not
// come to it.
func TestCloseWaitsForCalls(t *testing.T) {
	storage := &slow{reads: make(chan struct{})}
	access := engine.NewAccess("here")
	s := engine.New(access, storage, engine.Config{Clock: clock.Real()})
	got, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Get(t.Context(), "urn:a")
		got <- err
	}()
	<-storage.reads
	go func() { closed <- s.Close() }()
	<-access.Open.Done() // Close has begun
	assert.False(t, storage.closed.Load())
	<-storage.reads
	assert.ErrorIs(t, <-got, ctxstore.NotFound)
	require.NoError(t, <-closed)
	assert.True(t, storage.closed.Load())
	_, err := s.Get(t.Context(), "urn:a")
	assert.ErrorIs(t, err, ctxstore.Closed)
}

// TestListIsCutShort: a list whose store is closed, or whose context ends, says so.
func TestListIsCutShort(t *testing.T) {
	for want, cut := range map[error]func(s ctxstore.Store, cancel func()){
		ctxstore.Closed:  func(s ctxstore.Store, _ func()) { _ = s.Close() },
		context.Canceled: func(_ ctxstore.Store, cancel func()) { cancel() },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		s := memory.New(memory.Config{})
		for _, uri := range []string{"urn:a", "urn:b"} {
			_, err := s.Put(ctx, uri, []byte("1"), ctxstore.PutOptions{})
			require.NoError(t, err)
		}
		var uris []string
		var last error
		for i, err := range s.List(ctx, "") {
			if last = err; err == nil {
				uris = append(uris, i.URI)
				cut(s, cancel)
			}
		}
		assert.Equal(t, []string{"urn:a"}, uris)
		assert.ErrorIs(t, last, want)
		cancel()
		require.NoError(t, s.Close())
	}
}

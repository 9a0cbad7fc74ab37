package once_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/once"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type txKey struct{}

func filter(store ctxstore.Store) *once.OnceFilter {
	return once.New(once.OnceConfig{
		Store: store, Life: time.Hour,
		Transactional: func(path string) bool { return path == "/tx" },
		Within: func(ctx context.Context, tx *wsrm.Tx, _ string) context.Context {
			return context.WithValue(ctx, txKey{}, tx)
		},
	})
}

func newStore(t *testing.T) ctxstore.Store {
	store := memory.New(memory.Config{})
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func saying(reply string, times *atomic.Int32) func(context.Context, bool) ([]byte, error) {
	return func(context.Context, bool) ([]byte, error) {
		times.Add(1)
		return []byte(reply), nil
	}
}

// Each request is handled once, whoever gets it again.
func TestDo(t *testing.T) {
	for _, path := range []string{"/tx", "/own"} {
		store := newStore(t)
		var times atomic.Int32
		for _, id := range []string{"a", "b", "a", "a"} {
			reply, known, err := filter(store).Do(t.Context(), id, path, saying("to "+id, &times))
			require.NoError(t, err)
			assert.True(t, known)
			assert.Equal(t, "to "+id, string(reply), path)
		}
		assert.EqualValues(t, 2, times.Load(), path)
		for range 2 { // one without a reply
			reply, known, err := filter(store).Do(t.Context(), "c", path, func(context.Context, bool) ([]byte, error) {
				times.Add(1)
				return nil, nil
			})
			require.NoError(t, err)
			assert.True(t, known)
			assert.Nil(t, reply)
		}
		assert.EqualValues(t, 3, times.Load(), path)
	}
}

func TestTransaction(t *testing.T) {
	store := newStore(t)
	f := filter(store)
	broken := errors.New("no space")
	_, _, err := f.Do(t.Context(), "a", "/tx", func(context.Context, bool) ([]byte, error) { return nil, broken })
	require.ErrorIs(t, err, broken)
	reply, known, err := f.Do(t.Context(), "a", "/tx", func(ctx context.Context, _ bool) ([]byte, error) {
		ctx.Value(txKey{}).(*wsrm.Tx).Set([]byte("effect"))
		return []byte("reply"), nil
	})
	require.NoError(t, err)
	assert.True(t, known)
	assert.Equal(t, "reply", string(reply))
	var effects []string
	for info, err := range store.List(t.Context(), ctxstore.SequencePrefix) {
		require.NoError(t, err)
		e, err := store.Get(t.Context(), info.URI)
		require.NoError(t, err)
		effect, err := wsrm.EffectOf(e.Value)
		require.NoError(t, err)
		effects = append(effects, string(effect))
		assert.True(t, e.Expires.IsZero(), "effects are for good")
	}
	assert.Equal(t, []string{"effect"}, effects)
}

// Of a server that died in a handler nobody knows what it did; one that is still at it has its
// reply.
func TestBegun(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Config{})
			defer func() { _ = store.Close() }()
			var times atomic.Int32
			ctx, cancel := context.WithCancel(t.Context())
			var wait sync.WaitGroup
			wait.Go(func() {
				_, _, _ = filter(store).Do(t.Context(), "a", "/own", func(context.Context, bool) ([]byte, error) {
					times.Add(1)
					if !ends {
						<-ctx.Done()
						return nil, errors.New("killed")
					}
					time.Sleep(10 * time.Second)
					return []byte("late"), nil
				})
			})
			synctest.Wait()
			reply, known, err := filter(store).Do(t.Context(), "a", "/own", saying("again", &times))
			require.NoError(t, err)
			assert.Equal(t, ends, known)
			assert.EqualValues(t, 1, times.Load())
			if ends {
				assert.Equal(t, "late", string(reply))
			}
			gone, stop := context.WithCancelCause(t.Context())
			stop(errors.New("it ends"))
			if _, _, err = filter(store).Do(gone, "a", "/own", saying("again", &times)); !ends {
				require.ErrorContains(t, err, "it ends")
			}
			cancel()
			wait.Wait()
		})
	}
}

// Many servers that get the same requests at once.
func TestConcurrently(t *testing.T) {
	for _, path := range []string{"/tx", "/own"} {
		store := newStore(t)
		effects := map[string]int{}
		var mu sync.Mutex
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				f := filter(store)
				for j := range 20 {
					id := fmt.Sprint((i + j) % 20)
					reply, known, err := f.Do(t.Context(), id, path, func(ctx context.Context, _ bool) ([]byte, error) {
						if tx, is := ctx.Value(txKey{}).(*wsrm.Tx); is {
							tx.Set([]byte(id))
						}
						mu.Lock()
						defer mu.Unlock()
						effects[id]++
						return []byte("to " + id), nil
					})
					require.NoError(t, err)
					assert.True(t, known)
					assert.Equal(t, "to "+id, string(reply))
				}
			})
		}
		wait.Wait()
		if path == "/own" {
			for id, n := range effects {
				assert.Equal(t, 1, n, id)
			}
		}
		assert.Len(t, effects, 20)
	}
}

func TestStoreFails(t *testing.T) {
	store := newStore(t)
	require.NoError(t, store.Close())
	var times atomic.Int32
	for _, path := range []string{"/tx", "/own"} {
		_, _, err := filter(store).Do(t.Context(), "a", path, saying("x", &times))
		require.Error(t, err)
	}
	assert.Zero(t, times.Load(), "nothing is handled that could not be remembered")
}

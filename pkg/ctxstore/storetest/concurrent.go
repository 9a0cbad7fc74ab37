package storetest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

func (e Subject) timeToLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := e.open(t, Options{}), t.Context()
		rev, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{TTL: time.Minute})
		require.NoError(t, err)
		got, err := s.Get(ctx, a)
		require.NoError(t, err)
		assert.True(t, got.Expires.Equal(time.Now().Add(time.Minute)))

		time.Sleep(59 * time.Second)
		rev, err = s.Commit(ctx, a, rev, []byte("2"))
		require.NoError(t, err)
		holds(t, s, a, "2")
		has(t, s, a, true)
		time.Sleep(time.Second)
		has(t, s, a, false)
		_, err = s.Get(ctx, a)
		code(t, ctxstore.NotFound, err) // a commit does not extend its life
		for i, err := range s.List(ctx, "") {
			t.Errorf("%q is listed (%v)", i.URI, err)
		}
		_, err = s.Commit(ctx, a, rev, []byte("3"))
		code(t, ctxstore.Conflict, err)
		code(t, ctxstore.NotFound, s.Delete(ctx, a, nil))

		next, err := s.Put(ctx, a, []byte("4"), ctxstore.PutOptions{IfRevision: ctxstore.If(0), TTL: time.Minute})
		require.NoError(t, err)
		assert.Greater(t, next, rev, "also over an expiry")
		_, err = s.Put(ctx, a, []byte("5"), ctxstore.PutOptions{})
		require.NoError(t, err)
		time.Sleep(time.Hour)
		holds(t, s, a, "5")
	})
}

func (e Subject) watch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := e.open(t, Options{})
		ctx, cancel := context.WithCancel(t.Context())
		_, err := s.Put(ctx, a, []byte("before"), ctxstore.PutOptions{})
		require.NoError(t, err)
		changes, err := s.Watch(ctx, ctxstore.SessionPrefix)
		require.NoError(t, err)
		other, err := s.Watch(t.Context(), "nothing:")
		require.NoError(t, err)

		_, err = s.Put(ctx, b, nil, ctxstore.PutOptions{})
		require.NoError(t, err)
		rev, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{})
		require.NoError(t, err)
		assert.Equal(t, ctxstore.Change{URI: a, Revision: rev}, <-changes)
		require.NoError(t, s.Delete(ctx, a, nil))
		assert.Equal(t, ctxstore.Change{URI: a, Revision: rev, Deleted: true}, <-changes)
		for range 100 { // nobody reads meanwhile: only the last one matters
			rev, err = s.Put(ctx, a+"x", []byte("1"), ctxstore.PutOptions{})
			require.NoError(t, err)
		}
		for got := range changes {
			assert.Equal(t, a+"x", got.URI)
			if got.Revision == rev {
				break
			}
		}
		cancel()
		_, more := <-changes
		assert.False(t, more)
		select {
		case c := <-other:
			t.Errorf("%v in another watch", c)
		default:
		}
	})
}

// Of several callers that set the same revision, exactly one wins, every time.
func (e Subject) oneWinner(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	handles := []ctxstore.Store{s}
	if e.Again != nil {
		second := e.Again(t, Options{})
		defer func() { assert.NoError(t, second.Close()) }()
		handles = append(handles, second)
	}
	var rev uint64
	for round := range 10 {
		var wg sync.WaitGroup
		var mu sync.Mutex
		var won []string
		expect := rev
		for i := range 8 {
			value := strconv.Itoa(round) + "/" + strconv.Itoa(i)
			wg.Go(func() {
				got, err := handles[i%len(handles)].Commit(ctx, a, expect, []byte(value))
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won, rev = append(won, value), got
				} else {
					assert.ErrorIs(t, err, ctxstore.Conflict)
				}
			})
		}
		wg.Wait()
		require.Len(t, won, 1)
		holds(t, s, a, won[0])
	}
}

// A reader sees one value or another, never a part or a mix.
func (e Subject) noTornValues(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 1000*(1+i%5)) }
	_, err := s.Put(ctx, b, value(0), ctxstore.PutOptions{})
	require.NoError(t, err)
	written := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(written)
		for i := range 100 {
			_, err := s.Put(ctx, b, value(i), ctxstore.PutOptions{})
			assert.NoError(t, err)
		}
	})
	for range 4 {
		wg.Go(func() {
			for {
				got, err := s.Get(ctx, b)
				if !assert.NoError(t, err) || !assert.Equal(t, value(int(got.Value[0])), got.Value) {
					return
				}
				select {
				case <-written:
					return
				default:
				}
			}
		})
	}
	wg.Wait()
}

func (e Subject) twoHandles(t *testing.T) {
	one, ctx := e.open(t, Options{}), t.Context()
	two := e.Again(t, Options{})
	t.Cleanup(func() { assert.NoError(t, two.Close()) })

	rev, err := one.Put(ctx, a, []byte("1"), ctxstore.PutOptions{})
	require.NoError(t, err)
	holds(t, two, a, "1")
	_, err = two.Commit(ctx, a, rev, []byte("2"))
	require.NoError(t, err)
	holds(t, one, a, "2")
	_, err = one.Commit(ctx, a, rev, []byte("3"))
	code(t, ctxstore.Conflict, err)
	fp, err := ctxstore.Shapes{Store: one}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	_, err = ctxstore.Shapes{Store: two}.Get(ctx, fp)
	require.NoError(t, err)
	require.NoError(t, two.Delete(ctx, a, nil))
	_, err = one.Get(ctx, a)
	code(t, ctxstore.NotFound, err)

	// Both count up; no increment is lost.
	var wg sync.WaitGroup
	for _, s := range []ctxstore.Store{one, two} {
		wg.Go(func() { Count(t, s, b, 50) })
	}
	wg.Wait()
	holds(t, one, b, "100")
}

// Count adds one to the decimal number under uri n times, each by get and commit, and again after a
// conflict.
func Count(t testing.TB, s ctxstore.Store, uri string, n int) {
	for range n {
		for {
			e, err := s.Get(t.Context(), uri)
			if err != nil && !errors.Is(err, ctxstore.NotFound) {
				t.Error(err)
				return
			}
			v, _ := strconv.Atoi(string(e.Value)) // a missing value counts as 0
			_, err = s.Commit(t.Context(), uri, e.Revision, []byte(strconv.Itoa(v+1)))
			if err == nil {
				break
			}
			if !errors.Is(err, ctxstore.Conflict) {
				t.Error(err)
				return
			}
		}
	}
}

func (e Subject) hold(t *testing.T) {
	one := e.open(t, Options{})
	stores := []ctxstore.Store{one}
	if e.Again != nil {
		two := e.Again(t, Options{})
		t.Cleanup(func() { assert.NoError(t, two.Close()) })
		stores = append(stores, two)
	}
	release, err := ctxstore.Hold(one, a)
	require.NoError(t, err)
	for _, s := range stores {
		_, err := ctxstore.Hold(s, a)
		code(t, ctxstore.Held, err)
		other, err := ctxstore.Hold(s, b)
		require.NoError(t, err)
		other()
		_, err = s.Put(t.Context(), a, []byte("1"), ctxstore.PutOptions{})
		require.NoError(t, err, "who holds nothing is not kept out")
		_, err = ctxstore.Hold(s, "")
		code(t, ctxstore.Invalid, err)
	}
	release()
	release()
	for _, s := range stores {
		release, err := ctxstore.Hold(s, a)
		require.NoError(t, err)
		release()
	}
}

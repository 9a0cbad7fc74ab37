package bolt_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
)

// damages are ways to damage a file, by a seed.
var damages = []func(rnd *rand.Rand, file []byte) []byte{
	func(rnd *rand.Rand, file []byte) []byte { // bits
		for range 1 + rnd.IntN(40) {
			file[rnd.IntN(len(file))] ^= 1 << rnd.IntN(8)
		}
		return file
	},
	func(rnd *rand.Rand, file []byte) []byte { // a block
		at := rnd.IntN(len(file))
		for i := range file[at:min(at+1+rnd.IntN(600), len(file))] {
			file[at+i] = byte(rnd.Uint32())
		}
		return file
	},
	func(rnd *rand.Rand, file []byte) []byte { // the head of a page
		at := rnd.IntN(len(file)/4096) * 4096
		for i := range file[at : at+16+rnd.IntN(64)] {
			if rnd.IntN(3) == 0 {
				file[at+i] = byte(rnd.Uint32())
			}
		}
		return file
	},
	func(rnd *rand.Rand, file []byte) []byte { // a page in the place of another
		from, to := rnd.IntN(len(file)/4096), rnd.IntN(len(file)/4096)
		copy(file[to*4096:], file[from*4096:(from+1)*4096])
		return file
	},
	func(rnd *rand.Rand, file []byte) []byte { return file[:rnd.IntN(len(file))] },
	func(rnd *rand.Rand, file []byte) []byte { // zeros
		at := rnd.IntN(len(file))
		clear(file[at:min(at+1+rnd.IntN(8192), len(file))])
		return file
	},
}

// TestDamagedFiles: whatever happens to a file, no access to it ends the process or hangs, what is
// read is what was stored, and errors say what to do.
func TestDamagedFiles(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	whole := filepath.Join(dir, "whole.db")
	s, err := bolt.Open(whole, bolt.Config{})
	require.NoError(t, err)
	values := map[string][]byte{}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 150 {
		u, value := fmt.Sprintf("urn:example:%d", i), bytes.Repeat([]byte{byte(i)}, rnd.IntN(900))
		if i%40 == 0 { // of several pages
			value = bytes.Repeat([]byte{byte(i)}, 20_000)
		}
		_, err := s.Put(ctx, u, value, ctxstore.PutOptions{})
		require.NoError(t, err)
		values[u] = value
		if i%2 == 0 {
			_, err := ctxstore.Shapes{Store: s}.Put(ctx, fmt.Appendf(nil, "shape %d %s", i, value))
			require.NoError(t, err)
		}
	}
	for i := range 20 { // pages that are free again
		u := fmt.Sprintf("urn:example:%d", 7*i)
		require.NoError(t, s.Delete(ctx, u, nil))
		delete(values, u)
	}
	require.NoError(t, s.Close())
	file, err := os.ReadFile(whole)
	require.NoError(t, err)
	seeds := 168
	if n, err := strconv.Atoi(os.Getenv("HHFR_TEST_DAMAGES")); err == nil {
		seeds = n
	}
	told := 0
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(uint64(seed), 0))
		path := filepath.Join(dir, fmt.Sprintf("%d.db", seed))
		require.NoError(t, os.WriteFile(path, damages[seed%len(damages)](rnd, bytes.Clone(file)), 0o600))
		done := make(chan []error, 1)
		go func() { done <- use(ctx, t, path, values) }()
		select {
		case errs := <-done:
			for _, err := range errs {
				var own *ctxstore.Error
				if assert.ErrorAs(t, err, &own, "seed %d", seed) && own.Code == ctxstore.Corrupt {
					told++
					assert.NotEmpty(t, own.Hint, "seed %d: %v", seed, err)
				}
			}
		case <-time.After(2 * time.Minute):
			t.Fatalf("seed %d: it does not end", seed)
		}
		require.NoError(t, os.Remove(path))
	}
	assert.Positive(t, told)
}

// use does with a store what sessions do, and returns the errors.
func use(ctx context.Context, t *testing.T, path string, values map[string][]byte) (errs []error) {
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	s, err := bolt.Open(path, bolt.Config{})
	if err != nil {
		return []error{err}
	}
	defer func() { note(s.Close()) }()
	for range 2 {
		for u, value := range values {
			e, err := s.Get(ctx, u)
			if err == nil {
				assert.True(t, bytes.Equal(value, e.Value), "%s: %s", path, u)
			}
			note(err)
		}
		for _, err := range s.List(ctx, "urn:") {
			note(err)
		}
		for i := range 2 {
			_, err := s.Put(ctx, fmt.Sprintf("urn:example:new:%d", i), []byte("new"), ctxstore.PutOptions{})
			note(err)
			note(s.Delete(ctx, fmt.Sprintf("urn:example:%d", i), nil))
		}
		_, err = ctxstore.Shapes{Store: s}.Put(ctx, []byte("another shape"))
		note(err)
	}
	return errs
}

// TestWholeFilesAreOpened: what a store has written is never taken for damaged, whatever was put
// and deleted.
func TestWholeFilesAreOpened(t *testing.T) {
	path, ctx, rnd := filepath.Join(t.TempDir(), "store.db"), t.Context(), rand.New(rand.NewPCG(3, 4))
	values := map[string][]byte{}
	for range 12 {
		s, err := bolt.Open(path, bolt.Config{})
		require.NoError(t, err)
		for u, value := range values {
			e, err := s.Get(ctx, u)
			require.NoError(t, err)
			require.True(t, bytes.Equal(value, e.Value))
		}
		for range 30 {
			u := fmt.Sprintf("urn:example:%d", rnd.IntN(120))
			if _, there := values[u]; there && rnd.IntN(2) == 0 {
				require.NoError(t, s.Delete(ctx, u, nil))
				delete(values, u)
				continue
			}
			value := bytes.Repeat([]byte{byte(rnd.Uint32())}, rnd.IntN(1<<rnd.IntN(18)+1))
			_, err := s.Put(ctx, u, value, ctxstore.PutOptions{})
			require.NoError(t, err)
			values[u] = value
		}
		require.NoError(t, s.Close())
	}
}

// TestGrownBeforeTheLock: a file that another handle grows until it releases the lock is whole.
func TestGrownBeforeTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := bolt.Open(path, bolt.Config{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	before, err := os.Stat(path)
	require.NoError(t, err)

	other, err := bbolt.Open(path, 0o600, nil)
	require.NoError(t, err)
	defer func() { _ = other.Close() }()
	err = bolt.Verify(path, func(name string, flag int, mode os.FileMode) (*os.File, error) {
		require.NoError(t, other.Update(func(t *bbolt.Tx) error {
			return t.Bucket([]byte("entries")).Put([]byte(uri), make([]byte, 1<<20))
		}))
		require.NoError(t, other.Close())
		after, err := os.Stat(path)
		require.NoError(t, err)
		require.Greater(t, after.Size(), before.Size())
		return os.OpenFile(name, flag, mode)
	})
	require.NoError(t, err)
}

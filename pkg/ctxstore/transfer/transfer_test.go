package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/transfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var openers = map[string]func(testing.TB) ctxstore.Store{
	"memory": func(testing.TB) ctxstore.Store { return memory.New(memory.Config{}) },
	"bolt": func(t testing.TB) ctxstore.Store {
		s, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Config{})
		require.NoError(t, err)
		return s
	},
	"directory": func(t testing.TB) ctxstore.Store {
		s, err := directory.Open(t.TempDir(), directory.Config{})
		require.NoError(t, err)
		return s
	},
}

// used returns a store that has seen things come and go.
func used(t testing.TB, engine, marked string) ctxstore.Store {
	t.Helper()
	s, ctx := openers[engine](t), t.Context()
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	for i := range 8 {
		uri := fmt.Sprintf("urn:x:%d", i)
		_, err := s.Put(ctx, uri, []byte(marked+uri), ctxstore.PutOptions{TTL: time.Duration(i%3) * time.Hour})
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape of "+marked+uri))
		require.NoError(t, err)
		if i%4 == 0 {
			require.NoError(t, s.Delete(ctx, uri, nil))
		}
	}
	_, err := s.Put(ctx, `urn:"<&>/../é`, []byte("\x00\xff"), ctxstore.PutOptions{})
	require.NoError(t, err)
	_, err = s.Put(ctx, ctxstore.HoldPrefix+marked, nil, ctxstore.PutOptions{})
	require.NoError(t, err)
	return s
}

// content is all of a store but revisions and holds, with times of expiry rounded.
func content(t testing.TB, s ctxstore.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for i, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		if strings.HasPrefix(i.URI, ctxstore.HoldPrefix) {
			continue
		}
		e, err := s.Get(t.Context(), i.URI)
		require.NoError(t, err)
		all[i.URI] = fmt.Sprintf("%d %s %q", i.Size, i.Expires.UTC().Round(time.Minute), e.Value)
	}
	return all
}

func export(t testing.TB, s ctxstore.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := transfer.Export(t.Context(), &b, s, "", func(err error) { t.Error(err) })
	require.NoError(t, err)
	return b.Bytes()
}

// From every engine to every other one, into a store that has some of the entries with other
// values: all that was in the first is in the second, as it was, and nothing else has changed.
func TestBetweenEngines(t *testing.T) {
	for from := range openers {
		for to := range openers {
			t.Run(from+" to "+to, func(t *testing.T) {
				one, two := used(t, from, "one-"), used(t, to, "two-")
				want, file := content(t, two), export(t, one)
				for uri, entry := range content(t, one) {
					want[uri] = entry
				}
				done, err := transfer.Import(t.Context(), two, bytes.NewReader(file), transfer.ImportOptions{})
				require.NoError(t, err)
				assert.Equal(t, want, content(t, two))
				assert.Positive(t, done.Stored)
				again, err := transfer.Import(t.Context(), two, bytes.NewReader(file), transfer.ImportOptions{})
				require.NoError(t, err)
				assert.Equal(t, transfer.Imported{Unchanged: done.Stored + done.Unchanged}, again)
			})
		}
	}
}

// Entries that are there already can be kept.
func TestKeep(t *testing.T) {
	one, two := used(t, "memory", "one-"), used(t, "memory", "two-")
	before := content(t, two)
	done, err := transfer.Import(t.Context(), two, bytes.NewReader(export(t, one)), transfer.ImportOptions{Keep: true})
	require.NoError(t, err)
	assert.Equal(t, transfer.Imported{Stored: 8, Unchanged: 1, Kept: 6}, done)
	after := content(t, two)
	for uri, entry := range before {
		assert.Equal(t, entry, after[uri])
	}
}

// A file that was cut anywhere is noticed, what it has is whole, and importing the whole file goes
// on.
func TestCutAnywhere(t *testing.T) {
	one := used(t, "memory", "one-")
	file, want := export(t, one), content(t, one)
	for n := range len(file) - 1 {
		two := memory.New(memory.Config{})
		_, err := transfer.Import(t.Context(), two, bytes.NewReader(file[:n]), transfer.ImportOptions{})
		var f *transfer.FileError
		require.ErrorAs(t, err, &f, "%d bytes", n)
		for uri, entry := range content(t, two) {
			require.Equal(t, want[uri], entry)
		}
		if n%100 == 0 {
			_, err = transfer.Import(t.Context(), two, bytes.NewReader(file), transfer.ImportOptions{})
			require.NoError(t, err)
			require.Equal(t, want, content(t, two))
		}
		require.NoError(t, two.Close())
	}
}

// Lines that no export writes are named, and nothing of them is stored.
func TestNotAFile(t *testing.T) {
	for _, tc := range []struct {
		file, says string
	}{
		{"", "line 1: the file ends"},
		{"<a/>\n", "line 1: not a file of contexts"},
		{"{}\n", "line 1: not a file of contexts"},
		{`{"contexts":2}` + "\n", "line 1: version 2"},
		{`{"contexts":1}` + "\n" + `{"uri":"a b"}` + "\n", "line 2: .*white space"},
		{`{"contexts":1}` + "\n" + `{"uri":"a","value_base64":"!"}` + "\n", "line 2: .*base64"},
		{`{"contexts":1}` + "\n" + `{"uri":"a","more":1}` + "\n", "line 2: .*unknown field"},
		{`{"contexts":1}` + "\n" + `{"entries":1}` + "\n", "line 2: 1 entries were written, 0 are here"},
		{`{"contexts":1}` + "\n" + strings.Repeat("x", 23<<20), "line 2: longer than"},
	} {
		s := memory.New(memory.Config{})
		_, err := transfer.Import(t.Context(), s, strings.NewReader(tc.file), transfer.ImportOptions{})
		require.Error(t, err)
		assert.Regexp(t, tc.says, err.Error())
		assert.Empty(t, content(t, s))
		require.NoError(t, s.Close())
	}
}

// A store that is full ends it, with what is there whole; so does Ctrl-C.
func TestEndsEarly(t *testing.T) {
	one := used(t, "memory", "one-")
	file, want := export(t, one), content(t, one)
	small := memory.New(memory.Config{MaxBytes: 100})
	defer func() { assert.NoError(t, small.Close()) }()
	_, err := transfer.Import(t.Context(), small, bytes.NewReader(file), transfer.ImportOptions{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Full})
	for uri, entry := range content(t, small) {
		assert.Equal(t, want[uri], entry)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	_, err = transfer.Import(ctx, small, bytes.NewReader(file), transfer.ImportOptions{})
	require.ErrorIs(t, err, stopped)
	_, err = transfer.Export(ctx, &bytes.Buffer{}, one, "", func(error) {})
	require.ErrorIs(t, err, stopped)
}

// Entries that expire meanwhile are left out.
func TestExpired(t *testing.T) {
	file := `{"contexts":1}` + "\n" + `{"uri":"urn:a","expires":"2001-01-01T00:00:00Z"}` + "\n" + `{"entries":1}` + "\n"
	s := memory.New(memory.Config{})
	defer func() { assert.NoError(t, s.Close()) }()
	done, err := transfer.Import(t.Context(), s, strings.NewReader(file), transfer.ImportOptions{})
	require.NoError(t, err)
	assert.Equal(t, transfer.Imported{Expired: 1}, done)
	assert.Empty(t, content(t, s))
}

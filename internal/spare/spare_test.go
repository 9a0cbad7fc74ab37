package spare_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/spare"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// narrow is a store that has no space for anything new once it is full.
type narrow struct {
	ctxstore.Store
	full bool
}

var errFull = &ctxstore.Error{Code: ctxstore.Full, Err: errors.New("no space left on device"), Hint: "free space there"}

func (n *narrow) Put(ctx context.Context, uri string, value []byte, opt ctxstore.PutOptions) (uint64, error) {
	if n.full {
		return 0, errFull
	}
	return n.Store.Put(ctx, uri, value, opt)
}

func (n *narrow) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if n.full {
		return 0, errFull
	}
	return n.Store.Commit(ctx, uri, expect, value)
}

func TestFullStore(t *testing.T) {
	inner, err := directory.Open(t.TempDir(), directory.Config{})
	require.NoError(t, err)
	n := &narrow{Store: inner}
	var log strings.Builder
	s := spare.New(n, spare.Config{
		Prefixes: []string{"urn:example:anew:"}, Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	defer func() { require.NoError(t, s.Close()) }()
	ctx := t.Context()
	assert.True(t, ctxstore.Persists(s))
	session := func(i byte) string { return ctxstore.SessionURI([16]byte{i}) }
	old, err := s.Put(ctx, session(1), []byte("old"), ctxstore.PutOptions{})
	require.NoError(t, err)
	n.full = true

	full := &ctxstore.Error{Code: ctxstore.Full}
	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("a shape"))
	require.NoError(t, err)
	got, err := ctxstore.Shapes{Store: s}.Get(ctx, fp)
	require.NoError(t, err)
	assert.Equal(t, "a shape", string(got))
	first, err := s.Put(ctx, session(2), []byte("new"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	require.NoError(t, err)
	_, err = s.Put(ctx, session(2), []byte("another"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Conflict})
	_, err = s.Put(ctx, session(2), []byte("newer"), ctxstore.PutOptions{IfRevision: &first})
	require.NoError(t, err)
	_, err = s.Put(ctx, "urn:example:anew:1", []byte("x"), ctxstore.PutOptions{})
	require.NoError(t, err)
	_, err = s.Put(ctx, session(1), []byte("changed"), ctxstore.PutOptions{IfRevision: &old})
	require.ErrorIs(t, err, full, "what the store has stays there")
	e, err := s.Get(ctx, session(1))
	require.NoError(t, err)
	assert.Equal(t, "old", string(e.Value))
	for _, must := range []string{ctxstore.SequenceURI([16]byte{1}), "urn:hhfr:outbox:1"} {
		_, err = s.Put(ctx, must, nil, ctxstore.PutOptions{})
		require.ErrorIs(t, err, full, "it must be stored")
		_, err = s.Commit(ctx, must, 0, nil)
		require.ErrorIs(t, err, full)
	}
	var listed []string
	for i, err := range s.List(ctx, "") {
		require.NoError(t, err)
		listed = append(listed, i.URI)
	}
	assert.Equal(t, []string{"urn:example:anew:1", session(1), session(2), ctxstore.ShapeURI(fp)}, listed)
	require.NoError(t, s.Delete(ctx, session(2), nil))
	_, err = s.Get(ctx, session(2))
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
	assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
	assert.Contains(t, log.String(), "no space left on device")

	n.full = false
	for i := range byte(3) {
		_, err = s.Put(ctx, session(10+i), fmt.Append(nil, i), ctxstore.PutOptions{})
		require.NoError(t, err)
		_, err = inner.Get(ctx, session(10+i))
		require.NoError(t, err, "there is space again")
	}
}

// gone is a store that cannot be reached.
type gone struct{ ctxstore.Store }

var errGone = &ctxstore.Error{Code: ctxstore.Unavailable, Err: errors.New("connection refused")}

func (gone) Get(context.Context, string) (ctxstore.Entry, error) { return ctxstore.Entry{}, errGone }

func (gone) Put(context.Context, string, []byte, ctxstore.PutOptions) (uint64, error) {
	return 0, errGone
}

// Shapes go on while the store is away, with one warning; nothing else is taken for stored.
func TestStoreThatIsAway(t *testing.T) {
	inner, err := directory.Open(t.TempDir(), directory.Config{})
	require.NoError(t, err)
	var log strings.Builder
	s := spare.New(gone{inner}, spare.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	defer func() { require.NoError(t, s.Close()) }()
	for _, shape := range []string{"one", "two"} {
		fp, err := ctxstore.Shapes{Store: s}.Put(t.Context(), []byte(shape))
		require.NoError(t, err)
		got, err := ctxstore.Shapes{Store: s}.Get(t.Context(), fp)
		require.NoError(t, err)
		assert.Equal(t, shape, string(got))
	}
	_, err = s.Put(t.Context(), ctxstore.SessionURI([16]byte{1}), nil, ctxstore.PutOptions{})
	require.ErrorIs(t, err, errGone)
	assert.Equal(t, 1, strings.Count(log.String(), "cannot be reached"), log.String())
}

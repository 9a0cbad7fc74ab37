// Package storetest is the conformance suite of context stores: every engine's tests call [Run].
package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Options of a store that the suite asks for.
type Options struct {
	// MaxBytes is the space the store may take for values, in bytes, apart from what it needs
	// itself; 0: its default.
	MaxBytes int64
}

// Subject is the engine under test. The suite closes what it opens.
type Subject struct {
	// Open returns a new, empty store. Time to live runs on the machine's clock, which may be a
	// synctest bubble's.
	Open func(t testing.TB, o Options) ctxstore.Store
	// Again returns another handle on the content of the store opened last; nil if the engine has
	// no such thing.
	Again func(t testing.TB, o Options) ctxstore.Store
}

// Run tests whether the engine keeps what [ctxstore.Store] promises.
func Run(t *testing.T, e Subject) {
	t.Run("values", e.values)
	t.Run("compare and set", e.compareAndSet)
	t.Run("revisions grow over deletion", e.revisionsGrow)
	t.Run("commit", e.commit)
	t.Run("delete", e.delete)
	t.Run("shapes", e.shapes)
	t.Run("hostile names", e.hostileNames)
	t.Run("limits", e.limits)
	t.Run("limit", e.room)
	t.Run("list", e.list)
	t.Run("contexts that are done", e.done)
	t.Run("close", e.closed)
	t.Run("time to live", e.timeToLive)
	t.Run("watch", e.watch)
	t.Run("hold", e.hold)
	t.Run("one winner", e.oneWinner)
	t.Run("no torn values", e.noTornValues)
	if e.Again != nil {
		t.Run("two handles", e.twoHandles)
	}
}

const (
	a = "urn:hhfr:session:00112233445566778899aabbccddeeff"
	b = "http://example.org/contexts/b?x=1#y"
)

func (e Subject) open(t testing.TB, o Options) ctxstore.Store {
	t.Helper()
	s := e.Open(t, o)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func (e Subject) values(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	_, err := s.Get(ctx, a)
	code(t, ctxstore.NotFound, err)
	for _, uri := range []string{a, b} {
		for _, value := range [][]byte{[]byte("one"), {}, []byte("hhfr-context 1\n{}\n\x00\xff"), make([]byte, 1<<20)} {
			rev, err := s.Put(ctx, uri, value, ctxstore.PutOptions{})
			require.NoError(t, err)
			got, err := s.Get(ctx, uri)
			require.NoError(t, err)
			require.Len(t, got.Value, len(value))
			assert.Equal(t, string(value), string(got.Value))
			assert.Equal(t, rev, got.Revision)
			assert.NotZero(t, rev)
			assert.True(t, got.Expires.IsZero())
		}
	}
	in := []byte("mine")
	_, err = s.Put(ctx, a, in, ctxstore.PutOptions{})
	require.NoError(t, err)
	in[0] = 'X'
	got, err := s.Get(ctx, a)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(got.Value), "the store keeps a copy")
	got.Value[0] = 'Y'
	got, err = s.Get(ctx, a)
	require.NoError(t, err)
	assert.Equal(t, "mine", string(got.Value), "and gives a copy")
}

func (e Subject) compareAndSet(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	_, err := s.Put(ctx, a, []byte("0"), ctxstore.PutOptions{IfRevision: ctxstore.If(7)})
	code(t, ctxstore.Conflict, err)
	one, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	require.NoError(t, err)
	_, err = s.Put(ctx, a, []byte("2"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	code(t, ctxstore.Conflict, err)
	two, err := s.Put(ctx, a, []byte("2"), ctxstore.PutOptions{IfRevision: &one})
	require.NoError(t, err)
	assert.Greater(t, two, one)
	_, err = s.Put(ctx, a, []byte("3"), ctxstore.PutOptions{IfRevision: &one})
	code(t, ctxstore.Conflict, err)
	holds(t, s, a, "2")
}

func (e Subject) revisionsGrow(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	old, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Delete(ctx, a, &old))
	again, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	require.NoError(t, err)
	assert.Greater(t, again, old)
	_, err = s.Commit(ctx, a, old, []byte("from before the deletion"))
	code(t, ctxstore.Conflict, err)
}

func (e Subject) commit(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	_, err := s.Commit(ctx, b, 3, []byte("x"))
	code(t, ctxstore.Conflict, err)
	rev, err := s.Commit(ctx, b, 0, []byte("x"))
	require.NoError(t, err)
	_, err = s.Commit(ctx, b, 0, []byte("y"))
	code(t, ctxstore.Conflict, err)
	next, err := s.Commit(ctx, b, rev, []byte("y"))
	require.NoError(t, err)
	assert.Greater(t, next, rev)
	holds(t, s, b, "y")
	_, err = s.Commit(ctx, ctxstore.ShapeURI(sha256.Sum256([]byte("z"))), 0, []byte("z"))
	code(t, ctxstore.Invalid, err)
}

func (e Subject) delete(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	code(t, ctxstore.NotFound, s.Delete(ctx, a, nil))
	rev, err := s.Put(ctx, a, []byte("1"), ctxstore.PutOptions{})
	require.NoError(t, err)
	code(t, ctxstore.Conflict, s.Delete(ctx, a, ctxstore.If(rev+1)))
	has(t, s, a, true)
	require.NoError(t, s.Delete(ctx, a, &rev))
	_, err = s.Get(ctx, a)
	code(t, ctxstore.NotFound, err)
	has(t, s, a, false)
	code(t, ctxstore.NotFound, s.Delete(ctx, a, nil))

	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	has(t, s, ctxstore.ShapeURI(fp), true)
	require.NoError(t, s.Delete(ctx, ctxstore.ShapeURI(fp), nil))
	has(t, s, ctxstore.ShapeURI(fp), false)
	code(t, ctxstore.NotFound, s.Delete(ctx, ctxstore.ShapeURI(fp), nil))
}

func (e Subject) shapes(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	shapes := ctxstore.Shapes{Store: s}
	_, err := shapes.Get(ctx, [32]byte{1})
	code(t, ctxstore.NotFound, err)
	for i := range 3 {
		fp, err := shapes.Put(ctx, []byte("a shape"))
		require.NoError(t, err, "time %d", i+1)
		require.Equal(t, sha256.Sum256([]byte("a shape")), fp)
		got, err := shapes.Get(ctx, fp)
		require.NoError(t, err)
		assert.Equal(t, "a shape", string(got))
	}
	uri := ctxstore.ShapeURI(sha256.Sum256([]byte("a shape")))
	rev, err := s.Put(ctx, uri, []byte("a shape"), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
	require.NoError(t, err, "a shape is its content: putting it again is no conflict")
	assert.Equal(t, uint64(1), rev)
	_, err = s.Put(ctx, uri, []byte("another"), ctxstore.PutOptions{})
	code(t, ctxstore.Invalid, err)
	_, err = s.Put(ctx, uri, []byte("a shape"), ctxstore.PutOptions{TTL: 1})
	code(t, ctxstore.Invalid, err)
}

// Whatever a URI looks like, it names its own entry and no other.
func (e Subject) hostileNames(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	good := []string{"urn:hhfr:session:../../etc/passwd", "urn:hhfr:session:..", "../x", "/etc/passwd", "..", ".",
		"lock", "C:\\x", "con", "urn:hhfr:session:A", "urn:hhfr:session:a", "urn:hhfr:session:\u00e9",
		"urn:hhfr:session:e\u0301", `x"<&>\u0041`, "x%2f%00", strings.Repeat("/", ctxstore.MaxURI),
		strings.Repeat("\"", ctxstore.MaxURI)}
	for _, uri := range good {
		_, err := s.Put(ctx, uri, []byte("value of "+uri), ctxstore.PutOptions{IfRevision: ctxstore.If(0)})
		require.NoError(t, err, "%.40q", uri)
	}
	for _, uri := range good {
		holds(t, s, uri, "value of "+uri)
	}
	n := 0
	for i, err := range s.List(ctx, "") {
		require.NoError(t, err)
		assert.Contains(t, good, i.URI)
		n++
	}
	assert.Len(t, good, n)

	for _, uri := range []string{
		"", "a b", "a\nb", "a\x00", "\xff", "a\u00a0b", strings.Repeat("x", ctxstore.MaxURI+1),
		ctxstore.ShapePrefix, ctxstore.ShapePrefix + "../../x", ctxstore.ShapePrefix + strings.Repeat("A", 64),
		ctxstore.ShapePrefix + strings.Repeat("0", 63), ctxstore.ShapePrefix + strings.Repeat("0", 65),
	} {
		_, err := s.Put(ctx, uri, nil, ctxstore.PutOptions{})
		code(t, ctxstore.Invalid, err)
		_, err = s.Get(ctx, uri)
		code(t, ctxstore.Invalid, err)
		_, err = s.Commit(ctx, uri, 0, nil)
		code(t, ctxstore.Invalid, err)
		code(t, ctxstore.Invalid, s.Delete(ctx, uri, nil))
	}
}

func (e Subject) limits(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	_, err := s.Put(ctx, a, make([]byte, ctxstore.MaxValue+1), ctxstore.PutOptions{})
	code(t, ctxstore.Invalid, err)
	_, err = s.Put(ctx, a, nil, ctxstore.PutOptions{TTL: -1})
	code(t, ctxstore.Invalid, err)
	big := make([]byte, ctxstore.MaxValue)
	_, err = s.Put(ctx, a, big, ctxstore.PutOptions{})
	require.NoError(t, err)
	got, err := s.Get(ctx, a)
	require.NoError(t, err)
	assert.Len(t, got.Value, len(big))
}

// Shapes are dropped for other shapes, and for mutable entries; mutable entries are never dropped.
func (e Subject) room(t *testing.T) {
	const limit = 64 << 10
	s, ctx := e.open(t, Options{MaxBytes: limit}), t.Context()
	shapes := ctxstore.Shapes{Store: s}
	_, err := s.Put(ctx, a, make([]byte, 8<<10), ctxstore.PutOptions{})
	require.NoError(t, err)
	var last [32]byte
	for i := range 100 {
		last, err = shapes.Put(ctx, fmt.Appendf(make([]byte, 4<<10), "%d", i))
		require.NoError(t, err)
		_, err = shapes.Get(ctx, last)
		require.NoError(t, err, "what was just put is there")
	}
	var total int64
	for i, err := range s.List(ctx, "") {
		require.NoError(t, err)
		total += i.Size
	}
	assert.LessOrEqual(t, total, int64(limit))
	assert.Greater(t, total, int64(limit/2), "no more is dropped than needed")
	_, err = shapes.Get(ctx, last)
	require.NoError(t, err)
	holds(t, s, a, string(make([]byte, 8<<10)))

	_, err = shapes.Put(ctx, make([]byte, limit+1))
	code(t, ctxstore.Full, err)
	_, err = s.Put(ctx, b, make([]byte, limit-(4<<10)), ctxstore.PutOptions{})
	code(t, ctxstore.Full, err)
	_, err = s.Get(ctx, b)
	code(t, ctxstore.NotFound, err)
	_, err = s.Put(ctx, b, make([]byte, limit-(12<<10)), ctxstore.PutOptions{})
	require.NoError(t, err, "shapes are dropped")
	_, err = s.Put(ctx, b, make([]byte, limit-(12<<10)), ctxstore.PutOptions{})
	require.NoError(t, err, "the value it replaces is dropped too")
}

// ShapeShare requires of an engine, which opens a store of 1 GiB, that shapes take no more than
// [ctxstore.MaxShapeBytes] of it: the least recently used are dropped, and nothing else.
func ShapeShare(t *testing.T, s ctxstore.Store) {
	shapes, big := ctxstore.Shapes{Store: s}, make([]byte, ctxstore.MaxValue)
	_, err := s.Put(t.Context(), a, big, ctxstore.PutOptions{})
	require.NoError(t, err)
	var fingerprints [][32]byte
	for i := range ctxstore.MaxShapeBytes/ctxstore.MaxValue + 2 {
		big[0] = byte(i)
		fp, err := shapes.Put(t.Context(), big)
		require.NoError(t, err)
		fingerprints = append(fingerprints, fp)
	}
	var total int64
	for i, err := range s.List(t.Context(), ctxstore.ShapePrefix) {
		require.NoError(t, err)
		total += i.Size
	}
	assert.LessOrEqual(t, total, int64(ctxstore.MaxShapeBytes))
	assert.Greater(t, total, int64(ctxstore.MaxShapeBytes/2), "no more is dropped than needed")
	for i, there := range map[int]bool{0: false, len(fingerprints) - 1: true} {
		has, err := ctxstore.Has(t.Context(), s, ctxstore.ShapeURI(fingerprints[i]))
		require.NoError(t, err)
		assert.Equal(t, there, has, "shape %d", i)
	}
	holds(t, s, a, string(make([]byte, ctxstore.MaxValue)))
}

func (e Subject) list(t *testing.T) {
	s, ctx := e.open(t, Options{}), t.Context()
	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	want := []string{"urn:a", a, a + "0", ctxstore.ShapeURI(fp), "x"}
	for _, uri := range want {
		if uri != ctxstore.ShapeURI(fp) {
			_, err := s.Put(ctx, uri, []byte("12345"), ctxstore.PutOptions{})
			require.NoError(t, err)
		}
	}
	for _, tc := range []struct {
		prefix string
		want   []string
	}{
		{"", want}, {"urn:", want[:4]}, {"urn:hhfr:", want[1:4]}, {ctxstore.SessionPrefix, want[1:3]}, {a, want[1:3]},
		{ctxstore.ShapePrefix, want[3:4]}, {ctxstore.ShapeURI(fp), want[3:4]}, {"y", nil},
		{ctxstore.ShapePrefix + "g", nil},
	} {
		var got []string
		for i, err := range s.List(ctx, tc.prefix) {
			require.NoError(t, err)
			assert.Equal(t, int64(5), i.Size)
			e, err := s.Get(ctx, i.URI)
			require.NoError(t, err)
			assert.Equal(t, e.Revision, i.Revision)
			got = append(got, i.URI)
		}
		assert.Equal(t, tc.want, got, "prefix %q", tc.prefix)
	}
	for _, err := range s.List(ctx, "") {
		require.NoError(t, err)
		_, err := s.Put(ctx, b, nil, ctxstore.PutOptions{}) // a store that held its lock would hang here
		require.NoError(t, err)
		break
	}
}

func (e Subject) done(t *testing.T) {
	s := e.open(t, Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(fmt.Errorf("enough"))
	for name, err := range everything(ctx, s) {
		assert.ErrorContains(t, err, "enough", name)
	}
}

func (e Subject) closed(t *testing.T) {
	s := e.open(t, Options{})
	changes, err := s.Watch(t.Context(), "")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	_, more := <-changes
	assert.False(t, more)
	require.NoError(t, s.Close())
	for name, err := range everything(t.Context(), s) {
		assert.ErrorIs(t, err, ctxstore.Closed, name)
	}
}

func everything(ctx context.Context, s ctxstore.Store) map[string]error {
	errs := map[string]error{}
	_, errs["get"] = s.Get(ctx, a)
	_, errs["has"] = ctxstore.Has(ctx, s, a)
	_, errs["put"] = s.Put(ctx, a, nil, ctxstore.PutOptions{})
	_, errs["put shape"] = ctxstore.Shapes{Store: s}.Put(ctx, []byte("s"))
	_, errs["commit"] = s.Commit(ctx, a, 0, nil)
	errs["delete"] = s.Delete(ctx, a, nil)
	_, errs["watch"] = s.Watch(ctx, "")
	for _, err := range s.List(ctx, "") {
		errs["list"] = err
	}
	if len(errs) != 8 {
		errs["list"] = nil
	}
	return errs
}

func code(t *testing.T, want ctxstore.Code, err error) {
	t.Helper()
	require.ErrorIs(t, err, &ctxstore.Error{Code: want})
}

func holds(t *testing.T, s ctxstore.Store, uri, value string) {
	t.Helper()
	got, err := s.Get(t.Context(), uri)
	require.NoError(t, err)
	require.Equal(t, value, string(got.Value))
}

func has(t *testing.T, s ctxstore.Store, uri string, want bool) {
	t.Helper()
	got, err := ctxstore.Has(t.Context(), s, uri)
	require.NoError(t, err)
	require.Equal(t, want, got, uri)
}

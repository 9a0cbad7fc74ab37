package bolt_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, path string, cfg bolt.Config) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestConformance(t *testing.T) {
	var path string
	again := func(t testing.TB, o storetest.Options) ctxstore.Store {
		s, err := bolt.Open(path, bolt.Config{MaxBytes: o.MaxBytes})
		require.NoError(t, err)
		return s
	}
	storetest.Run(t, storetest.Subject{
		Open: func(t testing.TB, o storetest.Options) ctxstore.Store {
			path = filepath.Join(t.TempDir(), "not", "there", "yet.db")
			return again(t, o)
		},
		Again: again,
	})
}

func TestShapeShare(t *testing.T) {
	storetest.ShapeShare(t, open(t, filepath.Join(t.TempDir(), "store.db"), bolt.Config{MaxBytes: 1 << 30}))
}

const uri = "urn:example:1"

func TestWhatIsPutStays(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "store.db"), t.Context()
	s, err := bolt.Open(path, bolt.Config{})
	require.NoError(t, err)
	first, err := s.Put(ctx, uri, []byte("one"), ctxstore.PutOptions{})
	require.NoError(t, err)
	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	if runtime.GOOS != "windows" {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	}

	s, err = bolt.Open(path, bolt.Config{ReadOnly: true})
	require.NoError(t, err)
	e, err := s.Get(ctx, uri)
	require.NoError(t, err)
	assert.Equal(t, ctxstore.Entry{Value: []byte("one"), Revision: first}, e)
	_, err = ctxstore.Shapes{Store: s}.Get(ctx, fp)
	require.NoError(t, err)
	_, err = s.Put(ctx, uri, nil, ctxstore.PutOptions{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	_, err = ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	_, err = bolt.Open(path, bolt.Config{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	require.NoError(t, s.Close())

	again := open(t, path, bolt.Config{})
	next, err := again.Put(ctx, uri, []byte("two"), ctxstore.PutOptions{IfRevision: &first})
	require.NoError(t, err)
	assert.Greater(t, next, first)
}

// The most recently used shapes are known after the file was closed and opened again.
func TestUsesStay(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "store.db"), t.Context()
	const limit = 16 << 10
	s, err := bolt.Open(path, bolt.Config{MaxBytes: limit})
	require.NoError(t, err)
	value := func(n byte) []byte { return bytes.Repeat([]byte{n}, 4<<10) }
	var shapes [3][32]byte
	for i := range shapes {
		shapes[i], err = ctxstore.Shapes{Store: s}.Put(ctx, value(byte(i)))
		require.NoError(t, err)
	}
	_, err = ctxstore.Shapes{Store: s}.Get(ctx, shapes[0])
	require.NoError(t, err)
	require.NoError(t, s.Close())

	s = open(t, path, bolt.Config{MaxBytes: limit})
	_, err = ctxstore.Shapes{Store: s}.Put(ctx, value(9))
	require.NoError(t, err)
	_, err = ctxstore.Shapes{Store: s}.Get(ctx, shapes[0])
	require.NoError(t, err, "used last")
	_, err = ctxstore.Shapes{Store: s}.Get(ctx, shapes[1])
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound}, "used longest ago")
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	other, err := bbolt.Open(filepath.Join(dir, "other.db"), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, other.Update(func(t *bbolt.Tx) error { _, err := t.CreateBucket([]byte("theirs")); return err }))
	require.NoError(t, other.Close())
	for _, c := range []struct {
		name, path string
		readOnly   bool
		code       ctxstore.Code
	}{
		{"nothing named", "", false, ctxstore.Invalid},
		{"a folder", dir, false, ctxstore.Invalid},
		{"missing", filepath.Join(dir, "missing"), true, ctxstore.NotFound},
		{"text", file("text", []byte("this is no store")), false, ctxstore.Corrupt},
		{"text, to read", file("text2", []byte("this is no store")), true, ctxstore.Corrupt},
		{"zeros", file("zeros", make([]byte, 64<<10)), false, ctxstore.Corrupt},
		{"another program's", filepath.Join(dir, "other.db"), false, ctxstore.Corrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := bolt.Open(c.path, bolt.Config{ReadOnly: c.readOnly})
			require.ErrorIs(t, err, &ctxstore.Error{Code: c.code})
			assert.Nil(t, s)
		})
	}
}

// Bytes of a value that changed in the file are noticed.
func TestDamage(t *testing.T) {
	path, ctx := filepath.Join(t.TempDir(), "store.db"), t.Context()
	s, err := bolt.Open(path, bolt.Config{})
	require.NoError(t, err)
	_, err = s.Put(ctx, uri, []byte("the value itself"), ctxstore.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
	octets, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t,
		os.WriteFile(path, bytes.ReplaceAll(octets, []byte("the value itself"), []byte("the value damage")), 0o600))

	s = open(t, path, bolt.Config{})
	_, err = s.Get(ctx, uri)
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Corrupt})
	require.NoError(t, s.Delete(ctx, uri, nil))
}

const pathVariable = "HHFR_TEST_BOLT"

// TestOther is run by the other process of TestLock.
func TestOther(t *testing.T) {
	path := os.Getenv(pathVariable)
	if path == "" {
		t.Skip("only run by another test, in a process of its own")
	}
	_, err := bolt.Open(path, bolt.Config{})
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Unavailable})
	require.ErrorContains(t, err, "another process holds it")
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	open(t, path, bolt.Config{})
	self, err := os.Executable()
	require.NoError(t, err)
	other := exec.CommandContext(t.Context(), self, "-test.run=^TestOther$", "-test.v")
	other.Env = append(os.Environ(), pathVariable+"="+path, "GOCOVERDIR=")
	out, err := other.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "--- PASS: TestOther")
}

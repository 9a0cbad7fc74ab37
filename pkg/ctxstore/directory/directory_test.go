package directory_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
	"github.com/hhfr/hhfr/pkg/ctxstore/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	var dir string
	open := func(t testing.TB, o storetest.Options) ctxstore.Store {
		s, err := directory.Open(dir, directory.Config{MaxBytes: o.MaxBytes})
		require.NoError(t, err)
		return s
	}
	storetest.Run(t, storetest.Subject{
		Open: func(t testing.TB, o storetest.Options) ctxstore.Store {
			dir = filepath.Join(t.TempDir(), "not", "there", "yet")
			return open(t, o)
		},
		Again: open,
	})
}

const session = ctxstore.SessionPrefix + "1"

func open(t *testing.T, dir string, cfg directory.Config) *directory.Store {
	t.Helper()
	s, err := directory.Open(dir, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func TestShapeShare(t *testing.T) {
	storetest.ShapeShare(t, open(t, t.TempDir(), directory.Config{MaxBytes: 1 << 30}))
}

func TestLayoutAndModes(t *testing.T) {
	dir, ctx := filepath.Join(t.TempDir(), "store"), t.Context()
	s := open(t, dir, directory.Config{})
	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	_, err = s.Put(ctx, session, []byte("secret"), ctxstore.PutOptions{})
	require.NoError(t, err)
	_, err = s.Put(ctx, "urn:x", []byte("context"), ctxstore.PutOptions{})
	require.NoError(t, err)

	name := func(uri string) string {
		sum := sha256.Sum256([]byte(uri))
		return hex.EncodeToString(sum[:])
	}
	assert.ElementsMatch(t, []string{"lock", "shapes/" + hex.EncodeToString(fp[:]),
		"sessions/" + name(session), "contexts/" + name("urn:x")}, filesIn(t, dir))
	if runtime.GOOS == "windows" {
		return
	}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		want := fs.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		assert.Equal(t, want, info.Mode().Perm(), path)
		return nil
	}))
}

func TestACopyIsAStoreForReading(t *testing.T) {
	from, to, ctx := t.TempDir(), filepath.Join(t.TempDir(), "copy"), t.Context()
	s := open(t, from, directory.Config{})
	fp, err := ctxstore.Shapes{Store: s}.Put(ctx, []byte("shape"))
	require.NoError(t, err)
	rev, err := s.Put(ctx, session, []byte("1"), ctxstore.PutOptions{})
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	require.NoError(t, os.Remove(filepath.Join(to, "lock")))

	c := open(t, to, directory.Config{ReadOnly: true})
	_, err = ctxstore.Shapes{Store: c}.Get(ctx, fp)
	require.NoError(t, err)
	e, err := c.Get(ctx, session)
	require.NoError(t, err)
	assert.Equal(t, rev, e.Revision)
	_, err = c.Put(ctx, session, nil, ctxstore.PutOptions{})
	assert.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	assert.NotContains(t, filesIn(t, to), "lock", "reading writes nothing")

	w := open(t, to, directory.Config{})
	next, err := w.Commit(ctx, session, rev, []byte("2"))
	require.NoError(t, err)
	assert.Greater(t, next, rev, "also without the file that remembers the last revision")
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, tc := range []struct {
		name, path string
		cfg        directory.Config
		code       ctxstore.Code
		says       string
	}{
		{"no name", "", directory.Config{}, ctxstore.Invalid, "no folder named"},
		{"a file", file, directory.Config{}, ctxstore.Invalid, "not a folder"},
		{"below a file", filepath.Join(file, "x"), directory.Config{}, ctxstore.Invalid,
			"file stands where a folder should be"},
		{"missing, to read", filepath.Join(dir, "x"), directory.Config{ReadOnly: true}, ctxstore.NotFound,
			"no such file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if runtime.GOOS == "windows" && tc.name != "a file" {
				t.Skip("the errors of this system read otherwise")
			}
			_, err := directory.Open(tc.path, tc.cfg)
			require.ErrorIs(t, err, &ctxstore.Error{Code: tc.code})
			assert.ErrorContains(t, err, tc.says)
			assert.ErrorContains(t, err, tc.path)
		})
	}
	assert.NoDirExists(t, filepath.Join(dir, "x"))
}

func TestCorruptFilesAreNamedAndHealed(t *testing.T) {
	damages := map[string]func([]byte) []byte{
		"empty":       func([]byte) []byte { return nil },
		"cut":         func(b []byte) []byte { return b[:len(b)-1] },
		"longer":      func(b []byte) []byte { return append(b, 'x') },
		"bit flipped": func(b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"other":       func([]byte) []byte { return bytes.Repeat([]byte("x"), 100<<10) },
	}
	for name, damage := range damages {
		for _, value := range []string{"shape", "session"} {
			t.Run(value+" "+name, func(t *testing.T) {
				dir, ctx := t.TempDir(), t.Context()
				s := open(t, dir, directory.Config{})
				uri, folder := session, "sessions"
				if value == "shape" {
					uri, folder = ctxstore.ShapeURI(sha256.Sum256([]byte(value))), "shapes"
				}
				old, err := s.Put(ctx, uri, []byte(value), ctxstore.PutOptions{})
				require.NoError(t, err)
				path := onlyFile(t, filepath.Join(dir, folder))
				b, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(path, damage(b), 0o600))

				_, err = s.Get(ctx, uri)
				require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Corrupt})
				assert.ErrorContains(t, err, path)
				if value == "session" {
					_, err = s.Commit(ctx, uri, old, []byte("x"))
					require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Corrupt})
				}
				rev, err := s.Put(ctx, uri, []byte(value), ctxstore.PutOptions{})
				require.NoError(t, err)
				if value == "session" {
					assert.Greater(t, rev, old)
				}
				e, err := s.Get(ctx, uri)
				require.NoError(t, err)
				assert.Equal(t, value, string(e.Value))

				require.NoError(t, os.WriteFile(path, damage(b), 0o600))
				require.NoError(t, s.Delete(ctx, uri, nil), "what is corrupt can be deleted")
			})
		}
	}
}

// A file under a wrong name, or a folder in place of a file, is an error of its own and hides
// nothing else.
func TestListGoesOnBehindACorruptFile(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir, directory.Config{})
	for _, uri := range []string{"urn:a", "urn:b"} {
		_, err := s.Put(ctx, uri, []byte(uri), ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	contexts := filepath.Join(dir, "contexts")
	b, err := os.ReadFile(filepath.Join(contexts, first(t, contexts)))
	require.NoError(t, err)
	moved := filepath.Join(contexts, strings.Repeat("ab", 32))
	require.NoError(t, os.WriteFile(moved, b, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(contexts, "README"), nil, 0o600))

	var uris []string
	var errs []error
	for i, err := range s.List(ctx, "") {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		uris = append(uris, i.URI)
	}
	assert.Equal(t, []string{"urn:a", "urn:b"}, uris)
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], &ctxstore.Error{Code: ctxstore.Corrupt})
	assert.ErrorContains(t, errs[0], moved)
}

// The least recently used shapes are dropped first.
func TestShapesInUseStay(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	shapes := ctxstore.Shapes{Store: open(t, dir, directory.Config{MaxBytes: 64 << 10})}
	old := time.Now().Add(-24 * time.Hour)
	var fps [][32]byte
	for i := range 4 {
		fp, err := shapes.Put(ctx, bytes.Repeat([]byte{byte(i)}, 10<<10))
		require.NoError(t, err)
		fps = append(fps, fp)
		require.NoError(t, os.Chtimes(filepath.Join(dir, "shapes", hex.EncodeToString(fp[:])), old, old))
	}
	_, err := shapes.Get(ctx, fps[0])
	require.NoError(t, err)
	_, err = shapes.Put(ctx, bytes.Repeat([]byte{9}, 30<<10))
	require.NoError(t, err)
	_, err = shapes.Get(ctx, fps[0])
	require.NoError(t, err)
	_, err = shapes.Get(ctx, fps[1])
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
}

// A half-written file of a killed process is removed when space is searched for, but not a file
// that may still be written.
func TestLeftoversGo(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "shapes"), 0o700))
	stale, fresh := filepath.Join(dir, "shapes", ".new-1"), filepath.Join(dir, "shapes", ".new-2")
	for _, p := range []string{stale, fresh} {
		require.NoError(t, os.WriteFile(p, []byte("half"), 0o600))
	}
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(stale, old, old))
	s := open(t, dir, directory.Config{})
	_, err := s.Put(ctx, session, nil, ctxstore.PutOptions{})
	require.NoError(t, err)
	assert.NoFileExists(t, stale)
	assert.FileExists(t, fresh)
}

func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, path)
		}
		return err
	}))
	return names
}

func onlyFile(t *testing.T, dir string) string {
	t.Helper()
	names := filesIn(t, dir)
	require.Len(t, names, 1)
	return filepath.Join(dir, names[0])
}

func first(t *testing.T, dir string) string {
	t.Helper()
	names := filesIn(t, dir)
	require.NotEmpty(t, names)
	return names[0]
}

// Whatever a file contains, it is the value with its checksum, or corrupt.
func FuzzEntryFile(f *testing.F) {
	dir := f.TempDir()
	s, err := directory.Open(dir, directory.Config{})
	require.NoError(f, err)
	f.Cleanup(func() { assert.NoError(f, s.Close()) })
	_, err = s.Put(f.Context(), session, []byte("value"), ctxstore.PutOptions{})
	require.NoError(f, err)
	names, err := filepath.Glob(filepath.Join(dir, "sessions", "*"))
	require.NoError(f, err)
	require.Len(f, names, 1)
	whole, err := os.ReadFile(names[0])
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte("hhfr-context 1\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		require.NoError(t, os.WriteFile(names[0], b, 0o600))
		e, err := s.Get(t.Context(), session)
		if err != nil {
			require.Contains(
				t,
				[]bool{errors.Is(err, &ctxstore.Error{Code: ctxstore.Corrupt}),
					errors.Is(err, &ctxstore.Error{Code: ctxstore.NotFound})},
				true,
			)
			return
		}
		require.True(t, bytes.HasSuffix(b, e.Value))
	})
}

//go:build unix

package directory_test

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

func init() {
	roles["full"] = full
	roles["stranger"] = stranger
	roles["no write"] = noWrite
}

// A file size limit stands for a full disk: the write fails half way, as it would there.
func TestFullDisk(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir, directory.Config{})
	_, err := s.Put(ctx, session, []byte("old"), ctxstore.PutOptions{})
	require.NoError(t, err)
	out, err := inRole(t, "full", dir, self(t)).CombinedOutput()
	require.NoError(t, err, "%s", out)

	for _, name := range filesIn(t, dir) {
		assert.False(t, strings.HasPrefix(filepath.Base(name), "."), "%s was left", name)
	}
	e, err := s.Get(ctx, session)
	require.NoError(t, err)
	assert.Equal(t, "old", string(e.Value), "the value before is still there")
	_, err = s.Get(ctx, "urn:big")
	assert.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.NotFound})
}

func full(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
	s, ctx := open(t, dir, directory.Config{}), t.Context()
	for _, uri := range []string{session, "urn:big"} {
		_, err := s.Put(ctx, uri, make([]byte, 1<<20), ctxstore.PutOptions{})
		require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Full})
		assert.ErrorContains(t, err, dir)
		assert.ErrorContains(t, err, "free space there, or name another folder")
	}
	_, err := ctxstore.Shapes{Store: s}.Put(ctx, make([]byte, 1<<20))
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Full})
	_, err = s.Put(ctx, "urn:small", []byte("fits"), ctxstore.PutOptions{})
	require.NoError(t, err)
}

// As another user, none of our files can be read, and the store reports that and what to do.
func TestPermissions(t *testing.T) {
	base, err := os.MkdirTemp("", "hhfr-permissions-")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(base)) })
	require.NoError(t, os.Chmod(base, 0o755))

	store := filepath.Join(base, "store")
	s := open(t, store, directory.Config{})
	_, err = s.Put(t.Context(), session, []byte("secret"), ctxstore.PutOptions{})
	require.NoError(t, err)
	for _, mode := range []struct {
		role string
		mode os.FileMode
	}{{"no write", 0o555}, {"stranger", 0o700}} {
		t.Run(mode.role, func(t *testing.T) {
			before, binary := asNobody(t, base)
			if before == nil && mode.role == "stranger" {
				t.Skip("needs another user: run as root")
			}
			require.NoError(t, os.Chmod(store, mode.mode))
			t.Cleanup(func() { assert.NoError(t, os.Chmod(store, 0o700)) })
			out, err := inRole(t, mode.role, store, binary, before...).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// asNobody returns how to start binary without the rights of root, which ignore file modes.
func asNobody(t *testing.T, base string) (before []string, binary string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil, self(t)
	}
	setpriv := shared.Program(t, "setpriv") // it drops the rights of root
	binary = filepath.Join(base, "role.test")
	from, err := os.Open(self(t))
	require.NoError(t, err)
	defer from.Close()
	to, err := os.OpenFile(binary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(to, from)
	require.NoError(t, err)
	require.NoError(t, to.Close())
	return []string{setpriv, "--reuid=65534", "--regid=65534", "--clear-groups"}, binary
}

func noWrite(t *testing.T, dir string) {
	_, err := directory.Open(dir, directory.Config{})
	if os.Geteuid() != 65534 { // the owner may still open the lock file
		require.NoError(t, err)
		return
	}
	refused(t, err, dir)
	_, err = directory.Open(filepath.Join(dir, "new"), directory.Config{})
	refused(t, err, dir)
	s := open(t, dir, directory.Config{ReadOnly: true})
	_, err = s.Get(t.Context(), session)
	refused(t, err, dir)
	failed := 0
	for _, err := range s.List(t.Context(), "") {
		refused(t, err, dir)
		failed++
	}
	assert.NotZero(t, failed)
}

func stranger(t *testing.T, dir string) {
	for _, cfg := range []directory.Config{{}, {ReadOnly: true}} {
		_, err := directory.Open(dir, cfg)
		refused(t, err, dir)
	}
}

func refused(t *testing.T, err error, dir string) {
	t.Helper()
	require.ErrorIs(t, err, &ctxstore.Error{Code: ctxstore.Permission})
	assert.ErrorContains(t, err, dir)
	assert.ErrorContains(t, err, "check owner and mode of the folder")
}

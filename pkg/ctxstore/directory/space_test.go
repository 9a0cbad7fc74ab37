package directory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/directory"
)

// numbers returns those in the lock file: the last revision, the space taken, and the writes until
// it is counted.
func numbers(t *testing.T, dir string) (n [3]int64) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "lock"))
	require.NoError(t, err)
	lines := strings.Fields(string(b))
	require.Len(t, lines, len(n))
	for i := range n {
		n[i], err = strconv.ParseInt(lines[i], 10, 64)
		require.NoError(t, err)
	}
	return n
}

// taken is the length of all files but the lock.
func taken(t *testing.T, dir string) (sum int64) {
	t.Helper()
	for _, name := range filesIn(t, dir) {
		if name == "lock" {
			continue
		}
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		sum += info.Size()
	}
	return sum
}

// The space taken is known to the next process without counting, whatever was written, replaced,
// dropped and deleted.
func TestSpaceIsKnownWithoutCounting(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	for round := range 5 {
		s := open(t, dir, directory.Config{MaxBytes: 32 << 10})
		for i := range 10 {
			_, err := ctxstore.Shapes{Store: s}.Put(ctx, fmt.Appendf(make([]byte, 1<<10), "%d of %d", i, round))
			require.NoError(t, err)
			_, err = s.Put(ctx, fmt.Sprintf("urn:%d", i), make([]byte, 10*(i+round)), ctxstore.PutOptions{})
			require.NoError(t, err)
		}
		require.NoError(t, s.Delete(ctx, "urn:3", nil))
		require.ErrorIs(t, s.Delete(ctx, "urn:3", nil), &ctxstore.Error{Code: ctxstore.NotFound})
		assert.Equal(t, taken(t, dir), numbers(t, dir)[1])
		require.NoError(t, s.Close())
	}
}

// The files are counted when that is due, and where the lock file does not say what they take:
// that of the version before, and one that is damaged.
func TestSpaceIsCountedWhenDue(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	put := func() {
		t.Helper()
		s := open(t, dir, directory.Config{})
		_, err := s.Put(ctx, session, []byte("value"), ctxstore.PutOptions{})
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	put()
	foreign := filepath.Join(dir, "sessions", ".new-1")
	old := time.Now().Add(-2 * time.Hour)
	leave := func() {
		t.Helper()
		require.NoError(t, os.WriteFile(foreign, make([]byte, 1000), 0o600))
		require.NoError(t, os.Chtimes(foreign, old, old))
	}
	leave()
	put()
	assert.FileExists(t, foreign, "nothing was counted")
	n := numbers(t, dir)
	for name, content := range map[string]string{
		"due":                fmt.Sprintf("%020d\n%020d\n%020d\n", n[0], n[1], 1),
		"the version before": fmt.Sprintf("%020d\n", n[0]),
		"empty":              "",
		"damaged":            fmt.Sprintf("%020d\nx\n", n[0]),
		"beyond the limit":   fmt.Sprintf("%020d\n%020d\n%020d\n", n[0], int64(1)<<40, 100),
	} {
		t.Run(name, func(t *testing.T) {
			leave()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), []byte(content), 0o600))
			put()
			assert.NoFileExists(t, foreign)
			counted := numbers(t, dir)
			assert.Equal(t, taken(t, dir), counted[1])
			assert.Greater(t, counted[0], n[0])
			assert.Equal(t, int64(1024), counted[2])
		})
	}
}

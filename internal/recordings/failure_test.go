//go:build unix

package recordings_test

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/recordings"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// A recording that could not be written goes on after a minute in another file, the old one has
// whole packets, and that something is missing is an error in the end.
func TestGoesOnAfterAFailure(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.pcapng")
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	var log strings.Builder
	rec, err := recordings.Open(recordings.Config{
		Name: name, Size: 1 << 20, Store: memory.New(memory.Config{}), Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	})
	require.NoError(t, err)
	here, there := net.Pipe()
	conn := rec.Conn(here)
	exchange(t, conn, there, 1)
	info, err := os.Stat(name)
	require.NoError(t, err)
	small := limit
	small.Cur = uint64(info.Size()) + 50
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	exchange(t, conn, there, 2)
	now = now.Add(time.Minute)
	small.Cur = 10
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &small))
	exchange(t, conn, there, 2) // the next file cannot be written either
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	assert.Equal(t, 1, strings.Count(log.String(), "calls go on unrecorded"), log.String())
	require.Error(t, rec.Err())
	exchange(t, conn, there, 3)
	now = now.Add(time.Minute)
	exchange(t, conn, there, 4)
	require.NoError(t, conn.Close())
	require.NoError(t, there.Close())
	assert.Error(t, rec.Close())
	assert.Equal(t, 1, strings.Count(log.String(), "the recording goes on"), log.String())

	files, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	after, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, info.Size(), after.Size())
	assert.Equal(t, "<q>1</q><q>1</q>", bodies(t, files[0]))
	assert.Equal(t, "<q>4</q><q>4</q>", bodies(t, name))
	assert.False(t, strings.HasSuffix(files[0], ".new"))
}

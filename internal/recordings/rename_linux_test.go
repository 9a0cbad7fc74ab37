package recordings

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// isOpen reports whether this process has a file open.
func isOpen(t *testing.T, name string) bool {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range open {
		if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && to == name {
			return true
		}
	}
	return false
}

// No file is renamed while it is open, as Windows requires, nor is one in the place of another that
// is. If renaming fails, that is an error in the end, nothing that was written is lost, and the
// recording goes on later.
func TestNoOpenFileIsRenamed(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	name := filepath.Join(dir, "r.pcapng")
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	var steps []string
	rec, err := Open(Config{Name: name, Age: time.Hour, Store: memory.New(memory.Config{}),
		Now: func() time.Time { return now },
		rename: func(from, to string) error {
			assert.False(t, isOpen(t, from), from)
			assert.False(t, isOpen(t, to), to)
			steps = append(steps, filepath.Base(from)+" to "+filepath.Base(to))
			if now.Hour() == 2 && from == name || now.Hour() == 4 && to == name {
				return os.ErrPermission
			}
			return os.Rename(from, to)
		}})
	require.NoError(t, err)
	here, there := net.Pipe()
	conn := rec.Conn(here)
	for hour := range 6 {
		for range 2 { // the second one goes where the first one went
			go func() { _, _ = fmt.Fprintf(there, "message %d", hour) }()
			_, err := io.ReadFull(conn, make([]byte, len("message 0")))
			require.NoError(t, err)
		}
		now = now.Add(time.Hour)
	}
	assert.True(t, isOpen(t, name))
	require.ErrorIs(t, rec.Close(), os.ErrPermission)
	require.NoError(t, conn.Close())
	require.NoError(t, there.Close())
	assert.Equal(t, []string{
		"r.pcapng to r-20260501T010000.000Z.pcapng", "r.pcapng.new to r.pcapng",
		"r.pcapng to r-20260501T020000.000Z.pcapng", // fails
		"r.pcapng to r-20260501T030000.000Z.pcapng", "r.pcapng.new to r.pcapng",
		"r.pcapng to r-20260501T040000.000Z.pcapng", "r.pcapng.new to r.pcapng", // fails
		"r.pcapng.new to r.pcapng",
	}, steps)
	for file, hour := range map[string]int{"r-20260501T010000.000Z.pcapng": 0, "r-20260501T030000.000Z.pcapng": 1,
		"r-20260501T040000.000Z.pcapng": 3, "r.pcapng": 5} {
		octets, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		assert.Equal(t, 2, bytes.Count(octets, fmt.Appendf(nil, "message %d", hour)), file)
	}
}

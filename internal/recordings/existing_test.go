//go:build unix

package recordings_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/recordings"
	"github.com/hhfr/hhfr/internal/shared"
)

// record opens a recording in one file and closes it.
func record(t *testing.T, name string) {
	t.Helper()
	rec, err := recordings.Open(recordings.Config{Name: name})
	require.NoError(t, err)
	require.NoError(t, rec.Close())
}

func modeOf(t *testing.T, name string) os.FileMode {
	t.Helper()
	info, err := os.Stat(name)
	require.NoError(t, err)
	return info.Mode().Perm()
}

// What an earlier run recorded is put aside, whoever can read it; the new file is for its owner
// alone, also where there was an empty one that everybody could read.
func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "r.pcapng")
	require.NoError(t, os.WriteFile(name, []byte("earlier"), 0o600))
	require.NoError(t, os.Chmod(name, 0o644))
	written := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for range 2 {
		require.NoError(t, os.Chtimes(name, written, written))
		record(t, name)
		assert.Equal(t, os.FileMode(0o600), modeOf(t, name))
	}
	assert.Equal(t, "earlier", string(shared.Read(t, filepath.Join(dir, "r-20260501T120000.000Z.pcapng"))))
	assert.NotEmpty(t, shared.Read(t, filepath.Join(dir, "r-20260501T120000.000Z-2.pcapng")))

	empty := filepath.Join(dir, "empty.pcapng")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	require.NoError(t, os.Chmod(empty, 0o666))
	record(t, empty)
	assert.Equal(t, os.FileMode(0o600), modeOf(t, empty))
	files, err := filepath.Glob(filepath.Join(dir, "empty*"))
	require.NoError(t, err)
	assert.Len(t, files, 1, "an empty file is no recording")
}

// A link leads where it led: what is there is put aside there.
func TestLinksStay(t *testing.T) {
	here, there := t.TempDir(), t.TempDir()
	link, name := filepath.Join(here, "link.pcapng"), filepath.Join(there, "r.pcapng")
	require.NoError(t, os.Symlink(name, link))
	for range 2 {
		record(t, link)
		to, err := os.Readlink(link)
		require.NoError(t, err)
		assert.Equal(t, name, to)
		assert.NotEmpty(t, shared.Read(t, name))
	}
	files, err := filepath.Glob(filepath.Join(there, "r-*.pcapng"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

// A file in a folder where nothing may be renamed is left alone, and the error says what to do.
func TestNothingIsLostWhereNothingCanBePutAside(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	name := filepath.Join(dir, "r.pcapng")
	require.NoError(t, os.WriteFile(name, []byte("earlier"), 0o600))
	require.NoError(t, os.Chmod(dir, 0o500))
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, err := recordings.Open(recordings.Config{Name: name})
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "cannot be put aside; move it, or name another one")
	assert.Equal(t, "earlier", string(shared.Read(t, name)))
}

// What is no regular file keeps its name and mode, and so does a file that is stdout already: what
// it has stays.
func TestSpecialFilesStay(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	require.NoError(t, os.Chmod(fifo, 0o640))
	read := make(chan []byte, 1)
	go func() {
		f, err := os.Open(fifo)
		if !assert.NoError(t, err) {
			close(read)
			return
		}
		defer f.Close()
		all, err := io.ReadAll(f)
		assert.NoError(t, err)
		read <- all
	}()
	record(t, fifo)
	assert.NotEmpty(t, <-read)
	assert.Equal(t, os.FileMode(0o640), modeOf(t, fifo))

	out, err := os.OpenFile(filepath.Join(dir, "out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer out.Close()
	require.NoError(t, out.Chmod(0o640))
	_, err = out.WriteString("what was said")
	require.NoError(t, err)
	stdout := os.Stdout
	os.Stdout = out
	defer func() { os.Stdout = stdout }()
	record(t, out.Name())
	assert.Regexp(t, `^what was said\x0a\x0d\x0d\x0a`, string(shared.Read(t, out.Name())))
	assert.Equal(t, os.FileMode(0o640), modeOf(t, out.Name()))
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, files, 2)
}

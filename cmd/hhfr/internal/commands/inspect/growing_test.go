package inspect

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
)

// A file that grows is read to where its next file begins, and that file after it.
func TestGrowing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "r.pcapng")
	first, err := os.Create(name)
	require.NoError(t, err)
	file, err := os.Open(name)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	in := newGrowing(ctx, capture.Input{Name: name, Octets: file}, true, func(n int) { read += n })
	defer in.close()
	expect := func(want string) {
		t.Helper()
		b := make([]byte, len(want))
		_, err := io.ReadFull(in, b)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
	}
	write := func(f *os.File, text string) {
		t.Helper()
		_, err := f.WriteString(text)
		require.NoError(t, err)
	}
	write(first, "one")
	expect("one")
	write(first, "two")
	expect("two")

	require.NoError(t, os.Rename(name, name+".1"))
	second, err := os.Create(name)
	require.NoError(t, err)
	write(second, "new")
	write(first, "end")
	require.NoError(t, first.Close())
	expect("end")
	expect("new")
	write(second, "more")
	expect("more")
	assert.Equal(t, len("onetwoendnewmore"), read)

	cancel()
	n, err := in.Read(make([]byte, 9))
	assert.Equal(t, 0, n)
	assert.Equal(t, io.EOF, err)
	require.NoError(t, second.Close())
	require.NoError(t, file.Close())
}

// Without --tail an input ends where it ends.
func TestNotGrowing(t *testing.T) {
	file, err := os.Open(os.DevNull)
	require.NoError(t, err)
	in := newGrowing(t.Context(), capture.Input{Name: os.DevNull, Octets: file}, false, func(int) {})
	_, err = in.Read(make([]byte, 9))
	assert.Equal(t, io.EOF, err)
	require.NoError(t, file.Close())
}

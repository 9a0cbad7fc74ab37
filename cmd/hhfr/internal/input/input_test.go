package input

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file that never ends, or that delivers nothing, does not delay Ctrl-C.
func TestFilesThatDoNotEnd(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has no /dev/fd")
	}
	r, w, err := os.Pipe()
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	ended := make(chan error, 1)
	go func() {
		_, err := ReadMessage(ctx, fmt.Sprintf("/dev/fd/%d", r.Fd()))
		ended <- err
	}()
	_, err = w.Write(make([]byte, 1<<20)) // more than a pipe holds, so there is a reader
	require.NoError(t, err)
	cancel(why)
	assert.ErrorIs(t, <-ended, why)
	require.NoError(t, w.Close()) // the abandoned goroutine ends now
	require.NoError(t, r.Close())
}

func TestFilesThatAreTooLong(t *testing.T) {
	name := filepath.Join(t.TempDir(), "m.xml")
	require.NoError(t, os.WriteFile(name, []byte("<a/>"), 0o600))
	b, err := readShorter(name, 4)
	require.NoError(t, err)
	assert.Equal(t, "<a/>", string(b))
	_, err = readShorter(name, 3)
	assert.ErrorContains(t, err, "longer than a message may be, 3 bytes")
	_, err = readShorter(name+".none", 3)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

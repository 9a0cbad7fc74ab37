package sender

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A file is sent as it was when its length was looked at: it may be read twice, what was appended
// is not sent, and one that became shorter is an error.
func TestFilesAreReadAsTheyAreSent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "message.xml")
	require.NoError(t, os.WriteFile(file, []byte("<a>0123456789</a>, and more"), 0o600))
	m := MessageToSend{Body: []byte("<a>0"), File: file, Size: 17}
	assert.EqualValues(t, 17, m.Length())
	assert.True(t, m.is([]byte("<a>0123456789</a>")))
	assert.False(t, m.is([]byte("<b>0123456789</b>")))
	out, err := m.message()
	require.NoError(t, err)
	for range 2 {
		all, err := io.ReadAll(out.Body)
		require.NoError(t, err)
		assert.Equal(t, "<a>0123456789</a>", string(all))
		_, err = out.Body.(io.Seeker).Seek(0, io.SeekStart)
		require.NoError(t, err)
	}
	require.NoError(t, os.Truncate(file, 10))
	_, err = io.ReadAll(out.Body)
	assert.ErrorContains(t, err, "message.xml became shorter while it was sent: it ends at byte 10 of 17")
	require.NoError(t, out.Body.(io.Closer).Close())
	require.NoError(t, os.Remove(file))
	_, err = m.message()
	assert.ErrorIs(t, err, os.ErrNotExist)
}

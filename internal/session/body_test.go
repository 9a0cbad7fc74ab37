package session_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
)

// closable counts how often it is closed.
type closable struct {
	io.Reader
	closed int
}

func (c *closable) Close() error { c.closed++; return nil }

// file is a closable that can go back.
type file struct {
	closable
	io.Seeker
}

func newFile(s string) *file {
	r := strings.NewReader(s)
	return &file{closable{Reader: r}, r}
}

// A body that a stream did not take can be had again from where it stood, if it can go back at all; and it is closed once, by whoever is last.
func TestBodyAgain(t *testing.T) {
	read := func(r io.Reader, n int64) string {
		b, err := io.ReadAll(io.LimitReader(r, n))
		require.NoError(t, err)
		return string(b)
	}
	memory := bytes.NewReader([]byte("-body"))
	assert.Equal(t, "-", read(memory, 1))
	lent, again, _ := session.Lend(memory)
	assert.Equal(t, "bo", read(lent, 2))
	body, ok := again(t.Context())
	require.True(t, ok)
	assert.Equal(t, "body", read(body, 9))

	seeker := newFile("-body")
	assert.Equal(t, "-", read(seeker, 1))
	lent, again, _ = session.Lend(seeker)
	assert.Equal(t, "bo", read(lent, 2))
	require.NoError(t, lent.(io.Closer).Close())
	assert.Zero(t, seeker.closed)
	body, ok = again(t.Context())
	require.True(t, ok)
	assert.Equal(t, "body", read(body, 9))

	once := &closable{Reader: strings.NewReader("body")}
	lent, again, _ = session.Lend(once)
	require.NoError(t, lent.(io.Closer).Close())
	_, ok = again(t.Context())
	assert.False(t, ok)
	assert.Equal(t, 1, once.closed)

	// The stream still reads, and the caller waits no longer.
	once = &closable{Reader: strings.NewReader("body")}
	lent, again, _ = session.Lend(once)
	done, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok = again(done)
	assert.False(t, ok)
	assert.Zero(t, once.closed)
	require.NoError(t, lent.(io.Closer).Close())
	assert.Equal(t, 1, once.closed)

	once = &closable{Reader: strings.NewReader("body")}
	lent, _, release := session.Lend(once)
	release()
	require.NoError(t, lent.(io.Closer).Close())
	assert.Equal(t, 1, once.closed)

	_, again, _ = session.Lend(nil)
	body, ok = again(t.Context())
	assert.True(t, ok)
	assert.Nil(t, body)
}

package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// closable counts how often it is closed.
type closable struct {
	io.Reader
	closed int
}

func (c *closable) Close() error { c.closed++; return nil }

// file is a closable that can seek.
type file struct {
	closable
	io.Seeker
}

func newFile(s string) *file {
	r := strings.NewReader(s)
	return &file{closable{Reader: r}, r}
}

// A body that a stream did not take can be read again from where it stood, if it can seek at all;
// and it is closed once, by the last user.
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

// Whoever takes a message closes its body, also where nothing of it is sent, because its head is
// malformed or the body cannot be read.
func TestBodiesOfWhatIsNotSentAreClosed(t *testing.T) {
	services := startServices(t, nil)
	overStream := dial(t, services.http.URL, config(t))
	require.True(t, overStream.Agreed().HHFR, overStream.Agreed().Why)
	cfg := config(t)
	cfg.Transports = none
	plainly := dial(t, services.http.URL, cfg)
	require.False(t, plainly.Agreed().HHFR)
	unread := iotest.ErrReader(io.ErrNoProgress)
	for _, tc := range []struct {
		name, head string
		session    *session.Session
		body       io.Reader
	}{
		{"stream, no head", "nonsense", overStream, strings.NewReader("<a/>")},
		{"plain, no head", "nonsense", plainly, strings.NewReader("<a/>")},
		{"plain, head of a reply", "HTTP/1.1 200 OK\r\n\r\n", plainly, strings.NewReader("<a/>")},
		{"plain, method", "P<ST / HTTP/1.1\r\n\r\n", plainly, strings.NewReader("<a/>")},
		{"plain, target", "POST http://[ HTTP/1.1\r\n\r\n", plainly, strings.NewReader("<a/>")},
		{"plain, body", "POST / HTTP/1.1\r\n\r\n", plainly, unread},
	} {
		for way, send := range map[string]func(context.Context, *streamer.Message) error{
			"Send": tc.session.Send,
			"Call": func(ctx context.Context, m *streamer.Message) error {
				_, err := tc.session.Call(ctx, m)
				return err
			},
			"Begin": func(ctx context.Context, m *streamer.Message) error {
				p, err := tc.session.Begin(ctx, m)
				if err == nil {
					_, err = p.Reply(ctx)
				}
				return err
			},
		} {
			body := &closable{Reader: tc.body}
			require.Error(t, send(t.Context(), &streamer.Message{Head: []byte(tc.head), Body: body}), "%s, %s", tc.name,
				way)
			assert.Equal(t, 1, body.closed, "%s, %s", tc.name, way)
		}
	}
	assert.Empty(t, services.got())
}

// seekingNowhere is a body that fails, and can go back to its start.
type seekingNowhere struct{ io.Reader }

func (seekingNowhere) Seek(int64, int) (int64, error) { return 0, nil }

// A body that cannot be read is no fault of the stream: the next messages use that, however many
// fail.
func TestBodiesThatFailLeaveTheStream(t *testing.T) {
	services := startServices(t, nil)
	cfg := config(t)
	cfg.Reconnect = time.Minute
	s := dial(t, services.http.URL, cfg)
	say(t, s, "before")
	stream := s.Stream()
	gone := errors.New("the disk is gone")
	for range 10 {
		for _, body := range []io.Reader{iotest.ErrReader(gone), seekingNowhere{iotest.ErrReader(gone)}} {
			_, err := s.Call(t.Context(), &streamer.Message{Body: body})
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent})
			require.ErrorIs(t, err, gone)
			err = s.Send(t.Context(), &streamer.Message{Body: body})
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent})
			pending, err := s.Begin(t.Context(), &streamer.Message{Body: body})
			if err == nil {
				_, err = pending.Reply(t.Context())
			}
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent})
			require.ErrorIs(t, err, gone)
		}
	}
	say(t, s, "after")
	assert.Same(t, stream, s.Stream())
	assert.True(t, s.Agreed().HHFR)
	require.NoError(t, s.Close())
}

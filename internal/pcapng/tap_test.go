package pcapng_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// heard is what a tap gave, and may be told to wait.
type heard struct {
	mu   sync.Mutex
	b    bytes.Buffer
	wait chan struct{} // nil: it takes all at once
}

func (h *heard) Write(b []byte) (int, error) {
	if h.wait != nil {
		<-h.wait
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(b)
}

func (h *heard) has(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return bytes.Contains(h.b.Bytes(), []byte(text))
}

// listened begins to listen, and gives what ends it, and how it ended.
func listened(t *testing.T, tap *pcapng.Tap, to *heard) (cancel func(), ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	begun, err := make(chan struct{}), make(chan error, 1)
	go func() { err <- tap.Listen(ctx, to, func() { close(begun) }, func() {}) }()
	<-begun
	return cancel, err
}

// A tap records what passes while somebody listens, of connections that are open, too, in both
// directions.
func TestTap(t *testing.T) {
	tap := new(pcapng.Tap)
	here, there := pair(t, "tcp")
	c := netconn.Of(tap.Conn(here))
	say := func(text string) {
		t.Helper()
		if c.TryWrite([]byte(text)) == 0 {
			_, err := c.Write([]byte(text))
			require.NoError(t, err)
		}
		b := make([]byte, 99)
		n, err := there.Read(b)
		require.NoError(t, err)
		_, err = there.Write(append([]byte("re: "), b[:n]...))
		require.NoError(t, err)
		n, err = c.Read(b)
		require.NoError(t, err)
		assert.Equal(t, "re: "+text, string(b[:n]))
	}
	say("before")
	var first, second heard
	end, ended := listened(t, tap, &first)
	assert.ErrorIs(t, tap.Listen(t.Context(), &second, nil, nil), pcapng.ErrListening)
	say("while")
	require.Eventually(t, func() bool { return first.has("re: while") }, time.Minute, time.Millisecond)
	end()
	require.NoError(t, <-ended)
	say("between")
	end, ended = listened(t, tap, &second)
	say("again")
	require.NoError(t, c.Close())
	require.Eventually(t, func() bool { return second.has("re: again") }, time.Minute, time.Millisecond)
	end()
	require.NoError(t, <-ended)
	assert.False(t, first.has("before") || first.has("between") || second.has("between") || second.has("while"))
	list := packets(t, second.b.Bytes())
	assert.True(t, list[0].tcp.SYN && list[len(list)-2].tcp.FIN)
}

// What is taken too slowly ends, and what passes does not wait.
func TestTapIsSlow(t *testing.T) {
	tap := new(pcapng.Tap)
	to := &heard{wait: make(chan struct{})}
	end, ended := listened(t, tap, to)
	defer end()
	here, there := net.Pipe()
	c := tap.Accepted(there)
	go func() {
		for range 3000 {
			_, _ = here.Write([]byte("x"))
		}
		_ = here.Close()
	}()
	for b := make([]byte, 1); ; {
		if _, err := c.Read(b); err != nil {
			break
		}
	}
	close(to.wait)
	assert.ErrorIs(t, <-ended, pcapng.ErrSlow)
	assert.NoError(t, errors.Join(c.Close(), netconn.Abort(c)))
}

// At the end whoever listens gets all that passed, and one who takes nothing is waited for no
// longer than the context allows.
func TestTapFinish(t *testing.T) {
	tap := new(pcapng.Tap)
	tap.Finish(t.Context()) // nobody listens
	here, there := pair(t, "tcp")
	c := tap.Conn(here)
	to := &heard{wait: make(chan struct{})}
	_, ended := listened(t, tap, to)
	for _, text := range []string{"first", "last"} {
		_, err := c.Write([]byte(text))
		require.NoError(t, err)
		_, err = there.Read(make([]byte, 9))
		require.NoError(t, err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	tap.Finish(late)
	close(to.wait)
	require.NoError(t, <-ended)
	assert.True(t, to.has("first"))
	assert.True(t, to.has("last"))

	again := &heard{}
	_, ended = listened(t, tap, again)
	_, err := c.Write([]byte("more"))
	require.NoError(t, err)
	tap.Finish(t.Context())
	assert.True(t, again.has("more"))
	require.NoError(t, <-ended)
}

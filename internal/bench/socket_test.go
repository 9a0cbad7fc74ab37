package bench

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
)

// withEnds passes both ends of a connection over a link, in virtual time.
func withEnds(t *testing.T, f func(t *testing.T, l *sessionLinks, near, beyond net.Conn)) {
	profile, err := link.ParseProfile("14k4")
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		all := newSockets(clock.Real())
		defer all.close() // also those that nobody closes
		l, err := (&trial{profile: profile}).open(clock.Real(), all)
		require.NoError(t, err)
		defer func() { assert.NoError(t, l.Close()) }()
		listener, err := all.listen(t.Context(), plainAddr)
		require.NoError(t, err)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := listener.Accept()
			assert.NoError(t, err)
			accepted <- c
		}()
		near, err := l.connect(t.Context(), plainAddr)
		require.NoError(t, err)
		f(t, l, near, <-accepted)
		require.NoError(t, listener.Close())
	})
}

// What is written at one moment leaves in one packet, from either end, and a writer does not wait
// for the line, however thin it is.
func TestSocketsGather(t *testing.T) {
	withEnds(t, func(t *testing.T, l *sessionLinks, near, beyond net.Conn) {
		began := time.Now()
		for _, c := range []net.Conn{near, beyond} {
			for range 100 {
				_, err := c.Write([]byte("0123456789"))
				require.NoError(t, err)
			}
		}
		assert.Zero(t, time.Since(began))
		for _, c := range []net.Conn{near, beyond} {
			_, err := io.ReadFull(c, make([]byte, 1000))
			require.NoError(t, err)
		}
		st := l.stats()
		assert.Equal(t, int64(1), st.up.Packets)
		assert.Equal(t, int64(1), st.down.Packets)
	})
}

// What was written before an end is closed arrives, also if no more may be written: TLS forbids
// that by a deadline in the past when it closes.
func TestSocketsCloseBehindWhatWasWritten(t *testing.T) {
	withEnds(t, func(t *testing.T, _ *sessionLinks, near, beyond net.Conn) {
		_, err := beyond.Write([]byte("last"))
		require.NoError(t, err)
		require.NoError(t, beyond.SetWriteDeadline(time.Now()))
		require.NoError(t, beyond.Close())
		_, err = beyond.Write([]byte("late"))
		require.ErrorIs(t, err, io.ErrClosedPipe)
		got, err := io.ReadAll(near)
		require.NoError(t, err)
		assert.Equal(t, "last", string(got))
	})
}

// An end that only stops writing continues to read.
func TestSocketsCloseByHalf(t *testing.T) {
	withEnds(t, func(t *testing.T, _ *sessionLinks, near, beyond net.Conn) {
		require.NoError(t, near.(*bufferedConn).CloseWrite())
		got, err := io.ReadAll(beyond)
		require.NoError(t, err)
		assert.Empty(t, got)
		_, err = beyond.Write([]byte("reply"))
		require.NoError(t, err)
		require.NoError(t, beyond.Close())
		got, err = io.ReadAll(near)
		require.NoError(t, err)
		assert.Equal(t, "reply", string(got))
	})
}

package link_test

import (
	"fmt"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/link"
)

func packets(t testing.TB, profile string) (near, far net.PacketConn) {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	near, far, err = link.Packets(nil, p)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = near.Close()
		_ = far.Close()
	})
	return near, far
}

// What is written arrives when the path says, whole and in order, in both directions.
func TestPacketsArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := packets(t, "14k4")
		began := time.Now()
		for i := range 3 {
			n, err := near.WriteTo(fmt.Appendf(nil, "%0152d", i), nil) // 180 bytes with headers
			require.NoError(t, err)
			assert.Equal(t, 152, n)
		}
		_, err := far.WriteTo([]byte("back"), nil)
		require.NoError(t, err)
		b := make([]byte, 2000)
		for i := range 3 {
			n, from, err := far.ReadFrom(b)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("%0152d", i), string(b[:n]))
			assert.Equal(t, near.LocalAddr(), from)
			within(t, time.Duration(i+1)*100*time.Millisecond+500*time.Millisecond, time.Since(began))
		}
		n, from, err := near.ReadFrom(b)
		require.NoError(t, err)
		assert.Equal(t, "back", string(b[:n]))
		assert.Equal(t, far.LocalAddr(), from)
	})
}

func TestPacketsDeadlinesAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := packets(t, "lte")
		b := make([]byte, 10)
		require.NoError(t, far.SetReadDeadline(time.Now().Add(time.Second)))
		_, _, err := far.ReadFrom(b)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.NoError(t, far.SetDeadline(time.Time{}))
		ended := make(chan error)
		go func() {
			_, _, err := far.ReadFrom(b)
			ended <- err
		}()
		synctest.Wait()
		require.NoError(t, far.Close())
		assert.ErrorIs(t, <-ended, net.ErrClosed)
		assert.ErrorIs(t, far.Close(), net.ErrClosed)
		_, err = far.WriteTo(b, nil)
		assert.ErrorIs(t, err, net.ErrClosed)
		_, err = near.WriteTo(b, nil)
		assert.NoError(t, err, "that nobody reads is not known")
	})
}

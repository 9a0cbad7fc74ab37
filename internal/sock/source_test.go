package sock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/clock"
)

// TestWaitsAreGivenUp: a wait ends by its time, or with its context, at any moment, loses nothing,
// and does not affect the next one.
func TestWaitsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		in := sock.NewSource(here, clock.Real())
		for range 50 {
			data, err := in.Wait(t.Context(), 0, time.Second)
			assert.Empty(t, data)
			require.ErrorIs(t, err, sock.ErrPaused)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("given up"))
			_, err = in.Wait(ctx, 0, 0)
			require.EqualError(t, err, "given up")
			cancel()
			_, err = in.Wait(ctx, 0, 0)
			require.Error(t, err)
			_, err = in.Wait(t.Context(), 0, -1)
			require.ErrorIs(t, err, sock.ErrPaused)
		}
		go func() {
			_, _ = io.WriteString(there, "one")
			time.Sleep(time.Second)
			_, _ = io.WriteString(there, "two")
			_ = there.Close()
		}()
		data, err := in.Wait(t.Context(), 3, 2*time.Second)
		require.NoError(t, err)
		assert.Equal(t, "onetwo", string(data))
		in.Take(4)
		data, err = in.Wait(t.Context(), 2, 0)
		assert.Equal(t, "wo", string(data))
		require.ErrorIs(t, err, io.EOF)
		_ = here.Close()
	})
}

// TestSpaceFollowsWhatComes: the buffer grows with what is not taken, and nothing of it is mixed
// up.
func TestSpaceFollowsWhatComes(t *testing.T) {
	here, there := net.Pipe()
	all := strings.Repeat("0123456789abcde\n", 20_000)
	go func() {
		_, _ = io.WriteString(there, all)
		_ = there.Close()
	}()
	in := sock.NewSource(here, clock.Real())
	var got strings.Builder
	for step := 1; ; step = step*3%7919 + 1 {
		data, err := in.Wait(t.Context(), step, 0)
		n := min(len(data), step)
		got.Write(data[:n])
		in.Take(n)
		if err != nil && n == len(data) {
			break
		}
	}
	assert.True(t, all == got.String())
	_ = here.Close()
}

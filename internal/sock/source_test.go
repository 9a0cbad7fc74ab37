package sock_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
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

// TestWatchedWaits: a context that is watched ends the waits with it, also the one that begins when
// it is done already, and no other.
func TestWatchedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		in := sock.NewSource(here, clock.Real())
		for range 50 {
			watched, end := context.WithCancelCause(t.Context())
			stop := in.Watch(watched)
			for range 3 {
				_, err := in.Wait(watched, 0, time.Second)
				require.ErrorIs(t, err, sock.ErrPaused)
			}
			other, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("other"))
			_, err := in.Wait(other, 0, 0)
			require.EqualError(t, err, "other")
			cancel()
			time.AfterFunc(time.Second, func() { end(errors.New("watched")) })
			_, err = in.Wait(watched, 0, time.Minute)
			require.EqualError(t, err, "watched")
			_, err = in.Wait(watched, 0, 0)
			require.EqualError(t, err, "watched")
			stop()
			_, err = in.Wait(t.Context(), 0, time.Second)
			require.ErrorIs(t, err, sock.ErrPaused)
		}
		go func() { _, _ = io.WriteString(there, "all") }()
		data, err := in.Wait(t.Context(), 2, time.Second)
		require.NoError(t, err)
		assert.Equal(t, "all", string(data))
		_, _ = here.Close(), there.Close()
	})
}

// TestReservedSpaceIsUsedAgain: a source has what it reserved for itself until all of it is taken.
func TestReservedSpaceIsUsedAgain(t *testing.T) {
	const length = 1 << 20
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			here, there := net.Pipe()
			want := bytes.Repeat([]byte{byte('a' + i)}, length)
			go func() {
				for range 20 {
					_, _ = there.Write(want)
				}
				_ = there.Close()
			}()
			in := sock.NewSource(here, clock.Real())
			for range 20 {
				in.Reserve(length + sock.MinRead)
				data, err := in.Wait(t.Context(), length-1, 0)
				if !assert.NoError(t, err) || !assert.True(t, bytes.Equal(want, data[:length])) {
					break
				}
				in.Take(length / 2)
				assert.True(t, bytes.Equal(want[:length/2], in.Peek()[:length/2]))
				in.Take(length / 2)
			}
			_ = here.Close()
		})
	}
	wait.Wait()
}

// TestReservedSpaceServesAnyProcessor: sources that reserve space one after the other have the
// same, whatever processor they are on.
func TestReservedSpaceServesAnyProcessor(t *testing.T) {
	const length = 8 << 20
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	here, there := net.Pipe()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 64 {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // with its goroutine the thread ends: the next one has another
			in := sock.NewSource(here, clock.Real())
			in.Reserve(length)
			go func() { _, _ = io.WriteString(there, "all") }()
			data, err := in.Wait(t.Context(), 2, 0)
			assert.NoError(t, err)
			in.Take(len(data))
		}()
		<-done
	}
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(2*length))
	_, _ = here.Close(), there.Close()
}

// TestDismissed: a source that is dismissed ends between what its user has taken and what comes
// next, also one that waits; what is there, and the rest of it, is read still.
func TestDismissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, before := range []string{"", "one"} {
			here, there := net.Pipe()
			in := sock.NewSource(here, clock.Real())
			go func() {
				_, _ = io.WriteString(there, before)
				time.Sleep(time.Second)
				in.Dismiss()
				if before != "" {
					time.Sleep(time.Second)
					_, _ = io.WriteString(there, "two")
				}
			}()
			if before != "" {
				data, err := in.Wait(t.Context(), 3, 0)
				require.NoError(t, err)
				assert.Equal(t, "onetwo", string(data))
				assert.True(t, in.Holds())
				in.Take(6)
			}
			assert.False(t, in.Holds())
			_, err := in.Wait(t.Context(), 0, 0)
			require.ErrorIs(t, err, sock.ErrDismissed)
			require.ErrorIs(t, err, io.EOF)
			_ = here.Close()
			_ = there.Close()
		}
	})
}

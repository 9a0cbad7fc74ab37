package streamer_test

import (
	"io"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func post(t *testing.T, s *streamer.Stream, text string) *streamer.Posted {
	t.Helper()
	p, err := s.Lane(0).Post(t.Context(), streamer.NewMessage(nil, []byte(text)))
	require.NoError(t, err)
	return p
}

func TestPostedArrivesOrIsRefused(t *testing.T) {
	p := connect(t, pairing{handlerb: echo})
	good := post(t, p.a, "x")
	require.NoError(t, p.a.Close())
	require.NoError(t, good.Err())

	p = connect(t, pairing{})
	bad := post(t, p.a, "nobody serves this")
	require.NoError(t, p.a.Close())
	var e *streamer.Error
	require.ErrorAs(t, bad.Err(), &e)
	assert.Equal(t, streamer.Unserved, e.Code)
	assert.True(t, e.Remote)
}

func TestPostedOnAStreamThatEndsOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(h *byHand)
		code streamer.Code
	}{
		"connection lost": {func(h *byHand) { _ = h.conn.Close() }, streamer.FateUnknown},
		"other end breaks": {func(h *byHand) { h.write(frame.Close{Code: frame.CloseGoingAway}) },
			streamer.FateUnknown},
		"other end closes first": {func(h *byHand) { h.write(frame.Close{}) }, streamer.FateUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
			p := post(t, h.s, "x")
			require.NoError(t, p.Err(), "nothing is known yet")
			until[frame.Data](h)
			tc.end(h)
			go func() { _, _ = io.Copy(io.Discard, h.conn) }()
			<-h.s.Done()
			assert.ErrorIs(t, p.Err(), &streamer.Error{Code: tc.code})
		})
	}
}

// What waits in the queue when the stream breaks was not sent.
func TestPostedAndNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun, failed := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p := connect(t, pairing{handlerb: echo, a: streamer.Config{Events: func(ev streamer.Event) {
			if ev.Dir == streamer.Sent && ev.Kind == frame.KindData {
				once.Do(func() { close(begun) })
				<-failed
			}
		}}})
		written := post(t, p.a, "written")
		<-begun
		waits := post(t, p.a, "waits")
		aborted := make(chan struct{})
		go func() {
			p.a.Abort(frame.CloseGoingAway, "")
			close(aborted)
		}()
		synctest.Wait()
		require.Error(t, p.a.Err())
		close(failed)
		<-aborted
		assert.ErrorIs(t, written.Err(), &streamer.Error{Code: streamer.FateUnknown})
		assert.ErrorIs(t, waits.Err(), &streamer.Error{Code: streamer.Unsent})
	})
}

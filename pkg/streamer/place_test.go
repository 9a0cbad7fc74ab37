package streamer_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A message in a sequence brings its place, and its fragments say it once.
func TestPlacesTravel(t *testing.T) {
	places := make(chan streamer.Place, 3)
	bodies := make(chan int, 3)
	p := connect(t, pairing{handlerb: func(_ context.Context, x *streamer.Exchange) {
		all, err := x.Message().ReadAll(1 << 20)
		assert.NoError(t, err)
		assert.True(t, x.OneWay())
		places <- x.Message().Place
		bodies <- len(all)
	}})
	for _, tc := range []struct {
		place streamer.Place
		size  int
	}{{streamer.Place{Number: 1, Wanted: true}, 3}, {streamer.Place{Number: 70000, Answers: 9}, 60_000},
		{streamer.Place{}, 1}} {
		m := streamer.NewMessage(nil, make([]byte, tc.size))
		m.Place = tc.place
		_, err := p.a.Lane(0).Post(t.Context(), m)
		require.NoError(t, err)
		assert.Equal(t, tc.place, <-places)
		assert.Equal(t, tc.size, <-bodies)
	}
	require.NoError(t, p.a.Close())
}

// Acknowledgements go to whoever listens, in their order among the messages, and are passed over
// where nobody does.
func TestAcknowledgementsTravel(t *testing.T) {
	got := make(chan string, 2)
	h := meetByHand(t, streamer.Config{Acks: func(b []byte) { got <- string(b) }}, newRawCoder(), echo)
	h.write(frame.Ack{Octets: []byte("one")}, frame.Ack{Octets: []byte("two")})
	assert.Equal(t, "one", <-got)
	assert.Equal(t, "two", <-got)
	require.NoError(t, h.s.Acknowledge(t.Context(), []byte("three")))
	assert.Equal(t, "three", string(until[frame.Ack](h).Octets))
	assert.EqualValues(t, 2, h.s.Stats().Received.Ack.Frames)

	deaf := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	deaf.write(frame.Ack{Octets: []byte("one")}, request("\x00x"))
	assert.Equal(t, "\x00x", string(until[frame.Data](deaf).Payload))
	deaf.s.Abort(frame.CloseGoingAway, "")
	assert.ErrorIs(t, deaf.s.Acknowledge(t.Context(), []byte("late")), &streamer.Error{Code: streamer.Unsent})
}

// No sequence can do without a message that the peer refused: the stream breaks, and says what
// was said.
func TestRefusedPlaceBreaksTheStream(t *testing.T) {
	h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	m := streamer.NewMessage(nil, []byte("x"))
	m.Place.Number = 1
	_, err := h.s.Lane(0).Post(t.Context(), m)
	require.NoError(t, err)
	d := until[frame.Data](h)
	h.write(frame.Cancel{Message: frame.Key{Exchange: d.Exchange + 1}, Refused: true, Code: frame.Busy})
	<-h.s.Done()
	var e *streamer.Error
	require.ErrorAs(t, h.s.Err(), &e)
	assert.Equal(t, streamer.Busy, e.Code)
	assert.True(t, e.Remote)
}

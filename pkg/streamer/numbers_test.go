package streamer_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// What a sync does not list stands for nothing any more, but for what held fragments name.
func TestSyncsEndAnnouncements(t *testing.T) {
	h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
	d := newDirection(t)
	for _, f := range []frame.Frame{
		one.full(1), two.full(2), three.reference(3),
		frame.Data{First: true, Last: true, OneWay: true, Exchange: 1, Payload: []byte("\x03" + three.content("held"))},
		frame.Sync{Shapes: []frame.Announced{{Number: 1}}},
		three.full(3), frame.Data{First: true, Last: true, Exchange: 2, Payload: []byte("\x01" + one.content("known"))},
	} {
		h.write(d.fill(f))
	}
	assert.Equal(t, "\x00"+one.message("known"), string(until[frame.Data](h).Payload))
	h.write(d.fill(frame.Data{First: true, Last: true, Exchange: 3, Payload: []byte("\x02" + two.content("given up"))}))
	assert.Equal(t, frame.CloseProtocol, until[frame.Close](h).Code)
}

// A part is joined by what its number stood for when it came, also when it is held behind another
// message and the number is given to another shape meanwhile.
func TestHeldPartsKeepTheirShapes(t *testing.T) {
	came := make(chan string, 2)
	h := meetByHand(t, streamer.Config{}, newRawCoder(), func(_ context.Context, x *streamer.Exchange) {
		b, _ := x.Message().ReadAll(100)
		came <- string(b)
	})
	oneway := func(payload string) frame.Data {
		return frame.Data{First: true, Last: true, OneWay: true, Payload: []byte(payload)}
	}
	h.write(one.full(1), two.reference(2), oneway("\x02"+two.content("a")), oneway("\x01"+one.content("b")))
	h.write(three.full(1), two.full(2))
	assert.ElementsMatch(t, []string{two.message("a"), one.message("b")}, []string{<-came, <-came})
}

// A message whose shape the peer gave up before it could send it will never be joined.
func TestHeldForAShapeThatIsGone(t *testing.T) {
	for _, again := range []frame.Shape{three.full(2), three.reference(2)} {
		h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
		h.write(two.reference(2), request("\x02"+two.content("a")), again)
		c := until[frame.Cancel](h)
		assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: 1}, Refused: true, Code: frame.Unprocessed,
			Text: "unprocessed"}, c)
	}
}

// What somebody reads already is not called unprocessed when there is no room to hold it.
func TestHeldPartsOfMessagesThatAreRead(t *testing.T) {
	reading := make(chan struct{})
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxHeld: 10}}, newRawCoder(), func(_ context.Context,
		x *streamer.Exchange) {
		close(reading)
		_, _ = io.Copy(io.Discard, x.Message().Body)
	})
	h.write(frame.Data{First: true, Payload: []byte("\x00a")})
	<-reading
	h.write(two.reference(2), request("\x02"+two.content("b")), named(frame.Data{Payload: []byte("a long rest")}, 1))
	codes := map[uint64]frame.CancelCode{}
	for len(codes) < 2 {
		c := until[frame.Cancel](h)
		codes[c.Message.Exchange] = c.Code
	}
	assert.Equal(t, map[uint64]frame.CancelCode{1: frame.Busy, 2: frame.Unprocessed}, codes)
}

// A peer that asks again and again for shapes that it was told is not answered, and one that asks
// for what was never there without end is cut off.
func TestShapesAskedForInVain(t *testing.T) {
	coder := newRawCoder(one)
	h := meetInitiator(t, 1<<20, streamer.Config{}, coder, handHello.Limits)
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(one.message("a")))))
	until[frame.Data](h)
	for range 100 {
		h.write(frame.Shape{Number: 1, Form: frame.Unknown})
	}
	require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("behind"))))
	assert.Equal(t, "\x00behind", string(h.next().(frame.Data).Payload))
}

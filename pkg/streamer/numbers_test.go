package streamer_test

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// slowCoder stops behind the only segment of messages under shape 7, and tells how many of them each epoch counts.
type slowCoder struct {
	*rawCoder
	split, goOn chan struct{}
	counted     chan int
}

func (c *slowCoder) Split(lane uint64, head []byte, body io.Reader, most int, emit func(bool, uint64, bool, []byte) error) error {
	return c.rawCoder.Split(lane, head, body, most, func(inHead bool, shape uint64, text bool, data []byte) error {
		err := emit(inHead, shape, text, data)
		if shape == 7 {
			close(c.split)
			<-c.goOn
		}
		return err
	})
}

func (c *slowCoder) Epoch(open map[uint64]int, yield func(uint64, [32]byte)) {
	c.counted <- open[7]
	c.rawCoder.Epoch(open, yield)
}

// A number is counted as open from the first segment on, also while the message is still with the coder and nothing of it is queued.
func TestNumbersAreOpenWhileAMessageIsSplit(t *testing.T) {
	c := &slowCoder{rawCoder: newRawCoder(), split: make(chan struct{}), goOn: make(chan struct{}), counted: make(chan int, 9)}
	c.shapes[7] = []byte("seven")
	h := meetByHand(t, streamer.Config{SyncMessages: 1}, c, echo)
	sent := make(chan error, 1)
	go func() { sent <- h.s.Lane(1).Send(t.Context(), streamer.NewMessage(nil, []byte("#7"))) }()
	<-c.split
	for range 2 {
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("x"))))
	}
	until[frame.Sync](h)
	assert.Equal(t, 1, <-c.counted)
	close(c.goOn)
	require.NoError(t, <-sent)
	assert.Equal(t, uint64(7), until[frame.Shape](h).Number)
	until[frame.Data](h)
}

// What a sync does not list takes no room at the receiver, but for what held fragments name.
func TestSyncsEndAnnouncements(t *testing.T) {
	c := newRawCoder()
	h := meetByHand(t, streamer.Config{}, c, echo)
	d := newDirection(t)
	for _, f := range []frame.Frame{
		fullShape(1, "one"), fullShape(2, "two"), frame.Shape{Number: 3, Form: frame.Reference, Fingerprint: fingerprint("three")},
		frame.Data{First: true, Last: true, OneWay: true, Exchange: 1, Payload: []byte("\x03held")},
		frame.Sync{Shapes: []frame.Announced{{Number: 1}}},
		fullShape(3, "three"), frame.Close{},
	} {
		h.write(d.fill(f))
	}
	assert.Equal(t, frame.CloseDone, until[frame.Close](h).Code)
	require.NoError(t, h.s.Close())
	assert.Equal(t, map[uint64][]byte{1: []byte("one"), 3: []byte("three")}, c.table)
	assert.EqualValues(t, 1, h.s.Stats().Received.Data.Frames)
}

// bindingCoder shows by which shape a part is joined.
type bindingCoder struct{ *rawCoder }

func (c bindingCoder) NewJoin(number uint64) (func(dst, segment []byte, text, last bool) ([]byte, error), error) {
	shape := c.table[number]
	return func(dst, segment []byte, _, _ bool) ([]byte, error) {
		return append(append(append(dst, shape...), ':'), segment...), nil
	}, nil
}

func fullShape(n uint64, s string) frame.Shape {
	return frame.Shape{Number: n, Form: frame.Full, Total: uint64(len(s)), Piece: []byte(s)}
}

// A part is joined by what its number stood for when it came, also when it is held behind another message and the number is given to another shape meanwhile.
func TestHeldPartsKeepTheirShapes(t *testing.T) {
	came := make(chan string, 2)
	h := meetByHand(t, streamer.Config{}, bindingCoder{newRawCoder()}, func(_ context.Context, x *streamer.Exchange) {
		b, _ := x.Message().ReadAll(100)
		came <- string(b)
	})
	oneway := func(payload string) frame.Data {
		return frame.Data{First: true, Last: true, OneWay: true, Payload: []byte(payload)}
	}
	h.write(fullShape(1, "one"), frame.Shape{Number: 2, Form: frame.Reference, Fingerprint: fingerprint("two")}, oneway("\x02a"), oneway("\x01b"))
	h.write(fullShape(1, "uno"), fullShape(2, "two"))
	assert.ElementsMatch(t, []string{"two:a", "one:b"}, []string{<-came, <-came})
}

// A message whose shape the other end gave up before it could send it will never be joined.
func TestHeldForAShapeThatIsGone(t *testing.T) {
	for _, again := range []frame.Shape{fullShape(2, "zwei"), {Number: 2, Form: frame.Reference, Fingerprint: fingerprint("zwei")}} {
		h := meetByHand(t, streamer.Config{}, newRawCoder(), echo)
		h.write(frame.Shape{Number: 2, Form: frame.Reference, Fingerprint: fingerprint("two")}, request("\x02a"), again)
		c := until[frame.Cancel](h)
		assert.Equal(t, frame.Cancel{Message: frame.Key{Exchange: 1}, Refused: true, Code: frame.Unprocessed, Text: "unprocessed"}, c)
	}
}

// What somebody reads already is not called unprocessed when there is no room to hold it.
func TestHeldPartsOfMessagesThatAreRead(t *testing.T) {
	reading := make(chan struct{})
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxHeld: 10}}, newRawCoder(), func(_ context.Context, x *streamer.Exchange) {
		close(reading)
		_, _ = io.Copy(io.Discard, x.Message().Body)
	})
	h.write(frame.Data{First: true, Payload: []byte("\x00a")})
	<-reading
	h.write(frame.Shape{Number: 2, Form: frame.Reference, Fingerprint: fingerprint("two")}, request("\x02b"), named(frame.Data{Payload: []byte("a long rest")}, 1))
	codes := map[uint64]frame.CancelCode{}
	for len(codes) < 2 {
		c := until[frame.Cancel](h)
		codes[c.Message.Exchange] = c.Code
	}
	assert.Equal(t, map[uint64]frame.CancelCode{1: frame.Busy, 2: frame.Unprocessed}, codes)
}

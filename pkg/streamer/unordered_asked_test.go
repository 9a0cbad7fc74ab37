package streamer_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// lacking is an initiator's unordered stream that refers to a long shape, with a message that went whole before.
func lacking(t *testing.T) (h *byHand, conn *shuffled, send func(string)) {
	coder := newRawCoder()
	coder.shapes[1], coder.refer[1] = make([]byte, 9000), true
	h, conn = initiatorByHand(t, true, coder)
	send = func(m string) {
		require.NoError(t, h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte(m))))
	}
	send("#1 whole")
	assert.Equal(t, frame.Reference, h.next().(frame.Shape).Form)
	assert.Contains(t, string(h.next().(frame.Data).Payload), "\x00#1 whole")
	return h, conn, send
}

// A direction is closed behind the whole of a shape that the other end asked for: messages wait for it there.
func TestShapesAskedForLeaveBeforeTheClose(t *testing.T) {
	h, conn, send := lacking(t)
	conn.acknowledge()
	for tries := 0; ; tries++ { // the writer takes note of an acknowledgement when it comes to it
		send("#1 small")
		if strings.Contains(string(h.next().(frame.Data).Payload), "\x01#1 small") {
			break
		}
		require.Less(t, tries, 100000)
	}
	h.write(frame.Shape{Number: 1, Form: frame.Unknown})
	octets := len(h.next().(frame.Shape).Piece)
	require.Less(t, octets, 9000)
	closed := make(chan error, 1)
	go func() { closed <- h.s.Close() }()
	for h.s.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("until it closes"))) == nil {
		h.next()
	}
	for over := false; !over; {
		conn.acknowledge()
		switch f := h.next().(type) {
		case frame.Shape:
			octets += len(f.Piece)
		case frame.Close:
			over = true
			assert.Equal(t, frame.CloseDone, f.Code)
		}
	}
	assert.Equal(t, 9000, octets)
	h.write(frame.Close{Messages: 1})
	require.NoError(t, <-closed)
}

// A number whose shape is asked for before its reference is acknowledged is not used until the shape is there.
func TestNumbersAskedForAreNotUsed(t *testing.T) {
	h, conn, send := lacking(t)
	h.write(frame.Shape{Number: 1, Form: frame.Unknown}, frame.Shape{Number: 7, Form: frame.Full, Total: 1, Piece: []byte("x")})
	for h.s.Stats().Received.Shape.Frames < 2 { // then the first is taken in
		runtime.Gosched()
	}
	send("barrier")
	assert.Contains(t, string(h.next().(frame.Data).Payload), "barrier", "the writer has looked at what was asked")
	for octets := 0; octets < 9000; { // of the shape, piece by piece
		conn.acknowledge()
		send("#1 whole")
		for shape := false; !shape; {
			switch f := h.next().(type) {
			case frame.Shape:
				shape = true
				octets += len(f.Piece)
			case frame.Data:
				assert.Contains(t, string(f.Payload), "\x00#1 whole")
				send("#1 whole")
			}
		}
	}
}

// Cancels that wait for acknowledgements which never come are bounded.
func TestCancelsThatNobodyAcknowledgesAreBounded(t *testing.T) {
	here, there := shuffledPipe(64<<20, 0, 1)
	there.mute = true
	hello := handHello
	hello.Unordered = true
	h := &byHand{t: t, conn: here}
	h.write(hello)
	s, err := streamer.Over(context.Background(), there, streamer.Config{Limits: streamer.Limits{MaxExchanges: 1},
		Accept: func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
			return newRawCoder(), nil, nil
		}})
	require.NoError(t, err)
	go func() {
		for i := uint64(1); ; i++ {
			for _, f := range sealed(frame.Data{First: true, Last: true, OneWay: true, Exchange: i, Payload: []byte{0}}) {
				if _, err := here.Write(f.AppendTo(nil)); err != nil {
					return
				}
			}
		}
	}()
	<-s.Done()
	assert.ErrorIs(t, s.Close(), &streamer.Error{Code: streamer.BeyondLimits})
	require.NoError(t, here.Close())
}

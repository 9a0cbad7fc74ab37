package streamer_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestBrokenRulesEndTheStreamAndSayWhere(t *testing.T) {
	big := make([]byte, 600)
	sync := frame.Sync{Word: handHello.Word, Session: session, Representation: 1}
	many := func(n int, f frame.Frame) (all []frame.Frame) {
		for range n {
			all = append(all, f)
		}
		return all
	}
	oneWay := frame.Data{First: true, Last: true, OneWay: true, Payload: []byte("\x00")}
	lanes := func(n int) (all []frame.Frame) {
		for lane := range n {
			f := oneWay
			f.NamesLane, f.Lane = lane > 0, uint64(lane)
			all = append(all, f)
		}
		return all
	}
	openMany := func() (all []frame.Frame) {
		for range 2*(4+100) + 65 {
			all = append(all, frame.Data{First: true, OneWay: true, Payload: []byte{0}})
		}
		return all
	}
	references := func(n uint64) (all []frame.Frame) {
		for number := range n {
			all = append(all, frame.Shape{Number: number + 1, Form: frame.Reference})
		}
		return all
	}
	listing := func(number uint64, shape *kind) frame.Sync {
		s := sync
		s.Offset = uint64(len(handHello.AppendTo(nil)))
		if shape == two {
			s.Offset += uint64(len(one.full(1).AppendTo(nil)))
		}
		s.Shapes = []frame.Announced{{Number: number, Name: frame.NameOf(shape.Fingerprint())}}
		return s
	}
	for name, tc := range map[string]struct {
		frames []frame.Frame
		raw    []byte
		code   streamer.Code
		back   int64 // how far before the end of what was written the error is; -1: anywhere
	}{
		"unknown kind": {raw: []byte{0x08}, code: streamer.Protocol, back: 1},
		"second hello": {frames: []frame.Frame{handHello}, code: streamer.Protocol,
			back: int64(len(handHello.AppendTo(nil)))},
		"payload too long": {frames: []frame.Frame{request(string(big))}, code: streamer.Protocol,
			back: int64(len(big)) + 2},
		"later fragment first": {frames: []frame.Frame{frame.Data{Payload: []byte("x")}}, code: streamer.Protocol,
			back: 3},
		"later of unknown message": {frames: []frame.Frame{named(frame.Data{Payload: []byte("x")}, 5)},
			code: streamer.Protocol, back: 4},
		"request number again": {frames: []frame.Frame{request("\x00a"), named(request("\x00"), 1)},
			code: streamer.Protocol, back: 4},
		"reply to nothing": {frames: []frame.Frame{frame.Data{First: true, Last: true, Reply: true,
			Payload: []byte{0}}}, code: streamer.Protocol, back: 3},
		"shape not announced":   {frames: []frame.Frame{request("\x05")}, code: streamer.Protocol, back: 3},
		"payload without shape": {frames: []frame.Frame{request("")}, code: streamer.Protocol, back: 0},
		"head too long": {frames: []frame.Frame{frame.Data{First: true, Last: true, Head: true,
			Payload: []byte("\x00\x08abc")}}, code: streamer.Protocol, back: 3},
		"bad shape": {frames: []frame.Frame{frame.Shape{Number: 1, Form: frame.Full, Total: 3,
			Piece: []byte("bad")}}, code: streamer.Protocol, back: 9},
		"piece out of order": {frames: []frame.Frame{frame.Shape{Number: 1, Form: frame.Full, Total: 9, Offset: 3,
			Piece: []byte("bad")}}, code: streamer.Protocol, back: 9},
		"shape too large": {frames: []frame.Frame{frame.Shape{Number: 1, Form: frame.Full, Total: 1 << 40,
			Piece: []byte("x")}}, code: streamer.Protocol, back: -1},
		// 16 numbers may be used before the peer's hello is read, whatever that says.
		"too many shapes": {frames: references(17), code: streamer.BeyondLimits, back: 36},
		"sync of other word": {frames: []frame.Frame{frame.Sync{Session: session}}, code: streamer.WrongCheck,
			back: -1},
		"sync at other offset": {frames: []frame.Frame{sync}, code: streamer.WrongCheck,
			back: int64(len(sync.AppendTo(nil)))},
		"sync of other shape": {frames: []frame.Frame{one.full(1), listing(1, two)}, code: streamer.WrongCheck,
			back: int64(len(listing(1, one).AppendTo(nil)))},
		"sync of new shape": {frames: []frame.Frame{listing(1, one)}, code: streamer.WrongCheck,
			back: int64(len(listing(1, one).AppendTo(nil)))},
		"close of other check": {frames: []frame.Frame{frame.Close{Messages: 1}}, code: streamer.WrongCheck, back: -1},
		"no sync for too long": {frames: append(many(1800, frame.Skipped{Octet: 0x7f, Body: big}), request("\x00")),
			code: streamer.Protocol, back: 3},
		"no sync for too many": {frames: many(frame.MaxSyncMessages+2, oneWay), code: streamer.Protocol, back: 3},
		"on too many lanes":    {frames: lanes(frame.MaxSyncLanes + 1), code: streamer.Protocol, back: 5},
		"too many open":        {frames: openMany(), code: streamer.BeyondLimits, back: 3},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := streamer.Config{Limits: streamer.Limits{MaxFragment: 512, MaxExchanges: 4, MaxShapes: 2,
				MaxShapeBytes: 1000}}
			h := meetByHand(t, cfg, newRawCoder(), echo)
			h.write(tc.frames...)
			h.raw(tc.raw)
			said := until[frame.Close](h)
			require.NoError(t, h.conn.Close())
			<-h.s.Done()
			var e *streamer.Error
			require.ErrorAs(t, h.s.Err(), &e)
			assert.Equal(t, tc.code, e.Code, "%v", e)
			assert.False(t, e.Remote)
			if tc.back >= 0 {
				assert.Equal(t, h.offset-tc.back, e.At, "%v", e)
			}
			assert.Contains(t, said.Text, "offset")
			assert.Equal(t, tc.code.String(), said.Code.String())
		})
	}
}

// recorded is what an initiator writes in a stream of some messages, hello included, and the length
// of the hello.
func recorded(t testing.TB) (all []byte, hello int) {
	var b []byte
	b = handHello.AppendTo(b)
	hello = len(b)
	d := newDirection(t)
	for _, f := range []frame.Frame{
		one.full(1),
		frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x01" + one.content("1"))},
		frame.Data{First: true, Head: true, Exchange: 2, Payload: []byte("\x00\x05he")},
		frame.Data{First: true, Last: true, OneWay: true, Exchange: 3, Lane: 4, Payload: []byte("\x00event")},
		frame.Data{Head: true, Exchange: 2, Payload: []byte("\x04ad\x01b")},
		frame.Sync{Shapes: []frame.Announced{{Number: 1}}},
		frame.Shape{Number: 2, Form: frame.Reference},
		frame.Data{Last: true, Text: true, Exchange: 2, Payload: []byte("text")},
		frame.Data{First: true, Exchange: 4, Payload: []byte("\x00given up")},
		frame.Cancel{Message: frame.Key{Exchange: 4}, Code: frame.Aborted},
		frame.Close{},
	} {
		b = d.fill(f).AppendTo(b)
	}
	return b, hello
}

// receive has a stream take b from an initiator that then goes away, and returns the stream's
// error.
func receive(t testing.TB, b []byte) error {
	here, there := inproc.Pipe(1 << 20)
	return receiveOver(t, b, here, there)
}

// receiveOver does so over a connection.
func receiveOver(t testing.TB, b []byte, here, there net.Conn) error {
	_, err := here.Write(b)
	require.NoError(t, err)
	require.NoError(t, here.(interface{ CloseWrite() error }).CloseWrite())
	limits := streamer.Limits{MaxFragment: 512, MaxExchanges: 4, MaxShapes: 4, MaxShapeBytes: 1000, Window: 32 << 10,
		MaxQueued: 4096, MaxHeld: 1024, MaxMessage: 10000}
	s, err := streamer.Over(context.Background(), there, streamer.Config{Limits: limits,
		Accept: func(context.Context, frame.Hello) (streamer.Admission, error) {
			return streamer.Admission{Coder: newRawCoder(), Handler: func(ctx context.Context, x *streamer.Exchange) {
				_, _ = io.Copy(io.Discard, x.Message().Body)
				_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("reply")))
			}}, nil
		}})
	if err != nil {
		return err
	}
	<-s.Done()
	require.NoError(t, here.Close())
	return s.Close()
}

func TestRecordedDirectionIsGood(t *testing.T) {
	b, _ := recorded(t)
	assert.NoError(t, receive(t, b))
}

func TestTruncatedAndFlippedDirections(t *testing.T) {
	b, hello := recorded(t)
	for at := range b {
		assert.Error(t, receive(t, b[:at]), "cut at %d", at)
	}
	for at := hello; at < len(b); at++ {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			flipped := bytes.Clone(b)
			flipped[at] ^= mask
			err := receive(t, flipped)
			var e *streamer.Error
			if err != nil {
				require.ErrorAs(t, err, &e, "flipped at %d", at)
			}
		}
	}
}

func FuzzReader(f *testing.F) {
	b, hello := recorded(f)
	f.Add(b[hello:])
	for at := hello; at < len(b); at += 17 {
		f.Add(b[hello:at])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		if len(rest) < 1<<19 {
			_ = receive(t, append(bytes.Clone(b[:hello]), rest...))
		}
	})
}

// A peer that refers to ever more shapes that are not here, and sends none, does not fill the
// memory.
func TestShapesThatNeverComeAreBounded(t *testing.T) {
	h := meetByHand(t, streamer.Config{Limits: streamer.Limits{MaxShapes: 16}}, newRawCoder(), echo)
	d := newDirection(t)
	for number := range uint64(4096) {
		if number%16 == 15 {
			h.write(d.fill(frame.Sync{}))
		}
		h.write(d.fill(frame.Shape{Number: number + 1, Form: frame.Reference}))
		switch f := h.next().(type) {
		case frame.Shape:
		case frame.Close:
			assert.Equal(t, frame.CloseLimits, f.Code)
			assert.Contains(t, f.Text, "were asked for")
			return
		}
	}
	assert.Fail(t, "no end")
}

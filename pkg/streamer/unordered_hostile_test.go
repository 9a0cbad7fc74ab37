package streamer_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// meetUnordered is [meetByHand] over a connection that carries messages each for itself; the stream's ends come back.
func meetUnordered(t testing.TB, cfg streamer.Config, coder streamer.Coder, handler streamer.Handler) *byHand {
	t.Helper()
	here, there := shuffledPipe(8<<20, 0, 1)
	h := &byHand{t: t, conn: here}
	cfg.Accept = func(context.Context, frame.Hello) (streamer.Coder, streamer.Handler, error) {
		return coder, handler, nil
	}
	hello := handHello
	hello.Unordered = true
	h.write(hello)
	var err error
	h.s, err = streamer.Over(context.Background(), there, cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = here.Close()
		h.s.Abort(frame.CloseGoingAway, "")
	})
	back, ok := h.next().(frame.Hello)
	require.True(t, ok && back.Unordered)
	return h
}

// sealed are data frames of one unordered direction.
func sealed(frames ...frame.Data) (all []frame.Frame) {
	var s frame.Seals
	for _, f := range frames {
		s.Seal(&f, nil)
		all = append(all, f)
	}
	return all
}

// Whatever the order in which frames come, fragments, close and all, the messages are read, and the close counts.
func TestFramesInAnyOrderByHand(t *testing.T) {
	frames := append(sealed(
		frame.Data{First: true, Exchange: 1, Payload: []byte("\x00one ")},
		frame.Data{Exchange: 1, Payload: []byte("two ")},
		frame.Data{Last: true, Exchange: 1, Payload: []byte("three")},
		frame.Data{First: true, Last: true, Exchange: 2, Lane: 7, Payload: []byte("\x00alone")},
	), frame.Close{Messages: 4})
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {2, 1, 0, 3, 4}, {4, 3, 2, 1, 0}, {1, 4, 3, 0, 2}} {
		h := meetUnordered(t, streamer.Config{}, newRawCoder(), echo)
		for _, i := range order {
			h.write(frames[i])
		}
		var fragments frame.Fragments
		got := map[uint64]string{}
		for {
			f := h.next()
			if c, ok := f.(frame.Close); ok {
				assert.Equal(t, frame.CloseDone, c.Code, c.Text)
				assert.EqualValues(t, 2, c.Messages)
				break
			}
			d, ok := f.(frame.Data)
			require.True(t, ok, "%T", f)
			ready, err := fragments.Take(d, 0)
			require.NoError(t, err)
			require.Len(t, ready, 1)
			got[d.Exchange] = string(ready[0].Payload)
		}
		assert.Equal(t, map[uint64]string{1: "\x00one two three", 2: "\x00alone"}, got)
		require.NoError(t, h.conn.(interface{ CloseWrite() error }).CloseWrite())
		assert.NoError(t, h.s.Close())
	}
}

// What hostile ends send is bounded, and told.
func TestBrokenRulesOfUnorderedStreams(t *testing.T) {
	later := func(exchange, number uint64, content string) frame.Data {
		return frame.Data{NamesExchange: true, Exchange: exchange, Payload: append(binaryUvarint(number), content...)}
	}
	early := func(n int, content string) (all []frame.Frame) {
		for i := range n {
			all = append(all, later(uint64(1+i), 1, content))
		}
		return all
	}
	var open []frame.Data
	for i := range 2*(4+100) + 64 + 1024 + 1 {
		open = append(open, frame.Data{First: true, OneWay: true, Exchange: uint64(1 + i), Payload: []byte{0}})
	}
	first := frame.Data{First: true, Exchange: 1, Payload: []byte("\x00a")}
	wrong := sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x00a")})[0].(frame.Data)
	wrong.Payload[1]++
	sync := frame.Sync{Word: handHello.Word, Session: session, Representation: 1}
	other := sync
	other.Offset = 9
	listing := sync
	listing.Shapes = []frame.Announced{{Number: 1}}
	for name, tc := range map[string]struct {
		frames []frame.Frame
		code   streamer.Code
	}{
		"early fragments for ever":   {early(1025, "x"), streamer.BeyondLimits},
		"early octets for ever":      {early(129, strings.Repeat("x", 8200)), streamer.BeyondLimits},
		"a gap that never fills":     {[]frame.Frame{later(1, 1<<63, "x"), later(1, 1<<64-1, "x"), later(1, 1<<63, "x")}, streamer.Protocol},
		"fragment 0 later":           {[]frame.Frame{later(1, 0, "x")}, streamer.Protocol},
		"exchange is not named":      {[]frame.Frame{frame.Data{First: true, Last: true, Payload: []byte("\x00xxxxx")}}, streamer.Protocol},
		"wrong check":                {[]frame.Frame{wrong}, streamer.WrongCheck},
		"no check":                   {[]frame.Frame{frame.Data{First: true, Last: true, NamesExchange: true, Exchange: 1, Payload: []byte("\x00a")}}, streamer.Protocol},
		"first fragment twice":       {append(sealed(first), sealed(first)...), streamer.Protocol},
		"fragment behind the last":   {append([]frame.Frame{later(1, 2, "x")}, sealed(first, frame.Data{Last: true, Exchange: 1})...), streamer.Protocol},
		"request twice":              {append(sealed(first), sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x00a")})...), streamer.Protocol},
		"reply to nothing":           {sealed(frame.Data{First: true, Last: true, Reply: true, Exchange: 1, Payload: []byte{0}}), streamer.Protocol},
		"shape not announced":        {sealed(frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte{5}}), streamer.Protocol},
		"sync of other word":         {[]frame.Frame{frame.Sync{Session: session}}, streamer.WrongCheck},
		"sync of other stages":       {[]frame.Frame{frame.Sync{Word: handHello.Word, Session: session, Representation: 1, Stages: 9}}, streamer.WrongCheck},
		"sync of other words":        {[]frame.Frame{frame.Sync{Word: handHello.Word, Session: session, Representation: 9}}, streamer.WrongCheck},
		"sync with an offset":        {[]frame.Frame{other}, streamer.WrongCheck},
		"sync of unknown shape":      {[]frame.Frame{listing}, streamer.WrongCheck},
		"more than the close counts": {append(sealed(first), frame.Close{}), streamer.WrongCheck},
		"too many open":              {sealed(open...), streamer.BeyondLimits},
	} {
		t.Run(name, func(t *testing.T) {
			h := meetUnordered(t, streamer.Config{Limits: streamer.Limits{MaxExchanges: 4}}, newRawCoder(), func(ctx context.Context, x *streamer.Exchange) {
				_, _ = io.Copy(io.Discard, x.Message().Body)
				<-ctx.Done()
			})
			h.write(tc.frames...)
			assert.Equal(t, tc.code.String(), until[frame.Close](h).Code.String())
			require.NoError(t, h.conn.Close())
			<-h.s.Done()
			assert.ErrorIs(t, h.s.Err(), &streamer.Error{Code: tc.code})
		})
	}
}

// Frames that a close speaks of and that never come are no end in order.
func TestUnorderedCloseWithoutAllFrames(t *testing.T) {
	h := meetUnordered(t, streamer.Config{}, newRawCoder(), echo)
	h.write(frame.Close{Messages: 1})
	require.NoError(t, h.conn.(interface{ CloseWrite() error }).CloseWrite())
	<-h.s.Done()
	assert.ErrorIs(t, h.s.Err(), io.ErrUnexpectedEOF)
}

// recordedUnordered is what an initiator writes in an unordered stream, in an order in which it may come, hello included, and the length of the hello.
func recordedUnordered() (all []byte, hello int) {
	h := handHello
	h.Unordered = true
	b := h.AppendTo(nil)
	hello = len(b)
	data := sealed(
		frame.Data{First: true, Last: true, Exchange: 1, Payload: []byte("\x01#1")},
		frame.Data{First: true, Head: true, Exchange: 2, Payload: []byte("\x00\x05he")},
		frame.Data{Head: true, Exchange: 2, Payload: []byte("\x04ad\x01b")},
		frame.Data{Last: true, Text: true, Exchange: 2, Payload: []byte("text")},
		frame.Data{First: true, Last: true, OneWay: true, Exchange: 3, Lane: 4, Payload: []byte("\x00event")},
		frame.Data{First: true, Exchange: 4, Payload: []byte("\x00given up")},
	)
	for _, f := range []frame.Frame{
		frame.Close{Messages: 10}, data[3], frame.Shape{Number: 1, Form: frame.Full, Total: 5, Piece: []byte("shape")}, data[4], data[2], data[5],
		frame.Sync{Word: handHello.Word, Session: session, Representation: 1, Shapes: []frame.Announced{{Number: 1, Name: frame.NameOf(fingerprint("shape"))}}},
		data[0], frame.Shape{Number: 2, Form: frame.Reference}, frame.Cancel{Message: frame.Key{Exchange: 4}, Code: frame.Aborted}, data[1],
	} {
		b = f.AppendTo(b)
	}
	return b, hello
}

// receiveUnordered has a stream take b from an initiator that then goes away, and returns the stream's error.
func receiveUnordered(t testing.TB, b []byte) error {
	here, there := shuffledPipe(1<<20, 0, 1)
	return receiveOver(t, b, here, there)
}

func TestUnorderedDirectionsTruncatedAndFlipped(t *testing.T) {
	b, hello := recordedUnordered()
	require.NoError(t, receiveUnordered(t, b))
	for at := range b {
		assert.Error(t, receiveUnordered(t, b[:at]), "cut at %d", at)
	}
	for at := hello; at < len(b); at++ {
		for _, mask := range []byte{0x01, 0x80, 0xff} {
			flipped := bytes.Clone(b)
			flipped[at] ^= mask
			err := receiveUnordered(t, flipped)
			var e *streamer.Error
			if err != nil {
				require.ErrorAs(t, err, &e, "flipped at %d", at)
			}
		}
	}
}

func FuzzUnorderedReader(f *testing.F) {
	b, hello := recordedUnordered()
	f.Add(b[hello:])
	for at := hello; at < len(b); at += 17 {
		f.Add(b[hello:at])
	}
	f.Fuzz(func(t *testing.T, rest []byte) {
		if len(rest) < 1<<19 {
			_ = receiveUnordered(t, append(bytes.Clone(b[:hello]), rest...))
		}
	})
}

package wire_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/wire"
)

// decodes reads frames behind a hello, and returns the first error.
func decodes(t *testing.T, h frame.Hello, frames ...frame.Frame) error {
	t.Helper()
	d := wire.NewDecoder(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: 1 << 20})
	b := h.AppendTo(nil)
	for _, f := range frames {
		b = f.AppendTo(b)
	}
	for len(b) > 0 {
		f, err := d.Next(b)
		if err != nil {
			return err
		}
		require.NotZero(t, f.Octets)
		b = b[f.Octets:]
	}
	return nil
}

// What docs/wire-format.md calls malformed is refused, and what is like it and is not malformed is
// taken.
func TestMalformed(t *testing.T) {
	announce := func(number uint64, message string) frame.Shape {
		s, err := learn.FromMessage([]byte(message))
		require.NoError(t, err)
		packed := transit.Pack(nil, s.Octets(), nil)
		return frame.Shape{Number: number, Form: frame.Full, Total: uint64(len(packed)), Piece: packed}
	}
	one, other := announce(1, "<a>x</a>"), announce(1, "<b>x</b>")
	other2 := other
	other2.Number = 2
	cut := func(s frame.Shape) (first, rest frame.Shape) {
		first, rest = s, s
		first.Piece, rest.Piece, rest.Offset = s.Piece[:5], s.Piece[5:], 5
		return first, rest
	}
	oneFirst, oneRest := cut(one)
	begun := frame.Data{First: true, Payload: []byte("\x01")} // under number 1
	ended := frame.Data{Last: true, NamesExchange: true, Exchange: 1, Payload: []byte("\x02y")}
	inSequence := func(p frame.Place, payload string) frame.Data {
		return frame.Data{First: true, Last: true, OneWay: true, Place: p, Payload: []byte(payload)}
	}
	fate := frame.Place{Number: 1, Answers: 1, Unknown: true}
	kept, ack := frame.Kept{Messages: []frame.KeptPart{{Number: 1, Octets: 1}}}, frame.Ack{Octets: []byte{1}}
	text := frame.Data{Text: true, Last: true, Payload: []byte("\x00t")}
	for name, tc := range map[string]struct {
		frames []frame.Frame
		err    string // empty: none
	}{
		"text in place of the rest": {[]frame.Frame{one, begun, text}, ""},
		"text under number 0": {[]frame.Frame{frame.Data{First: true, Payload: []byte("\x00b")}, text},
			"no shape that it could be the rest of"},
		"text begins the body": {[]frame.Frame{one,
			frame.Data{First: true, Head: true, Payload: []byte("\x00\x02h")},
			frame.Data{Text: true, Last: true, Payload: []byte("\x01\x00t")}}, "no shape that it could be the rest of"},

		"kept before acks":   {[]frame.Frame{kept, ack, ack}, ""},
		"kept behind an ack": {[]frame.Frame{kept, ack, kept}, "a kept frame behind an ack frame"},

		"place on lane 0": {[]frame.Frame{inSequence(frame.Place{Number: 1}, "\x00")}, ""},
		"place on lane 3": {[]frame.Frame{frame.Data{First: true, Last: true, OneWay: true, NamesLane: true, Lane: 3,
			Place: frame.Place{Number: 1}, Payload: []byte("\x00")}}, "a message of a sequence on lane 3"},
		"place on the lane before": {[]frame.Frame{
			frame.Data{First: true, Last: true, NamesLane: true, Lane: 3, Payload: []byte("\x00")},
			inSequence(frame.Place{Number: 1}, "\x00")}, "a message of a sequence on lane 3"},

		"unknown fate":             {[]frame.Frame{inSequence(fate, "\x00")}, ""},
		"unknown fate with a body": {[]frame.Frame{inSequence(fate, "\x00<a/>")}, "unknown fate is not empty"},
		"unknown fate with a head": {[]frame.Frame{frame.Data{First: true, Last: true, OneWay: true, Head: true,
			Place: fate, Payload: []byte("\x00\x02h\x00")}}, "unknown fate is not empty"},
		"unknown fate with a body that comes later": {[]frame.Frame{
			frame.Data{First: true, OneWay: true, Place: fate, Payload: []byte("\x00")},
			frame.Data{Last: true, Payload: []byte("b")}}, "unknown fate is not empty"},

		"pieces":                {[]frame.Frame{oneFirst, oneRest, begun, ended}, ""},
		"pieces of two shapes":  {[]frame.Frame{oneFirst, other2, oneRest}, "between those of shape 1"},
		"frames between pieces": {[]frame.Frame{oneFirst, ack, oneRest}, ""},

		"number reassigned while it is in use": {[]frame.Frame{one, begun, other},
			"number 1 stands for another shape, and an open message uses it"},
		"number reassigned while its repetition is in use": {[]frame.Frame{one, begun, one, other},
			"number 1 stands for another shape, and an open message uses it"},
		"number repeated while it is in use": {[]frame.Frame{one, begun, one, ended}, ""},
		"number reassigned after a message":  {[]frame.Frame{one, begun, ended, other}, ""},
		"number reassigned after a cancel": {[]frame.Frame{one, begun,
			frame.Cancel{Message: frame.Key{Exchange: 1}, Code: frame.Aborted}, other}, ""},
		"number reassigned after a message in one frame": {[]frame.Frame{one,
			frame.Data{First: true, Last: true, Payload: []byte("\x01\x02y")}, other}, ""},
		"number reassigned after a body that began in the last frame": {[]frame.Frame{one,
			frame.Data{First: true, Head: true, Payload: []byte("\x00\x02h")},
			frame.Data{Last: true, Payload: []byte("\x01\x02y")}, other}, ""},

		"octets behind a close": {[]frame.Frame{frame.Close{}, frame.Ack{}}, "octets behind a close"},
		"codes that nobody knows": {[]frame.Frame{
			frame.Cancel{Message: frame.Key{Exchange: 1}, Code: 99, Refused: true}, frame.Close{Code: 99}},
			""},
	} {
		t.Run(name, func(t *testing.T) {
			h := hello
			h.Stages = 0
			err := decodes(t, h, tc.frames...)
			if tc.err == "" {
				require.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, tc.err)
		})
	}
}

// Representations and stages that there are not, or not together, are refused in hello and sync.
func TestOrigins(t *testing.T) {
	for representation, all := range map[uint64][]uint64{
		0: nil, frame.Binary: {0, 1, 3, 4, 5, 7, 36, 37, 39}, frame.XML: {0}, 3: nil, 77: nil,
	} {
		good := map[uint64]bool{}
		for _, stages := range all {
			good[stages], good[stages|frame.Headers] = true, true
		}
		for stages := range uint64(32) {
			t.Run(fmt.Sprintf("%d %d", representation, stages), func(t *testing.T) {
				h := hello
				h.Representation, h.Stages = representation, stages
				s := frame.Sync{Word: h.Word, Session: h.Session, Representation: representation, Stages: stages}
				_, err := wire.NewDecoder(wire.DecoderConfig{Shapes: newShelf()}).Next(s.AppendTo(nil))
				if good[stages] {
					require.NoError(t, err)
					require.NoError(t, decodes(t, h))
					return
				}
				require.ErrorIs(t, err, &wire.Error{Code: wire.OutOfPlace})
				require.ErrorIs(t, decodes(t, h), &wire.Error{Code: wire.OutOfPlace})
			})
		}
	}
	h := hello
	h.Token, h.Responder, h.Representation = nil, true, 0
	require.NoError(t, decodes(t, h, frame.Close{Code: frame.CloseUnknownSession}), "it does not take the session")
	h = hello
	h.Representation, h.Stages = frame.XML, 0
	s, err := learn.FromMessage([]byte("<a>x</a>"))
	require.NoError(t, err)
	packed := transit.Pack(nil, s.Octets(), nil)
	assert.ErrorContains(t, decodes(t, h,
		frame.Shape{Number: 1, Form: frame.Full, Total: uint64(len(packed)), Piece: packed},
		frame.Data{First: true, Last: true, Payload: []byte("\x01\x02y")}), "all are text")
}

// A decoder that joins between two pieces of a shape lacks the shape, and nothing else.
func TestJoiningBetweenPieces(t *testing.T) {
	s, err := learn.FromMessage([]byte("<a>x</a>"))
	require.NoError(t, err)
	packed := transit.Pack(nil, s.Octets(), nil)
	piece := func(from, to int) frame.Frame {
		return frame.Shape{Number: 1, Form: frame.Full, Total: uint64(len(packed)), Offset: uint64(from),
			Piece: packed[from:to]}
	}
	h := hello
	h.Stages = 0
	b := piece(0, 4).AppendTo(h.AppendTo(nil))
	at := len(b)
	b = frame.Sync{Word: h.Word, Offset: uint64(at), Session: h.Session, Representation: frame.Binary,
		Shapes: []frame.Announced{}}.AppendTo(b)
	b = piece(4, 6).AppendTo(b)
	b = piece(6, len(packed)).AppendTo(b)
	b = frame.Data{First: true, Last: true, NamesExchange: true, Exchange: 1, Payload: []byte("\x01\x02y")}.AppendTo(b)
	b = frame.Data{First: true, Last: true, Payload: []byte("\x00<b/>")}.AppendTo(b)
	whole := piece(0, len(packed)).AppendTo(nil)
	b = frame.Data{First: true, Last: true, Payload: []byte("\x01\x02y")}.AppendTo(append(b, whole...))

	for name, tc := range map[string]struct {
		from int
		lose bool
	}{"from the beginning": {0, false}, "from the sync": {at, false}, "after a loss": {0, true}} {
		t.Run(name, func(t *testing.T) {
			d := wire.NewDecoder(wire.DecoderConfig{Shapes: newShelf(), MaxHeld: -1})
			var errs []error
			for rest := b[tc.from:]; len(rest) > 0; {
				f, err := d.Next(rest)
				require.NoError(t, err)
				require.NotZero(t, f.Octets)
				if rest = rest[f.Octets:]; tc.lose && len(b)-len(rest) == at {
					d.Lose(0)
				}
				for i := range f.Events {
					if f.Events[i].Kind == wire.Fragment {
						errs = append(errs, f.Events[i].Err)
					}
				}
			}
			require.Len(t, errs, 3)
			if tc.from == 0 && !tc.lose {
				assert.NoError(t, errs[0])
			} else {
				assert.ErrorIs(t, errs[0], &wire.Error{Code: wire.Lacking})
			}
			assert.NoError(t, errs[1])
			assert.NoError(t, errs[2])
		})
	}
}

package frame_test

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

func key(lane uint64, reply bool, exchange uint64) frame.Key {
	return frame.Key{Lane: lane, Reply: reply, Exchange: exchange}
}

func TestNumberingNamesWhatItMust(t *testing.T) {
	type step struct {
		key      frame.Key
		first    bool
		sync     bool // before it, listing lane 0 only
		exchange bool // must be named
		lane     bool
	}
	steps := []step{
		{key: key(0, false, 1), first: true},
		{key: key(0, false, 2), first: true},
		{key: key(0, false, 1), exchange: true},
		{key: key(0, false, 1)},
		{key: key(5, false, 1), first: true, lane: true},
		{key: key(5, false, 1)},
		{key: key(5, true, 7), first: true, exchange: true},
		{key: key(5, true, 8), first: true},
		{key: key(5, true, 3), first: true, exchange: true},
		{key: key(5, true, 4), first: true},
		{key: key(0, false, 2), exchange: true, lane: true},
		{key: key(0, false, 9), first: true, exchange: true},
		{key: key(0, false, 2), sync: true, exchange: true},
		{key: key(0, false, 10), first: true},
		{key: key(5, false, 2), first: true, exchange: true, lane: true},
		{key: key(5, false, 3), first: true},
		{key: key(6, false, 1), first: true, exchange: true, lane: true},
		{key: key(5, true, 4), sync: true, exchange: true, lane: true},
	}
	var sender, receiver frame.Numbering
	for i, s := range steps {
		if s.sync {
			f := frame.Sync{Lanes: sender.Lanes(100)[:1]}
			require.Equal(t, uint64(0), f.Lanes[0].Lane)
			sender.Sync(f)
			receiver.Sync(f)
		}
		d := frame.Data{First: s.first, Lane: s.key.Lane, Reply: s.key.Reply, Exchange: s.key.Exchange}
		sender.Choose(&d)
		assert.Equal(t, s.exchange, d.NamesExchange, "step %d", i)
		assert.Equal(t, s.lane, d.NamesLane, "step %d", i)
		got, _, err := frame.ParseData(d.AppendTo(nil), 0, 0)
		require.NoError(t, err)
		require.NoError(t, receiver.Resolve(&got, 0))
		assert.Equal(t, s.key, got.Key(), "step %d", i)
	}
	assert.Equal(t, sender.Lanes(100), receiver.Lanes(100))
}

func TestNumberingRefuses(t *testing.T) {
	var after frame.Numbering
	after.Sync(frame.Sync{Lanes: []frame.LaneNumbers{{Lane: 1, Request: 4, Reply: math.MaxUint64}}})
	for name, tc := range map[string]struct {
		n frame.Numbering
		d frame.Data
	}{
		"later fragment at the start":       {frame.Numbering{}, frame.Data{}},
		"later fragment after a sync":       {after, frame.Data{}},
		"first fragment on a lane unlisted": {after, frame.Data{First: true}},
		"request number not higher":         {after, frame.Data{First: true, NamesLane: true, Lane: 1, NamesExchange: true, Exchange: 4}},
		"no number left":                    {after, frame.Data{First: true, Reply: true, NamesLane: true, Lane: 1}},
	} {
		assert.ErrorIs(t, tc.n.Resolve(&tc.d, 7), &frame.Error{Code: frame.BadNumber}, name)
	}
}

func TestLanesListsThoseUsedLast(t *testing.T) {
	var n frame.Numbering
	for _, lane := range []uint64{9, 3, 7, 1} {
		n.Choose(&frame.Data{First: true, Lane: lane, Exchange: 1})
	}
	n.Choose(&frame.Data{First: true, Lane: 3, Exchange: 2})
	assert.Equal(t, []frame.LaneNumbers{{Lane: 1, Request: 1}, {Lane: 3, Request: 2}}, n.Lanes(2))
}

func TestChecks(t *testing.T) {
	crc := func(s string) uint32 { return crc32.Checksum([]byte(s), crc32.MakeTable(crc32.Castagnoli)) }
	var c frame.Checks
	add := func(k frame.Key, first, last bool, payload string) error {
		return c.Add(&frame.Data{First: first, Last: last, Lane: k.Lane, Reply: k.Reply, Exchange: k.Exchange, Payload: []byte(payload)}, 3)
	}
	a, b, z := key(0, false, 1), key(0, true, 1), key(2, false, 1)
	require.NoError(t, add(a, true, false, "on"))
	require.NoError(t, add(b, true, true, "reply"))
	require.NoError(t, add(z, true, false, "given up"))
	assert.ErrorIs(t, add(a, true, false, "x"), &frame.Error{Code: frame.BadState})
	assert.ErrorIs(t, add(b, false, false, "x"), &frame.Error{Code: frame.BadState})
	assert.Equal(t, []frame.Open{{Key: a, CRC: crc("on")}, {Key: z, CRC: crc("given up")}}, c.Open())
	assert.True(t, c.Cancel(z))
	assert.False(t, c.Cancel(z))
	sync := frame.Sync{Open: c.Open()}
	require.NoError(t, add(a, false, true, "e"))
	assert.Equal(t, uint64(2), c.Messages())
	list := binary.LittleEndian.AppendUint32(nil, crc("reply"))
	list = binary.LittleEndian.AppendUint32(list, crc("one"))
	assert.Equal(t, crc(string(list)), c.Check())
	c.Next()
	assert.Zero(t, c.Messages())
	assert.Zero(t, c.Check())

	var late frame.Checks
	late.Seed(sync)
	assert.True(t, late.IsOpen(a))
	c = late
	require.NoError(t, add(a, false, true, "e"))
	assert.Equal(t, crc(string(binary.LittleEndian.AppendUint32(nil, crc("one")))), c.Check())
}

func TestCut(t *testing.T) {
	type part = frame.Part
	for name, tc := range map[string]struct {
		in   []frame.Data
		want []frame.Parts
		code frame.Code // of the last
	}{
		"body only": {
			in:   []frame.Data{{First: true, Last: true, Payload: []byte("\x01b")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Last: true, Shape: 1, Segment: []byte("b")}}},
		},
		"head and body in one": {
			in: []frame.Data{{First: true, Last: true, Head: true, Payload: []byte("\x02\x02h\x01b")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Last: true, Shape: 2, Segment: []byte("h")},
				HasBody: true, Body: part{First: true, Last: true, Shape: 1, Segment: []byte("b")}}},
		},
		"all in pieces": {
			in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true, Payload: []byte("\x02i")}, {Payload: []byte("\x01b")},
				{Payload: []byte("c")}, {Text: true, Payload: []byte("\x00t")}, {Text: true, Last: true, Payload: nil}},
			want: []frame.Parts{
				{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}},
				{HasHead: true, Head: part{Last: true, Segment: []byte("i")}},
				{HasBody: true, Body: part{First: true, Shape: 1, Segment: []byte("b")}},
				{HasBody: true, Body: part{Segment: []byte("c")}},
				{HasBody: true, Body: part{Text: true, Segment: []byte("\x00t")}},
				{HasBody: true, Body: part{Text: true, Last: true, Segment: nil}},
			},
		},
		"head ends and body begins": {
			in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true, Last: true, Payload: []byte("\x02i\x00")}},
			want: []frame.Parts{
				{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}},
				{HasHead: true, Head: part{Last: true, Segment: []byte("i")}, HasBody: true, Body: part{First: true, Last: true, Segment: []byte{}}},
			},
		},
		"octets after a head that goes on": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03hi")}}, code: frame.Trailing},
		"head segment too long":            {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x06hi")}}, code: frame.Truncated},
		"head segment huge":                {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}}, code: frame.Truncated},
		"no body in the last":              {in: []frame.Data{{First: true, Last: true, Head: true, Payload: []byte("\x02\x02h")}}, code: frame.BadState},
		"no shape number":                  {in: []frame.Data{{First: true, Payload: nil}}, code: frame.Truncated},
		"overlong shape number":            {in: []frame.Data{{First: true, Payload: []byte{0x81, 0}}}, code: frame.Overlong},
		"head where none goes on": {in: []frame.Data{{First: true, Payload: []byte("\x01b")}, {Head: true, Payload: []byte("\x02h")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Shape: 1, Segment: []byte("b")}}}, code: frame.BadState},
		"no head where it goes on": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Payload: []byte("\x01b")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}}}, code: frame.BadState},
		"no T after T": {in: []frame.Data{{First: true, Payload: []byte("\x01b")}, {Text: true, Payload: []byte("\x00t")}, {Payload: []byte("t")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Shape: 1, Segment: []byte("b")}}, {HasBody: true, Body: part{Text: true, Segment: []byte("\x00t")}}},
			code: frame.BadState},
		"text in a head": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true, Text: true, Payload: []byte("\x02h")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}}}, code: frame.BadState},
		"second first":       {in: []frame.Data{{First: true, Payload: []byte{0}}, {First: true, Payload: []byte{0}}}, want: []frame.Parts{{HasBody: true, Body: part{First: true, Segment: []byte{}}}}, code: frame.BadState},
		"later at the start": {in: []frame.Data{{Payload: []byte("x")}}, code: frame.BadState},
	} {
		t.Run(name, func(t *testing.T) {
			var m frame.MessageState
			for i, d := range tc.in {
				got, err := m.Cut(&d, 50)
				if i >= len(tc.want) {
					assert.ErrorIs(t, err, &frame.Error{Code: tc.code})
					return
				}
				require.NoError(t, err)
				assert.Equal(t, tc.want[i], got)
			}
			assert.Zero(t, tc.code, "no error came")
		})
	}
}

func TestPieces(t *testing.T) {
	p := frame.Pieces{MaxShapes: 2, MaxBytes: 10}
	add := func(number, total, offset uint64, piece string) (string, error) {
		full, err := p.Add(frame.Shape{Number: number, Form: frame.Full, Total: total, Offset: offset, Piece: []byte(piece)}, 9)
		return string(full), err
	}
	for _, s := range []struct {
		number, total, offset uint64
		piece, want           string
		code                  frame.Code
	}{
		{1, 4, 0, "ab", "", 0},
		{2, 3, 0, "x", "", 0},
		{1, 4, 3, "d", "", frame.BadState},
		{1, 5, 2, "c", "", frame.BadState},
		{3, 2, 0, "y", "", frame.TooLarge},
		{1, 4, 2, "cd", "abcd", 0},
		{3, 8, 0, "y", "", frame.TooLarge},
		{3, math.MaxUint64, 0, "y", "", frame.TooLarge},
		{3, 7, 0, "y", "", 0},
		{2, 3, 1, "yz", "xyz", 0},
		{4, 3, 1, "x", "", frame.BadState},
	} {
		full, err := add(s.number, s.total, s.offset, s.piece)
		if s.code != 0 {
			assert.ErrorIs(t, err, &frame.Error{Code: s.code})
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, s.want, full)
	}
}

// What a sender chooses, a receiver resolves to the same, for any order of messages and syncs.
func TestNumberingOfAnyTraffic(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var sender, receiver frame.Numbering
		last := map[uint64]uint64{}
		var open []frame.Key
		for range 100 {
			d := frame.Data{}
			switch k := rnd.IntN(10); {
			case k == 0:
				s := frame.Sync{Lanes: sender.Lanes(rnd.IntN(4))}
				sender.Sync(s)
				receiver.Sync(s)
				continue
			case k < 6 || len(open) == 0:
				d.First, d.Lane, d.Reply = true, rnd.Uint64N(5), rnd.IntN(2) == 0
				d.Exchange = 1 + rnd.Uint64N(50)
				if !d.Reply {
					last[d.Lane] += 1 + rnd.Uint64N(2)
					d.Exchange = last[d.Lane]
				}
				open = append(open, d.Key())
			default:
				k := open[rnd.IntN(len(open))]
				d.Lane, d.Reply, d.Exchange = k.Lane, k.Reply, k.Exchange
			}
			want := d.Key()
			sender.Choose(&d)
			got, _, err := frame.ParseData(d.AppendTo(nil), 0, 0)
			require.NoError(t, err)
			require.NoError(t, receiver.Resolve(&got, 0))
			require.Equal(t, want, got.Key())
		}
	}
}

package frame_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
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
		"request number not higher": {after, frame.Data{First: true, NamesLane: true, Lane: 1,
			NamesExchange: true, Exchange: 4}},
		"place on another lane": {frame.Numbering{}, frame.Data{First: true, OneWay: true, NamesLane: true, Lane: 3,
			NamesExchange: true, Exchange: 1, Place: frame.Place{Number: 1}}},
		"no number left": {after, frame.Data{First: true, Reply: true, NamesLane: true, Lane: 1}},
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

// One octet can tell the lanes and exchanges of many messages: what it changes in all their checks
// alike must not cancel out in that of a sync, wherever these messages stand and however long they
// are.
func TestChangesInCommonDoNotCancelOut(t *testing.T) {
	check := func(lane, first uint64, lengths ...int) uint32 {
		c := frame.NewChecks(frame.Origin{})
		for i, n := range lengths {
			d := frame.Data{First: true, Last: true, Lane: lane, Exchange: first + uint64(i), Payload: make([]byte,
				1+n)}
			p, err := c.Cut(&d, 0, 0)
			require.NoError(t, err)
			c.Add(&d, &p, nil)
		}
		return c.Check()
	}
	for longer := range 64 {
		lengths := []int{20, 20 + longer, 20 + 2*longer, 20 + 3*longer}
		for n := 1; n <= len(lengths); n++ {
			assert.NotEqual(t, check(4, 8, lengths[:n]...), check(4, 40, lengths[:n]...), "exchanges of %v",
				lengths[:n])
			assert.NotEqual(t, check(4, 8, lengths[:n]...), check(5, 8, lengths[:n]...), "lanes of %v", lengths[:n])
		}
	}
}

// The check of a message is over its fragments with all named, and the names of the shapes that
// begin in them, behind what the direction is; that of a sync over the checks of messages and
// cancels.
func TestChecks(t *testing.T) {
	table := crc32.MakeTable(crc32.Castagnoli)
	crc := func(s string) uint32 { return crc32.Checksum([]byte(s), table) }
	sum := func(checks string) uint32 {
		all := sha256.Sum256([]byte(checks))
		return binary.LittleEndian.Uint32(all[:])
	}
	origin := frame.Origin{Responder: true, Session: seq[[16]byte](1), Representation: 1, Stages: 7}
	session := seq[[16]byte](1)
	before := "\x01" + string(session[:]) + "\x01\x07"
	check := func(rest string) string {
		return string(binary.LittleEndian.AppendUint32(nil, crc(before+rest)))
	}
	c := frame.NewChecks(origin)
	add := func(d frame.Data) error {
		p, err := c.Cut(&d, 3, 9)
		if err == nil {
			c.Add(&d, &p, func(n uint64) ([8]byte, bool) {
				return [8]byte([]byte("shape-" + string(rune('0'+n)) + "!")),
					n < 5
			})
		}
		return err
	}
	one, given := frame.Data{First: true, Exchange: 1, Payload: []byte("\x03on")}, frame.Data{First: true, Lane: 2,
		Exchange: 1, Payload: []byte("\x00given up")}
	reply := frame.Data{First: true, Last: true, Reply: true, Head: true, Exchange: 200,
		Payload: []byte("\x01\x02h\x02reply")}
	require.NoError(t, add(one))
	require.NoError(t, add(reply))
	require.NoError(t, add(given))
	assert.ErrorIs(t, add(one), &frame.Error{Code: frame.BadState})
	assert.ErrorIs(t, add(frame.Data{Reply: true, Exchange: 200, Payload: []byte("x")}),
		&frame.Error{Code: frame.BadState})
	begun := "\xc3\x00\x01\x03shape-3!\x03on"
	assert.Equal(t, []frame.Open{{one.Key(), frame.Begun | frame.BodyBegun, crc(before + begun)}, {given.Key(),
		frame.Begun | frame.BodyBegun, crc(before + "\xc3\x02\x01\x09\x00given up")}}, c.Open())
	cancel := frame.Cancel{Message: given.Key(), Code: frame.Aborted}
	assert.True(t, c.Cancel(cancel))
	assert.False(t, c.Cancel(cancel))
	sync := frame.Sync{Responder: true, Session: session, Representation: 1, Stages: 7, Open: c.Open()}
	rest := frame.Data{Last: true, Exchange: 1, Payload: []byte("e")}
	require.NoError(t, add(rest))
	assert.Equal(t, uint64(2), c.Messages())
	last := check(begun + "\xa3\x00\x01\x01e")
	all := check("\xfb\x00\xc8\x01\x09shape-1!shape-2!\x01\x02h\x02reply") +
		check(string(cancel.AppendTo(nil))) + check(string(cancel.AppendTo(nil))) + last
	assert.Equal(t, sum(all), c.Check())
	right, known := c.Agree(frame.Sync{Messages: 2, Check: sum(all)})
	assert.True(t, right && known)
	right, _ = c.Agree(frame.Sync{Messages: 2, Check: sum(all), Open: sync.Open})
	assert.False(t, right, "nothing is open")

	c.Next(sync)
	assert.Zero(t, c.Messages())
	assert.Zero(t, c.Check())
	c = frame.Checks{}
	c.Seed(sync)
	require.NoError(t, add(rest))
	assert.Equal(t, sum(last), c.Check())

	// A shape that nobody named: nothing can be said until the next sync.
	require.NoError(t, add(frame.Data{First: true, Last: true, Exchange: 2, Payload: []byte("\x07x")}))
	right, known = c.AgreeClose(frame.Close{Messages: 2, Check: 1})
	assert.True(t, right)
	assert.False(t, known)
}

func TestCut(t *testing.T) {
	type part = frame.RawPart
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
			in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true,
				Payload: []byte("\x02i")}, {Payload: []byte("\x01b")},
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
			in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true, Last: true,
				Payload: []byte("\x02i\x00")}},
			want: []frame.Parts{
				{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}},
				{HasHead: true, Head: part{Last: true, Segment: []byte("i")}, HasBody: true, Body: part{First: true,
					Last: true, Segment: []byte{}}},
			},
		},
		"octets after a head that goes on": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03hi")}},
			code: frame.Trailing},
		"head segment too long": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x06hi")}},
			code: frame.Truncated},
		"head segment huge": {in: []frame.Data{{First: true, Head: true,
			Payload: []byte("\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")}}, code: frame.Truncated},
		"no body in the last": {in: []frame.Data{{First: true, Last: true, Head: true,
			Payload: []byte("\x02\x02h")}}, code: frame.BadState},
		"no shape number": {in: []frame.Data{{First: true, Payload: nil}}, code: frame.Truncated},
		"overlong shape number": {in: []frame.Data{{First: true, Payload: []byte{0x81, 0}}},
			code: frame.Overlong},
		"head where none goes on": {in: []frame.Data{{First: true, Payload: []byte("\x01b")}, {Head: true,
			Payload: []byte("\x02h")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Shape: 1, Segment: []byte("b")}}},
			code: frame.BadState},
		"no head where it goes on": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")},
			{Payload: []byte("\x01b")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}}},
			code: frame.BadState},
		"no T after T": {in: []frame.Data{{First: true, Payload: []byte("\x01b")}, {Text: true,
			Payload: []byte("\x00t")}, {Payload: []byte("t")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Shape: 1, Segment: []byte("b")}},
				{HasBody: true, Body: part{Text: true, Segment: []byte("\x00t")}}},
			code: frame.BadState},
		"text in a head": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x03h")}, {Head: true,
			Text: true, Payload: []byte("\x02h")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Shape: 2, Segment: []byte("h")}}},
			code: frame.BadState},
		"body begins as text": {in: []frame.Data{{First: true, Head: true, Payload: []byte("\x02\x02h")}, {Text: true,
			Payload: []byte("\x01\x00t")}},
			want: []frame.Parts{{HasHead: true, Head: part{First: true, Last: true, Shape: 2, Segment: []byte("h")}}},
			code: frame.BadState},
		"text under number 0": {in: []frame.Data{{First: true, Payload: []byte("\x00b")}, {Text: true,
			Payload: []byte("\x00t")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Segment: []byte("b")}}},
			code: frame.BadState},
		"text under number 0, later": {in: []frame.Data{{First: true, Payload: []byte("\x00b")}, {Payload: []byte("c")},
			{Text: true, Payload: []byte("\x00t")}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Segment: []byte("b")}},
				{HasBody: true, Body: part{Segment: []byte("c")}}},
			code: frame.BadState},
		"second first": {in: []frame.Data{{First: true, Payload: []byte{0}}, {First: true, Payload: []byte{0}}},
			want: []frame.Parts{{HasBody: true, Body: part{First: true, Segment: []byte{}}}}, code: frame.BadState},
		"later at the start": {in: []frame.Data{{Payload: []byte("x")}}, code: frame.BadState},
	} {
		t.Run(name, func(t *testing.T) {
			c := frame.NewChecks(frame.Origin{})
			for i, d := range tc.in {
				got, err := c.Cut(&d, 40, 50)
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
	p := frame.Pieces{MaxShapes: 2, MaxBytes: 10_000}
	for i, s := range []struct {
		number, total, offset uint64
		piece                 int // octets
		whole                 bool
		code                  frame.Code
	}{
		{1, 4400, 0, 2200, false, 0},
		{2, 5300, 0, 100, false, 0},
		{1, 4400, 3300, 100, false, frame.BadState},
		{1, 4500, 2200, 100, false, frame.BadState},
		{3, 200, 0, 100, false, frame.TooLarge},
		{1, 4400, 2200, 2200, true, 0},
		{3, 4800, 0, 100, false, frame.TooLarge},
		{3, math.MaxUint64, 0, 100, false, frame.TooLarge},
		{3, 4700, 0, 100, false, 0},
		{2, 5300, 100, 5200, true, 0},
		{4, 300, 100, 100, false, frame.BadState},
		// Between the pieces of a short one there are no others.
		{5, 4096, 0, 100, false, 0},
		{3, 4700, 100, 4600, false, frame.BadState},
		{6, 100, 0, 100, false, frame.BadState},
		{5, 4096, 100, 3996, true, 0},
		{6, 100, 0, 100, true, 0},
		{3, 4700, 100, 4600, true, 0},
	} {
		octets := bytes.Repeat([]byte{byte(s.number)}, s.piece)
		full, err := p.Add(frame.Shape{Number: s.number, Form: frame.Full, Total: s.total, Offset: s.offset,
			Piece: octets}, 9)
		if s.code != 0 {
			assert.ErrorIs(t, err, &frame.Error{Code: s.code}, "step %d", i)
			continue
		}
		require.NoError(t, err, "step %d", i)
		if assert.Equal(t, s.whole, full != nil, "step %d", i); s.whole {
			assert.Equal(t, bytes.Repeat([]byte{byte(s.number)}, int(s.total)), full)
		}
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

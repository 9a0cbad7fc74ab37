package frame_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
)

// What is cut off is no error yet: more may come.
func TestParseOfEveryBeginningWantsMore(t *testing.T) {
	for name, f := range frames {
		b := f.AppendTo(nil)
		for cut := range b {
			got, n, err := frame.Parse(b[:cut], 0, 0)
			require.NoError(t, err, "%s cut at %d", name, cut)
			require.Zero(t, n)
			require.Nil(t, got)
		}
		got, n, err := frame.Parse(append(b[:len(b):len(b)], 0xff), 0, 0)
		require.NoError(t, err)
		assert.Equal(t, len(b), n)
		assert.Equal(t, f, got)
	}
}

// Every body cut short, with its length put right, is an error, unless it is another good frame.
func TestShorterBodiesAreErrorsWithOffset(t *testing.T) {
	for name, f := range frames {
		if d, ok := f.(frame.Data); ok || f.Kind() == 63 {
			_ = d
			continue
		}
		b := f.AppendTo(nil)
		mark := 1
		if f.Kind() == frame.KindHello || f.Kind() == frame.KindSync {
			mark = 8
		}
		_, k := binary.Uvarint(b[mark:])
		body := b[mark+k:]
		for cut := range body {
			short := append(binary.AppendUvarint(append([]byte(nil), b[:mark]...), uint64(cut)), body[:cut]...)
			got, n, err := frame.Parse(short, 1000, 0)
			if err == nil {
				require.Equal(t, short, got.AppendTo(nil), "%s cut at %d", name, cut)
				require.Equal(t, len(short), n)
				continue
			}
			var e *frame.Error
			require.ErrorAs(t, err, &e)
			assert.GreaterOrEqual(t, e.At, int64(1000))
			assert.LessOrEqual(t, e.At, int64(1000+len(short)))
			assert.Contains(t, err.Error(), fmt.Sprintf("offset %d", e.At))
		}
	}
}

func TestBadFrames(t *testing.T) {
	sum := frames["sync-first"].AppendTo(nil)
	sum[len(sum)-1] ^= 1
	order := frame.Sync{Lanes: []frame.LaneNumbers{{Lane: 2}, {Lane: 2}}}.AppendTo(nil)
	openOrder := frame.Sync{Open: []frame.Open{{Key: frame.Key{Reply: true, Exchange: 1}},
		{Key: frame.Key{Exchange: 2}}}}.AppendTo(nil)
	for name, tc := range map[string]struct {
		in   []byte
		code frame.Code
		at   int64
	}{
		"kind 0":                {[]byte{0x00}, frame.BadKind, 0},
		"kind 0, skip":          {[]byte{0x40}, frame.BadKind, 0},
		"unknown kind":          {[]byte{0x08}, frame.BadKind, 0},
		"ack without skip":      {[]byte{0x04}, frame.BadKind, 0},
		"hello with skip":       {[]byte{0x41}, frame.BadKind, 0},
		"cancel with skip":      {[]byte{0x46}, frame.BadKind, 0},
		"hello mark":            {[]byte{0x01, 'H', 'T'}, frame.BadMark, 0},
		"sync mark":             {[]byte{0x03, 0xc4}, frame.BadMark, 0},
		"body too long":         {append([]byte{0x02}, 0x81, 0x80, 0x04), frame.TooLarge, 1},
		"skipped body too long": {append([]byte{0x7f}, 0xff, 0xff, 0xff, 0xff, 0x0f), frame.TooLarge, 1},
		"overlong length":       {[]byte{0x02, 0x80, 0x00}, frame.Overlong, 1},
		"payload too long":      {[]byte{0xe0, 0x81, 0x80, 0x01}, frame.TooLarge, 1},
		"payload length huge": {[]byte{0xe0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01},
			frame.TooLarge, 1},
		"overlong lane":                  {[]byte{0xe1, 0x80, 0x00}, frame.Overlong, 1},
		"exchange 0":                     {[]byte{0xe2, 0x00}, frame.BadValue, 1},
		"place 0":                        {[]byte{0xf4, 2, 0}, frame.BadValue, 1},
		"place answers 0":                {[]byte{0xf4, 5, 0, 0}, frame.BadValue, 1},
		"long place from behind its end": {[]byte{0xf4, 5, 0, 3, 4, 0, 0}, frame.BadValue, 1},
		"long place wants and answers":   {[]byte{0xf4, 7, 0, 3, 0, 1, 0}, frame.BadValue, 1},
		"kept without skip":              {[]byte{0x0a}, frame.BadKind, 0},
		"kept number 0":                  {[]byte{0x4a, 2, 0, 1}, frame.BadValue, 2},
		"kept without octets":            {[]byte{0x4a, 2, 1, 0}, frame.BadValue, 2},
		"kept twice":                     {[]byte{0x4a, 6, 1, 5, 2, 5, 1, 6}, frame.BadValue, 6},
		"window exchange 0":              {[]byte{0x05, 4, 0, 0, 0, 1}, frame.BadValue, 4},
		"flush exchange 0":               {[]byte{0x09, 4, 0, 0, 0, 1}, frame.BadValue, 4},
		"cancel exchange 0":              {[]byte{0x06, 5, 0, 0, 0, 1, 0}, frame.BadValue, 4},
		"sync open exchange 0":           {frame.Sync{Open: []frame.Open{{}}}.AppendTo(nil), frame.BadValue, 0},
		"kept cut":                       {[]byte{0x4a, 1, 1}, frame.Truncated, 0},
		"place answers too much": {[]byte{0xf4, 5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0},
			frame.BadValue, 1},
		"later names lane only":  {[]byte{0x81}, frame.BadValue, 0},
		"shape number 0":         {[]byte{0x02, 2, 0, 2}, frame.BadValue, 2},
		"shape form":             {[]byte{0x02, 2, 1, 3}, frame.BadValue, 3},
		"shape unknown and more": {[]byte{0x02, 3, 1, 2, 0}, frame.Trailing, 4},
		"piece beyond total":     {[]byte{0x02, 6, 1, 1, 2, 1, 'x', 'y'}, frame.BadValue, 6},
		"piece offset beyond":    {[]byte{0x02, 5, 1, 1, 2, 3, 'x'}, frame.BadValue, 6},
		"empty piece":            {[]byte{0x02, 4, 1, 1, 2, 1}, frame.BadValue, 6},
		"shape of no octets":     {[]byte{0x02, 4, 1, 1, 0, 0}, frame.BadValue, 6},
		"cancel R":               {[]byte{0x06, 5, 0, 4, 1, 1, 0}, frame.BadValue, 3},
		"cancel code 0":          {[]byte{0x06, 5, 0, 0, 1, 0, 0}, frame.BadValue, 5},
		"cancel text length":     {[]byte{0x06, 6, 0, 0, 1, 1, 0x81, 0x02}, frame.TooLarge, 6},
		"cancel text UTF-8":      {[]byte{0x06, 6, 0, 0, 1, 1, 1, 0xff}, frame.BadValue, 6},
		"close trailing":         {[]byte{0x07, 8, 0, 0, 0, 0, 0, 0, 0, 9}, frame.Trailing, 9},
		"close text length":      {[]byte{0x07, 3, 0, 0x81, 0x08}, frame.TooLarge, 3},
		"sync own check":         {sum, frame.BadSum, int64(len(sum) - 4)},
		"sync lanes order":       {order, frame.BadOrder, 0},
		"sync open order":        {openOrder, frame.BadOrder, 0},
		"sync shape 0":           {frame.Sync{Shapes: []frame.Announced{{}}}.AppendTo(nil), frame.BadValue, 0},
		"idle unskippable":       {[]byte{0x08, 1, 0}, frame.BadKind, 0},
		"idle lanes order":       {[]byte{0x48, 3, 2, 5, 5}, frame.BadOrder, 4},
		"idle count":             {[]byte{0x48, 2, 3, 5}, frame.TooLarge, 2},
		"idle trailing":          {[]byte{0x48, 3, 1, 5, 5}, frame.Trailing, 4},
		"hello scheme":           {append(append([]byte("\x01HHFR/1\n"), 2), 2, 0), frame.Unsupported, 9},
		"hello role":             {append(append([]byte("\x01HHFR/1\n"), 2), 1, 8), frame.BadValue, 10},
		"hello token": {frame.Hello{Token: []byte("short"), Limits: limits}.AppendTo(nil), frame.BadValue,
			27},
		"hello target long": {frame.Hello{Target: strings.Repeat("a", 2049), Limits: limits}.AppendTo(nil),
			frame.TooLarge, 0},
		"hello responder target": {frame.Hello{Responder: true, Target: "a", Limits: limits}.AppendTo(nil),
			frame.BadValue, 0},
		"hello token and target": {frame.Hello{Token: make([]byte, 16), Target: "a", Limits: limits}.AppendTo(nil),
			frame.BadValue, 0},
		"hello token too long": {frame.Hello{Token: make([]byte, 17), Limits: limits}.AppendTo(nil), frame.TooLarge,
			27},
		"brief hello of another version": {append([]byte("\x01HHFR/1\n\x0f\x01\x04"), make([]byte, 13)...),
			frame.BadValue, 11},
		"brief hello token": {brief(frame.Hello{Responder: true, Representation: frame.Binary, Limits: limits,
			Token: []byte("short")}).AppendTo(nil), frame.BadValue, 19},
		"brief hello fragment": {brief(frame.Hello{Representation: frame.Binary}).AppendTo(nil), frame.BadValue, 0},
		"hello fragment small": {frame.Hello{Token: make([]byte, 16),
			Limits: frame.Limits{MaxFragment: 511}}.AppendTo(nil), frame.BadValue, 0},
		"hello fragment large": {frame.Hello{Token: make([]byte, 16),
			Limits: frame.Limits{MaxFragment: 16385}}.AppendTo(nil), frame.BadValue, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, n, err := frame.Parse(tc.in, 0, 0)
			var e *frame.Error
			require.ErrorAs(t, err, &e)
			assert.Zero(t, n)
			assert.Equal(t, tc.code, e.Code, "%v", err)
			if tc.at > 0 {
				assert.Equal(t, tc.at, e.At, "%v", err)
			}
		})
	}
}

func TestCountsOfASyncAreRefusedBeforeAnythingIsAllocated(t *testing.T) {
	b := frames["sync-first"].AppendTo(nil)
	at := len(b) - 4 - 3
	b[at] = 100
	got := testing.AllocsPerRun(10, func() {
		_, _, err := frame.Parse(b, 0, 0)
		assert.ErrorIs(t, err, &frame.Error{Code: frame.TooLarge})
	})
	assert.Less(t, got, 50.0)
}

func TestHelloMayBeLonger(t *testing.T) {
	longer := func(name string, octets ...byte) []byte {
		b := frames[name].AppendTo(nil)
		b[8] += byte(len(octets))
		b = append(b[:len(b)-4], octets...)
		return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	}
	for name, octets := range map[string][]byte{"hello-responder": {0, 3, 1}, "hello-described": {3, 1}} {
		b := longer(name, octets...)
		got, n, err := frame.Parse(b, 0, 0)
		require.NoError(t, err)
		assert.Equal(t, len(b), n)
		want := frames[name].(frame.Hello)
		want.Abilities = uint64(octets[len(octets)-2])
		assert.Equal(t, want, got)
	}
	_, _, err := frame.Parse(longer("hello-responder", 2, 3, 1), 0, 0)
	assert.ErrorContains(t, err, "description of 2 octets")
}

// TestFarWindowsInHello: that they are read takes two bytes, none where there are abilities or in
// the short form, and is not said without the stage zstd.
func TestFarWindowsInHello(t *testing.T) {
	for name, c := range map[string]struct {
		hello frame.Hello
		more  int
		far   bool
	}{
		"alone":             {frame.Hello{Stages: 4, Representation: frame.Binary}, 2, true},
		"with abilities":    {frame.Hello{Stages: 7, Representation: frame.Binary, Abilities: 7}, 0, true},
		"described":         {frame.Hello{Stages: 4, Representation: frame.XML, Description: make([]byte, 8)}, 1, true},
		"short":             {brief(frame.Hello{Stages: 4, Representation: frame.Binary}), 0, true},
		"without zstd":      {frame.Hello{Stages: 3, Representation: frame.Binary}, 0, false},
		"not even accepted": {frame.Hello{Responder: true}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			c.hello.Limits = limits
			before := c.hello.AppendTo(nil)
			c.hello.Limits.Far = true
			b := c.hello.AppendTo(nil)
			assert.Equal(t, c.more, len(b)-len(before))
			f, _, err := frame.Parse(b, 0, 0)
			require.NoError(t, err)
			assert.Equal(t, c.far, f.(frame.Hello).Limits.Far)
			assert.Equal(t, c.hello.Abilities, f.(frame.Hello).Abilities)
		})
	}
}

func TestPayloadLimitIsTheReceivers(t *testing.T) {
	d := frame.Data{First: true, Last: true, Payload: make([]byte, 513)}
	_, _, err := frame.Parse(d.AppendTo(nil)[:3], 0, 512)
	assert.ErrorIs(t, err, &frame.Error{Code: frame.TooLarge})
}

func TestTextsAreCutToWhatIsAllowed(t *testing.T) {
	long := string(make([]byte, 255)) + "ä"
	f, _, err := frame.Parse(frame.Cancel{Message: frame.Key{Exchange: 1}, Code: 1, Text: long}.AppendTo(nil), 0, 0)
	require.NoError(t, err)
	assert.Equal(t, long[:255], f.(frame.Cancel).Text)
}

func TestFindSync(t *testing.T) {
	s := frames["sync-full"].(frame.Sync)
	fake := s.AppendTo(nil)
	fake[20] ^= 1
	b := append([]byte("noise \x03\xc5hhfr\x9a\n"), fake...)
	at := len(b)
	b = s.AppendTo(b)
	second := len(b) + 2
	b = frames["sync-first"].AppendTo(append(b, 1, 2))
	got, sync, ok := frame.FindSync(b, 0)
	require.True(t, ok)
	assert.Equal(t, at, got)
	assert.Equal(t, s, sync)
	got, _, ok = frame.FindSync(b, at+1)
	require.True(t, ok)
	assert.Equal(t, second, got)
	_, _, ok = frame.FindSync(b[:len(b)-1], at+1)
	assert.False(t, ok)
	_, _, ok = frame.FindSync(nil, 3)
	assert.False(t, ok)
}

func TestParseDataAllocatesNothing(t *testing.T) {
	b := frames["data-names-both"].AppendTo(nil)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = frame.ParseData(b, 0, 0) }))
}

func FuzzParse(f *testing.F) {
	for _, fr := range frames {
		f.Add(fr.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, n, err := frame.Parse(b, 0, 0)
		if err != nil {
			var e *frame.Error
			require.ErrorAs(t, err, &e)
			require.LessOrEqual(t, e.At, int64(len(b)))
			return
		}
		if n == 0 {
			require.Nil(t, got)
			return
		}
		again := got.AppendTo(nil)
		if got.Kind() == frame.KindHello {
			second, k, err := frame.Parse(again, 0, 0)
			require.NoError(t, err)
			require.Equal(t, len(again), k)
			require.Equal(t, got, second)
			return
		}
		require.Equal(t, b[:n], again)
	})
}

// TestWhatTheShortFormCannotSay has hellos stay long that say more.
func TestWhatTheShortFormCannotSay(t *testing.T) {
	for name, h := range map[string]frame.Hello{
		"session":        {Session: seq[[16]byte](1), Representation: frame.Binary},
		"representation": {Session: frame.SeedSession(seq[[8]byte](1)), Representation: frame.XML},
		"token of an initiator": {Session: frame.SeedSession(seq[[8]byte](1)), Representation: frame.Binary,
			Token: make([]byte, frame.TokenLen)},
		"target": {Session: frame.SeedSession(seq[[8]byte](1)), Representation: frame.Binary, Target: "http://a/"},
		"description": {Session: frame.SeedSession(seq[[8]byte](1)), Representation: frame.Binary, Responder: true,
			Description: make([]byte, frame.DescriptionLen)},
	} {
		h.Shorten()
		assert.False(t, h.Brief, name)
	}
	short := brief(frame.Hello{Representation: frame.Binary, Limits: usual, Stages: 7, Abilities: 3})
	assert.Len(t, short.AppendTo(nil), 27, "what a proxy that asks says")
	answer := brief(frame.Hello{Responder: true, Representation: frame.Binary, Limits: usual, Lifetime: 3600})
	assert.NotEqual(t, short.Word, answer.Word, "each direction has a word of its own")
}

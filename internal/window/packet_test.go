package window_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
)

func packets() map[string]window.Packet {
	one := window.Unit{Number: 1, First: true, Last: true, Payload: []byte("one")}
	return map[string]window.Packet{
		"one message": {Number: 1, Floor: 1, Units: []window.Unit{one}},
		"parts and holes": {Number: 300, Floor: 1, Request: true,
			Units: []window.Unit{one, {Number: 2, First: true, Payload: []byte("a")}, {Number: 3},
				{Number: 4, Last: true, Payload: []byte("c")},
				{Number: 9, First: true, Last: true}, {Number: 10, First: true, Last: true,
					Payload: make([]byte, 200)}}},
		"control": {Number: 7, Floor: 20, Closing: true, Terminate: true, Last: 19},
		"closing": {Number: 7, Floor: 20, Closing: true, Last: 1000, HasAck: true,
			Ack: window.AckPacket{Instance: 1, Echo: 3}},
		"acknowledgement": {HasAck: true, Ack: window.AckPacket{Instance: 2, Done: 5, Echo: 9, Final: true}},
		"ranges and nacks": {HasAck: true, Ack: window.AckPacket{Done: 5, Echo: 9,
			Ranges: []window.Range{{First: 6, Last: 6}, {First: 8,
				Last: 1_000_000_008}}, Nacks: []window.Range{{First: 7, Last: 7}}}},
		"the end": {HasAck: true, Ack: window.AckPacket{Terminated: true, Unknown: true, Done: math.MaxInt64}},
		"beyond a roll-over": {Number: 1, Floor: math.MaxInt64 + 5,
			Units: []window.Unit{{Number: math.MaxInt64 + 6, First: true, Last: true,
				Payload: []byte("x")}}, HasAck: true, Ack: window.AckPacket{Done: math.MaxInt64 + 1}},
	}
}

// same compares packets; an absent list is as good as an empty one.
func same(t testing.TB, want, got window.Packet) {
	t.Helper()
	require.Len(t, got.Units, len(want.Units))
	for i, u := range want.Units {
		assert.Equal(t, string(u.Payload), string(got.Units[i].Payload))
		u.Payload, got.Units[i].Payload = nil, nil
		assert.Equal(t, u, got.Units[i])
	}
	assert.ElementsMatch(t, want.Ack.Ranges, got.Ack.Ranges)
	assert.ElementsMatch(t, want.Ack.Nacks, got.Ack.Nacks)
	for _, p := range []*window.Packet{&want, &got} {
		p.Units, p.Ack.Ranges, p.Ack.Nacks = nil, nil, nil
	}
	assert.Equal(t, want, got)
}

func TestPacketsComeBack(t *testing.T) {
	for name, want := range packets() {
		t.Run(name, func(t *testing.T) {
			b := want.Append([]byte("before"))
			var got window.Packet
			require.NoError(t, got.Parse(b[6:]))
			same(t, want, got)
			for n := range b[6:] {
				if err := got.Parse(b[6 : 6+n]); err != nil {
					assert.ErrorIs(t, err, &window.Error{Code: window.Malformed})
				}
			}
		})
	}
}

// The lengths that a sender of datagrams counts with are those that are written.
func TestLengths(t *testing.T) {
	for name, p := range packets() {
		want := 1
		if p.Number != 0 {
			want = p.HeadLen()
		}
		if p.HasAck {
			want += p.Ack.Len()
		}
		units := p.Units
		p.Units = nil
		assert.Len(t, p.Append(nil), want, name)
		for _, u := range units {
			p.Units = []window.Unit{u}
			run := window.UvarintLen(u.Number-p.Floor) + 1
			assert.Len(t, p.Append(nil), want+run+u.Len(), name)
		}
	}
}

// What goes with each small message, and with each datagram, is what the efficiency goals count on.
func TestPacketsAreSmall(t *testing.T) {
	p := window.Packet{Number: 100, Floor: 1000}
	for i := range uint64(30) {
		p.Units = append(p.Units, window.Unit{Number: 1000 + i, First: true, Last: true, Payload: make([]byte, 45)})
	}
	assert.Len(t, p.Append(nil), 6+30*46)
	p = window.Packet{HasAck: true, Ack: window.AckPacket{Instance: 1, Done: 1030, Echo: 100}}
	assert.Len(t, p.Append(nil), 6)
}

func TestMalformedPackets(t *testing.T) {
	beyond := binary.AppendUvarint(nil, 1<<63) // no number of a sequence
	for name, b := range map[string][]byte{
		"empty":                        {},
		"neither number nor ack":       {0},
		"flag that does not exist":     {0x41, 1, 1},
		"request without number":       {0x12, 0, 0, 0, 0},
		"number 0":                     {0x01, 0, 1},
		"floor 0":                      {0x01, 1, 0},
		"number above the limit":       append([]byte{0x01, 1}, beyond...),
		"first sequence said":          {0x21, 1, 0, 1},
		"number 0 of a later sequence": {0x21, 1, 1, 0},
		"sequence beyond 64 bits":      {0x21, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1},
		"overlong integer":             {0x01, 0x81, 0x00, 1},
		"ack flag that does not exist": {0x10, 0x40, 0, 0, 0},
		"no range":                     {0x10, 0x08, 0, 0, 0, 0},
		"ranges that touch":            {0x10, 0x08, 0, 0, 0, 2, 0, 0, 0, 0},
		"too many ranges":              {0x10, 0x08, 0, 0, 0, 33},
		"range beyond 64 bits": {0x10, 0x08, 0, 0, 0, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			0xff, 1},
		"bytes after an ack":               {0x10, 0, 0, 0, 0, 0},
		"run of nothing":                   {0x01, 1, 1, 0, 0},
		"run longer than what is left":     {0x01, 1, 1, 0, 9, 0},
		"runs that touch":                  {0x01, 1, 1, 0, 1, 0, 0, 1, 0},
		"run far beyond":                   {0x01, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 1, 0},
		"payload longer than what is left": {0x01, 1, 1, 0, 1, 8, 'a'},
		"part that is a whole":             {0x01, 1, 1, 0, 1, 1, 3},
		"last beyond 64 bits":              {0x05, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
	} {
		err := new(window.Packet).Parse(b)
		assert.ErrorIs(t, err, &window.Error{Code: window.Malformed}, name)
	}
}

// What parses is written as it was read, and reading it costs no more than in proportion.
func FuzzPacket(f *testing.F) {
	for _, p := range packets() {
		f.Add(p.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p window.Packet
		if err := p.Parse(b); err != nil {
			assert.ErrorIs(t, err, &window.Error{Code: window.Malformed})
			return
		}
		assert.LessOrEqual(t, len(p.Units), len(b))
		assert.Equal(t, b, p.Append(nil))
	})
}

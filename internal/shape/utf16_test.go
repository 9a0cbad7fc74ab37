package shape_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// TestUTF16OfAnyOctets: characters of all planes, surrogates without partners, in the wrong order,
// at the end, and a byte more are given back.
func TestUTF16OfAnyOctets(t *testing.T) {
	units := []uint16{'x', '<', '&', 0xFC, 0x7FF, 0x800, 0x20AC, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFEFF,
		0xFFFD, 0xFFFF, 0}
	rnd := rand.New(rand.NewPCG(11, 12))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		s, err := learn.FromMessage([]byte(wide("<a><b>word</b></a>", order)))
		require.NoError(t, err)
		p := program.Compile(s)
		for i := range 300 {
			message := []byte(wide("<a><b>", order))
			for range rnd.IntN(300) {
				message = order.AppendUint16(message, units[rnd.IntN(len(units))])
			}
			if i%2 == 0 {
				message = append(message, wide("</b></a>", order)...)
			}
			if i%5 == 0 {
				message = append(message, byte(rnd.IntN(256)))
			}
			requireLaw1(t, p, message, "octets")
		}
	}
}

// TestUTF16IsLearned: a family is of one encoding, and has the same content as in UTF-8.
func TestUTF16IsLearned(t *testing.T) {
	first, second := `<a><b>5</b><c>word</c></a>`, `<a><b>7</b><d>caf&#233; caf`+"\u00e9"+`</d></a>`
	narrow := program.Compile(learnAll(t, []string{first, second}))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []string{"", "\uFEFF"} {
			p := program.Compile(learnAll(t, []string{wide(mark+first, order), wide(mark+second, order)}))
			fits, _ := requireLaw1(t, p, []byte(wide(mark+second, order)), "UTF-16")
			assert.True(t, fits)
			assert.Equal(t, split(t, narrow, []byte(second), 4096, 0), split(t, p, []byte(wide(mark+second, order)),
				4096, 0))
			assert.Equal(t, wide(mark+"<a><b>", order), string(p.Leads()))
		}
	}
	utf8, err := learn.NewFamily([]byte(first), true)
	require.NoError(t, err)
	utf16, err := learn.NewFamily([]byte(wide(second, binary.LittleEndian)), true)
	require.NoError(t, err)
	assert.Nil(t, utf8.Widen(utf16))
	assert.NotEqual(t, utf8.Key(), utf16.Key())
}

// TestContentOfUTF16IsUTF8: other bytes are malformed, and so is a character that the content ends
// in.
func TestContentOfUTF16IsUTF8(t *testing.T) {
	s, err := shape.New(utf16Of(shape.UTF16LE, ""))
	require.NoError(t, err)
	p := program.Compile(s)
	for text, ok := range map[string]bool{
		"": true, "\u20AC": true, "\xED\xA0\x80": true, "\xED\xBF\xBF": true, "\U0010FFFF": true, "\uFFFD": true,
		"\x80": false, "\xC0\x80": false, "\xE0\x80\x80": false, "\xF4\x90\x80\x80": false, "\xE2\x82": false,
		"\xED\xA0": false, "\xFF": false, "\xFFa": false, "\xFE": false,
	} {
		var j program.Joiner
		j.Reset(p)
		_, err := j.Join(nil, append([]byte{byte(len(text) + 1)}, text...), false, true)
		if ok {
			require.NoError(t, err, "%x", text)
			continue
		}
		require.ErrorIs(t, err, &shape.Error{Code: shape.Malformed}, "%x", text)
	}
	_, err = shape.New(seq(text("<a/>"), utf16Of(shape.UTF16BE, "")))
	require.ErrorIs(t, err, &shape.Error{Code: shape.Invalid}, "an encoding is the root's")
}

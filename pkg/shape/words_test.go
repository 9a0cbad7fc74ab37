package shape

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bin"
)

// texts makes texts of numbers, and such that are nearly some.
func texts(rnd *rand.Rand) string {
	digits := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = '0' + byte(rnd.IntN(10))
		}
		return string(b)
	}
	text := strings.Repeat("-", rnd.IntN(2)) + digits(rnd.IntN(20))
	if rnd.IntN(4) > 0 {
		text += "." + digits(rnd.IntN(20))
	}
	if rnd.IntN(8) == 0 && len(text) > 0 {
		b := []byte(text)
		b[rnd.IntN(len(b))] = byte(rnd.Uint32())
		return string(b)
	}
	return text
}

func TestScanNumberAgreesWithParseNumber(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	read := 0
	for range 300_000 {
		text := texts(rnd)
		scaled := rnd.IntN(2) == 0
		want, ok := parseNumber([]byte(text), scaled)
		z, scale, n := scanNumber([]byte(text+"<"+strings.Repeat("0", scanRoom)), scaled)
		switch {
		case n == len(text) && n > 0:
			require.True(t, ok, "%q", text)
			require.Equal(t, want, number{m: bin.Unzigzag(z), scale: scale}, "%q", text)
			read++
		case ok:
			require.Greater(t, len(strings.Trim(text, "-.")), 8, "%q is read in words", text)
		}
	}
	assert.Greater(t, read, 50_000)
}

func TestNumberTextAgreesWithStrconv(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		m := int64(rnd.Uint64() >> rnd.IntN(64))
		if rnd.IntN(2) == 0 {
			m = -m
		}
		scale := rnd.IntN(maxScale + 1)
		want := strconv.FormatUint(number{m: m}.abs(), 10)
		if scale > 0 {
			want = strings.Repeat("0", max(0, scale+1-len(want))) + want
			want = want[:len(want)-scale] + "." + want[len(want)-scale:]
		}
		if m < 0 {
			want = "-" + want
		}
		require.Equal(t, "x"+want, string(number{m, uint8(scale)}.append([]byte("x"))), "%d, scale %d", m, scale)
	}
}

func TestUUIDs(t *testing.T) {
	const text = "52fdfc07-2182-654f-163f-5f0f9a621d72"
	const digitsOnly = "00112233-4455-6677-8899-001122334455"
	for _, tc := range []struct {
		text string
		form byte
	}{
		{text, 1}, {strings.ToUpper(text), 2}, {"urn:uuid:" + text, 3}, {"urn:uuid:" + strings.ToUpper(text), 4}, {digitsOnly, 1}, {"urn:uuid:" + digitsOnly, 3},
		{"URN:UUID:" + text, 0}, {text[1:], 0}, {text + "0", 0}, {strings.ReplaceAll(text, "-", ""), 0}, {"{" + text + "}", 0}, {"", 0},
		{strings.Replace(text, "fd", "FD", 1), 0}, {strings.Replace(text, "1d72", "1D72", 1), 0},
	} {
		form, octets := parseUUID([]byte(tc.text))
		require.Equal(t, tc.form, form, tc.text)
		if form == 0 {
			continue
		}
		want, err := hex.DecodeString(strings.ReplaceAll(tc.text[len(tc.text)-uuidLen:], "-", ""))
		require.NoError(t, err)
		assert.Equal(t, want, octets[:], tc.text)
		assert.Equal(t, tc.text, string(appendUUID(nil, form, octets[:])))
	}
	for at := range text {
		for c := range 256 {
			b := []byte(text)
			b[at] = byte(c)
			if form, octets := parseUUID(b); form != 0 {
				require.Equal(t, string(b), string(appendUUID(nil, form, octets[:])))
				require.Equal(t, text[at] == '-', c == '-', "%q", b)
			} else {
				require.False(t, text[at] != '-' && (c >= '0' && c <= '9' || c >= 'a' && c <= 'f'), "%q", b)
			}
		}
	}
}

func TestNotWordsAgreesWithIsWord(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		w := rnd.Uint64()
		if rnd.IntN(2) == 0 {
			w &= 0x7f * ones
		}
		ends := notWords(w)
		for i := range 8 {
			require.Equal(t, !isWord(byte(w>>(8*i))), ends>>(8*i)&0x80 != 0, "octet %d of %016x", i, w)
		}
	}
}

func TestLeadingWord(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	const some = "abz{`AZ@[09/:_^ .\x80\xff\x00"
	for range 100_000 {
		b := make([]byte, rnd.IntN(30))
		for i := range b {
			b[i] = 'm'
			if rnd.IntN(6) == 0 {
				b[i] = some[rnd.IntN(len(some))]
			}
		}
		want := 0
		for want < len(b) && isWord(b[want]) {
			want++
		}
		n, head := leadingWord(b)
		require.Equal(t, want, n, "%q", b)
		require.Equal(t, load8(b[:n], 0), head, "%q", b)
	}
}

func TestUvarintsAgreeWithTheLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for range 100_000 {
		v := rnd.Uint64() >> rnd.IntN(64)
		b := appendUvarint([]byte("before"), v)
		require.Equal(t, binary.AppendUvarint([]byte("before"), v), b)
		at := len("before")
		whole := append(bytes.Clone(b), "behind, and more"[:rnd.IntN(16)]...)
		u, n := uvarintAt(whole, at)
		require.Equal(t, v, u)
		require.Equal(t, len(b)-at, n)
		_, n = uvarintAt(b[:len(b)-1], at)
		require.Zero(t, n, "cut off")
		if len(b)-at < binary.MaxVarintLen64 {
			overlong := append(bytes.Clone(b), 0)
			overlong[len(b)-1] |= 0x80
			_, n = uvarintAt(append(overlong, "behind, and more"[:rnd.IntN(16)]...), at)
			require.Zero(t, n, "not in its shortest form")
		}
	}
}

// TestTextsWithZerosAreNotWhatTheyBeginWith: the memory fills short texts up with zeros, and tells them apart.
func TestTextsWithZerosAreNotWhatTheyBeginWith(t *testing.T) {
	s, err := New(&Node{Kind: Value, Type: TypeString, Until: UntilEnd})
	require.NoError(t, err)
	p := Compile(s)
	var k Packer
	var u Unpacker
	var m, theirs Memory
	for _, text := range []string{"a-b\x00", "a-b", "a-b\x00\x00", "a-b", "a-b\x00", "abc\x00", "abc", "abc\x00"} {
		segment := append(binary.AppendUvarint(nil, uint64(len(text))+1), text...)
		var at, there Packing
		packed := k.Pack(nil, p, &at, &m, segment, true, 1000)
		back, err := u.Unpack(nil, p, &there, &theirs, packed, true, 1000)
		require.NoError(t, err)
		require.Equal(t, segment, back)
	}
}

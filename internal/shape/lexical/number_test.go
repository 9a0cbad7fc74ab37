package lexical

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bin"
)

func TestNumbers(t *testing.T) {
	for _, text := range []string{"0", "1", "-1", "10", "0.5", "-0.05", "1.50", "123456789.123456789", "-1233.7582",
		"0.000000000000000001", "9223372036854775", "0.0", "100.00"} {
		n, ok := ParseNumber([]byte(text), true)
		require.True(t, ok, text)
		assert.Equal(t, text, string(n.Append(nil)))
	}
	for _, text := range []string{"", "-", "+1", "01", "1.", ".5", "-0", "-0.0", "1e5", "1.2.3", " 1",
		"12345678901234567890", "0.0000000000000000001", "NaN"} {
		_, ok := ParseNumber([]byte(text), true)
		assert.False(t, ok, text)
	}
	_, ok := ParseNumber([]byte("1.5"), false)
	assert.False(t, ok)
}

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
		want, ok := ParseNumber([]byte(text), scaled)
		z, scale, n := ScanNumber([]byte(text+"<"+strings.Repeat("0", ScanRoom)), scaled)
		switch {
		case n == len(text) && n > 0:
			require.True(t, ok, "%q", text)
			require.Equal(t, want, Number{M: bin.Unzigzag(z), Scale: scale}, "%q", text)
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
		scale := rnd.IntN(MaxScale + 1)
		want := strconv.FormatUint(Number{M: m}.Abs(), 10)
		if scale > 0 {
			want = strings.Repeat("0", max(0, scale+1-len(want))) + want
			want = want[:len(want)-scale] + "." + want[len(want)-scale:]
		}
		if m < 0 {
			want = "-" + want
		}
		require.Equal(t, "x"+want, string(Number{m, uint8(scale)}.Append([]byte("x"))), "%d, scale %d", m, scale)
	}
}

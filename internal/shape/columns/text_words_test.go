package columns

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bin"
)

func TestNotWordsAgreesWithIsWord(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		w := rnd.Uint64()
		if rnd.IntN(2) == 0 {
			w &= 0x7f * bin.Ones
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

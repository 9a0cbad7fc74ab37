package bin

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUvarintsAgreeWithTheLibrary(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for range 100_000 {
		v := rnd.Uint64() >> rnd.IntN(64)
		b := AppendUvarint([]byte("before"), v)
		require.Equal(t, binary.AppendUvarint([]byte("before"), v), b)
		at := len("before")
		whole := append(bytes.Clone(b), "behind, and more"[:rnd.IntN(16)]...)
		u, n := UvarintAt(whole, at)
		require.Equal(t, v, u)
		require.Equal(t, len(b)-at, n)
		_, n = UvarintAt(b[:len(b)-1], at)
		require.Zero(t, n, "cut off")
		if len(b)-at < binary.MaxVarintLen64 {
			overlong := append(bytes.Clone(b), 0)
			overlong[len(b)-1] |= 0x80
			_, n = UvarintAt(append(overlong, "behind, and more"[:rnd.IntN(16)]...), at)
			require.Zero(t, n, "not in its shortest form")
		}
	}
}

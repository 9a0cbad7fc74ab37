package binary_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/codec/binary"
)

// TestRecordsOfTheCorpusAreColumns: the longest arrays of the corpus take less than their bit-packed EXI, without any memory between messages.
func TestRecordsOfTheCorpusAreColumns(t *testing.T) {
	dir := shared.Dir(t, "corpus", "messages", "soap11", "jtlm")
	for name, most := range map[string]int{"publish100.xml": 9511, "publish911.xml": 86000} {
		k := newPacking(t, binary.Options{Without: binary.Memory})
		message := shared.Read(t, filepath.Join(dir, name))
		var number uint64
		var segments [][]byte
		require.NoError(t, k.from.coder.Split(0, nil, bytes.NewReader(message), 16384-32, func(_ bool, n uint64, text bool, data []byte) error {
			require.False(t, text)
			if number == 0 {
				_, full, ok := k.from.coder.Announce(n)
				require.True(t, ok)
				_, err := k.to.coder.Define(n, full)
				require.NoError(t, err)
			}
			number, segments = n, append(segments, bytes.Clone(data))
			return nil
		}))
		pack, unpack := k.from.coder.NewPack(0, number, false), k.to.coder.NewUnpack(number)(0, false, 0)
		octets, plain := 0, 0
		for i, s := range segments {
			packed := pack(nil, s, false, i == len(segments)-1, 16384)
			back, err := unpack(nil, packed, false, i == len(segments)-1, 16384)
			require.NoError(t, err)
			require.Equal(t, string(s), string(back))
			octets, plain = octets+len(packed)+4, plain+len(s)
		}
		assert.LessOrEqual(t, octets, most, name)
		t.Logf("%s: %d octets, content %d, packed %d in %d segments", name, len(message), plain, octets, len(segments))
	}
}

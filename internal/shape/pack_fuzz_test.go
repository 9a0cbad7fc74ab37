package shape_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shared"
)

func unhex(tb testing.TB, s string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(s)
	require.NoError(tb, err)
	return b
}

// addVectors seeds a target with each segment of the vectors and the one behind it, in the form
// that of gives.
func addVectors(f *testing.F, of func(packedSegment) string) {
	for _, path := range shared.Files(f, shared.Testdata(f, "vectors", "packed"), nil) {
		var v packedVector
		require.NoError(f, json.Unmarshal(shared.Read(f, path), &v))
		octets := unhex(f, v.Shape)
		for _, m := range v.Messages {
			for i, s := range m {
				f.Add(octets, unhex(f, of(s)), unhex(f, of(m[(i+1)%len(m)])), s.Last)
			}
		}
	}
}

// FuzzUnpack: packed segments from a hostile peer make an error or a segment, in bounded work and
// memory; what they leave in the memory is fit for the next.
func FuzzUnpack(f *testing.F) {
	addVectors(f, func(s packedSegment) string { return s.Packed })
	f.Fuzz(func(t *testing.T, octets, first, second []byte, last bool) {
		s, err := shape.Parse(octets)
		if err != nil || len(first) > 16384 || len(second) > 16384 {
			return
		}
		p := program.Compile(s)
		var u columns.Unpacker
		var m columns.Memory
		var at columns.Packing
		for i, packed := range [][]byte{first, second, first} {
			if last || i == 0 {
				at.Reset()
			}
			out, err := u.Unpack(nil, p, &at, &m, packed, last, 4096)
			if err != nil {
				require.True(t, errors.Is(err, &shape.Error{Code: shape.Malformed}), "%v", err)
				return
			}
			require.LessOrEqual(t, len(out), 4096)
		}
	})
}

// FuzzPack: any segment, well formed or not, comes back as it was.
func FuzzPack(f *testing.F) {
	addVectors(f, func(s packedSegment) string { return s.Segment })
	f.Fuzz(func(t *testing.T, octets, first, second []byte, last bool) {
		s, err := shape.Parse(octets)
		if err != nil || len(first) > 16384 || len(second) > 16384 {
			return
		}
		p := program.Compile(s)
		ways := [][]segment{{{octets: first}, {octets: second}, {octets: first}}, {{octets: second}}, {{octets: first}}}
		if last {
			ways = ways[1:]
		}
		for folds := range 4 {
			k := &packed{folds: folds}
			for _, segments := range ways {
				k.message(t, p, segments, 16384)
			}
		}
	})
}

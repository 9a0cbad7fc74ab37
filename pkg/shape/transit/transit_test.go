package transit_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
	messages "github.com/hhfr/hhfr/testdata/soap"
)

var update = flag.Bool("update", false, "write the vectors anew")

// serializations are those of shapes learned from the messages in the tree.
func serializations(t testing.TB) (all [][]byte) {
	names, err := fs.Glob(messages.Files, "*.xml")
	require.NoError(t, err)
	for _, name := range names {
		m, err := messages.Files.ReadFile(name)
		require.NoError(t, err)
		s, err := shape.Learn(m)
		require.NoError(t, err)
		all = append(all, s.Octets())
	}
	require.NotEmpty(t, all)
	return all
}

// only finds one base.
func only(base []byte) func(transit.Name) []byte {
	return func(n transit.Name) []byte {
		if base != nil && n == transit.NameOf(sha256.Sum256(base)) {
			return base
		}
		return nil
	}
}

func TestUnpackGivesBackWhatWasPacked(t *testing.T) {
	all := serializations(t)
	long := []byte(strings.Repeat("0123456789abcdef", transit.MaxOctets/16))
	all = append(all, nil, []byte{1}, long[:40<<10], long)
	for _, base := range append(all, nil) {
		for _, octets := range all {
			packed := transit.Pack([]byte("before"), octets, base)
			require.True(t, bytes.HasPrefix(packed, []byte("before")))
			packed = packed[len("before"):]
			assert.LessOrEqual(t, len(packed), len(octets)+1)
			got, err := transit.Unpack(packed, only(base))
			require.NoError(t, err)
			require.True(t, bytes.Equal(octets, got))
		}
	}
}

func TestBasesMakeShapesSmaller(t *testing.T) {
	all := serializations(t)
	for _, octets := range all {
		alone, based := transit.Pack(nil, octets, nil), transit.Pack(nil, octets, octets)
		assert.Less(t, 2*len(alone), len(octets)+len(octets)/2)
		assert.Less(t, 10*len(based), len(octets))
	}
}

func TestUnpackRefuses(t *testing.T) {
	octets := serializations(t)[0]
	base := []byte(strings.Repeat("base", 100))
	good := transit.Pack(nil, octets, base)
	bomb := transit.Pack(nil, make([]byte, transit.MaxOctets+1), nil)
	alone := transit.Pack(nil, octets, nil)
	less := bytes.Clone(alone)
	less[1]--
	more := bytes.Clone(alone)
	more[1]++
	for name, tt := range map[string]struct {
		packed []byte
		code   transit.Code
	}{
		"nothing":           {nil, transit.Malformed},
		"unknown form":      {[]byte{4}, transit.Malformed},
		"base, not packed":  {[]byte{2, 1, 1}, transit.Malformed},
		"no size":           {[]byte{1}, transit.Malformed},
		"half a name":       {good[:7], transit.Malformed},
		"cut":               {good[:len(good)-1], transit.Malformed},
		"octets behind":     {append(bytes.Clone(alone), 0), transit.Malformed},
		"shorter than said": {more, transit.Malformed},
		"longer than said":  {less, transit.Malformed},
		"too large":         {bomb, transit.TooLarge},
		"too large, plain":  {make([]byte, transit.MaxOctets+2), transit.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transit.Unpack(tt.packed, only(base))
			assert.ErrorIs(t, err, &transit.Error{Code: tt.code})
		})
	}
	_, err := transit.Unpack(good, only(nil))
	require.ErrorIs(t, err, &transit.Error{Code: transit.NoBase})
	assert.Contains(t, err.Error(), hex.EncodeToString(base[:0])+transit.NameOf(sha256.Sum256(base)).String())
}

// The vocabulary is part of the format: docs/wire-format.md pins it.
func TestVocabularyIsTheOneOfTheDocs(t *testing.T) {
	octets, err := os.ReadFile("vocabulary.txt")
	require.NoError(t, err)
	page, err := os.ReadFile(shared.Testdata(t, "..", "docs", "wire-format.md"))
	require.NoError(t, err)
	sum := sha256.Sum256(octets)
	assert.Contains(t, string(page), hex.EncodeToString(sum[:]))
}

// vector is one file of testdata/vectors/transit: what a decoder must unpack. Any packed form of a serialization is right that unpacks to it.
type vector struct {
	What   string `json:"what"`
	Packed string `json:"packed"`
	Base   string `json:"base,omitempty"`
	Octets string `json:"octets"`
}

func TestVectors(t *testing.T) {
	dir := shared.Testdata(t, "vectors", "transit")
	if *update {
		all := serializations(t)
		for name, v := range map[string]vector{
			"as-it-is.json":   vectorOf("too small to be packed", []byte("\x01\x00\x01\x00\x05"), nil),
			"vocabulary.json": vectorOf("packed with the vocabulary alone", all[0], nil),
			"base.json":       vectorOf("packed on another shape", all[1], all[2]),
		} {
			out, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(out, '\n'), 0o644))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			var v vector
			require.NoError(t, json.Unmarshal(b, &v))
			got, err := transit.Unpack(unhex(t, v.Packed), only(unhex(t, v.Base)))
			require.NoError(t, err)
			assert.Equal(t, v.Octets, hex.EncodeToString(got))
		})
	}
}

func vectorOf(what string, octets, base []byte) vector {
	return vector{What: what, Packed: hex.EncodeToString(transit.Pack(nil, octets, base)), Base: hex.EncodeToString(base), Octets: hex.EncodeToString(octets)}
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	require.NoError(t, err)
	return b
}

func FuzzUnpack(f *testing.F) {
	all := serializations(f)
	base := all[0]
	for _, octets := range all {
		f.Add(transit.Pack(nil, octets, nil))
		f.Add(transit.Pack(nil, octets, base))
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		octets, err := transit.Unpack(packed, only(base))
		if err != nil {
			return
		}
		assert.LessOrEqual(t, len(octets), transit.MaxOctets)
		again, err := transit.Unpack(transit.Pack(nil, octets, base), only(base))
		require.NoError(t, err)
		assert.True(t, bytes.Equal(octets, again))
	})
}

func BenchmarkPack(b *testing.B) {
	all := serializations(b)
	for i := 0; b.Loop(); i++ {
		transit.Pack(nil, all[i%len(all)], all[(i+1)%len(all)])
	}
}

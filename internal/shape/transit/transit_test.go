package transit_test

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/internal/shape/transit"
	"github.com/hhfr/hhfr/internal/shared"
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
		s, err := learn.FromMessage(m)
		require.NoError(t, err)
		all = append(all, s.Octets())
	}
	require.NotEmpty(t, all)
	return all
}

// only finds one base, also as the own shape of a description, in any style.
type only []byte

func (o only) Base(n transit.Name) []byte {
	if o != nil && n == transit.NameOf(sha256.Sum256(o)) {
		return o
	}
	return nil
}

func (o only) Styled(n transit.OwnName, _ string) []byte {
	if o != nil && n == transit.OwnNameOf(sha256.Sum256(o)) {
		return o
	}
	return nil
}

func TestUnpackGivesBackWhatWasPacked(t *testing.T) {
	all := serializations(t)
	long := []byte(strings.Repeat("0123456789abcdef", transit.MaxOctets/16))
	all = append(all, nil, []byte{1}, long[:40<<10], long, []byte(everyNode), text(10), text(transit.MaxOctets-6))
	for _, base := range append(all, nil) {
		for _, octets := range all {
			if len(octets) > 64<<10 && base != nil {
				continue // time
			}
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

// text is a serialization of one text of n bytes.
func text(n int) []byte {
	return bin.AppendBytes([]byte{1, 0, 0}, bytes.Repeat([]byte("x"), n))
}

// everyNode is a serialization with all that a folded form tells apart: prefix slots in names of
// elements, texts next to each other, both quotes, arrays with limits, values that end in unusual
// places, lists with and without their tails.
const everyNode = "\x01\x01" + "\x04\x06" +
	// no end tag
	"\x05\x06\x00\x01<\x02\x00\x00\x02:a\x06\x03\x00\x04 b='\x01\x01\x02\x00\x01'\x00\x02>x" +
	"\x05\x03\x00\x01<\x03\x00\x00\x05:c/>!" +
	"\x05\x07\x00\x01<\x03\x00\x00\x03:d>\x01\x02\x00\x00\x03 </\x03\x00\x00\x03:d>" +
	"\x09\x03\x00\x01p\x0a\x00\x02qq\x08\x00\x01r" + // and a kind that is not known
	"\x07\x02\x90\x01\x05\x02\x00\x03<e>\x00\x05x</e>" +
	"\x06\x03\x00\x07\tf = '\"\x01\x09\x02\x00\x01'" +
	"\x01\x0d\x03" // of a type that has no mark

// TestEveryShapeIsFolded: none stays as it is.
func TestEveryShapeIsFolded(t *testing.T) {
	for _, octets := range append(serializations(t), []byte(everyNode)) {
		packed := transit.Pack(nil, octets, nil)
		assert.Equal(t, byte(1), packed[0])
		assert.Less(t, len(packed), len(octets))
	}
	withMark := text(100)
	withMark[50] = 1
	assert.Len(t, transit.Pack(nil, withMark, nil), 1+len(withMark), "a text that has a mark")
}

func TestUnfoldRefuses(t *testing.T) {
	for name, folded := range map[string]string{
		"nothing":                        "",
		"no node":                        "\x00",
		"two nodes":                      "\x00\x13\x13",
		"two texts":                      "\x00a\x0fb",
		"unknown mark":                   "\x00\x12",
		"list that does not end":         "\x00\x01<a>",
		"end of no list":                 "\x00a\x05",
		"end without a row":              "\x00\x03a\x10\x05",
		"optional without its node":      "\x00\x08",
		"tail of a sequence":             "\x00\x03a\x13\x06",
		"tail of no element":             "\x00\x01a>\x13\x06",
		"tail of no attribute":           "\x00\x02 a=\x13\x06",
		"array without limits":           "\x00\x07",
		"slot without a number":          "\x00\x0b",
		"number not in shortest form":    "\x00\x0b\x80\x00",
		"kind cut":                       "\x00\x11",
		"other kind without its node":    "\x00\x11\x0a",
		"value cut":                      "\x00\x0e\x01",
		"lists deeper than shapes are":   "\x00" + strings.Repeat("\x03", 202) + strings.Repeat("\x05", 202),
		"tail with half a slot's number": "\x00\x01<\x0b",
	} {
		_, err := transit.Unpack(deflate(t, folded), only(nil))
		assert.ErrorIs(t, err, &transit.Error{Code: transit.Malformed}, name)
	}
	for name, folded := range map[string]string{
		"unfolded": "\x00" + strings.Repeat("x", transit.MaxOctets-1),
		"tails":    "\x00\x03" + strings.Repeat("\x01<"+strings.Repeat("n", 1000)+">\x13\x06", 700) + "\x05",
		"nodes":    "\x00\x03" + strings.Repeat("\x13", 500_000) + "\x05",
	} {
		_, err := transit.Unpack(deflate(t, folded), only(nil))
		assert.ErrorIs(t, err, &transit.Error{Code: transit.TooLarge}, name)
	}
}

// deflate packs what fold would not give.
func deflate(t testing.TB, folded string) []byte {
	var out bytes.Buffer
	out.WriteByte(1)
	w, err := flate.NewWriter(&out, 9)
	require.NoError(t, err)
	_, err = w.Write([]byte(folded))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
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
	base := serializations(t)[1]
	good := transit.Pack(nil, octets, base)
	bomb := transit.Pack(nil, text(transit.MaxOctets+1), nil)
	alone := transit.Pack(nil, octets, nil)
	for name, tt := range map[string]struct {
		packed []byte
		code   transit.Code
	}{
		"nothing":          {nil, transit.Malformed},
		"unknown form":     {[]byte{4}, transit.Malformed},
		"base, not packed": {[]byte{2, 1, 1}, transit.Malformed},
		"no octets":        {[]byte{1}, transit.Malformed},
		"half a name":      {good[:7], transit.Malformed},
		"cut":              {good[:len(good)-1], transit.Malformed},
		"octets behind":    {append(bytes.Clone(alone), 0), transit.Malformed},
		"too large":        {bomb, transit.TooLarge},
		"too large, plain": {make([]byte, transit.MaxOctets+2), transit.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := transit.Unpack(tt.packed, only(base))
			assert.ErrorIs(t, err, &transit.Error{Code: tt.code})
		})
	}
	_, err := transit.Unpack(good, only(nil))
	require.ErrorIs(t, err, &transit.Error{Code: transit.NoBase})
	assert.Contains(t, err.Error(), transit.NameOf(sha256.Sum256(base)).String())
}

// The vocabulary is what scripts/vocabulary.py makes of the standards.
func TestVocabularyIsWhatTheScriptPrints(t *testing.T) {
	script := shared.Testdata(t, "..", "scripts", "vocabulary.py")
	printed, err := exec.CommandContext(t.Context(), shared.Program(t, "python3"), script).Output()
	require.NoError(t, err)
	const stale = "stale: python3 scripts/vocabulary.py > internal/shape/transit/vocabulary.txt"
	assert.Equal(t, string(printed), string(transit.Vocabulary()), stale)
	assert.LessOrEqual(t, len(printed), 32<<10)
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

// vector is one file of testdata/vectors/transit: what a decoder must unpack. Any packed form of a
// serialization is right that unpacks to it.
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
			"marks.json":      vectorOf("all marks of the folded form", []byte(everyNode), nil),
			"marks-base.json": vectorOf("packed on a shape with all marks", []byte(strings.Replace(everyNode, "qq",
				"rs", 1)), []byte(everyNode)),
		} {
			out, err := json.MarshalIndent(v, "", "  ")
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(out, '\n'), 0o644))
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 5)
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
	return vector{What: what, Packed: hex.EncodeToString(transit.Pack(nil, octets, base)),
		Base: hex.EncodeToString(base), Octets: hex.EncodeToString(octets)}
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
	f.Add(transit.Pack(nil, []byte(everyNode), nil))
	f.Add(deflate(f, "\x00\x03\x01<\x0b\x00:a>\x08x\x0fy\x06\x06"))
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

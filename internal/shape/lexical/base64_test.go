package lexical_test

import (
	"encoding/base64"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// FuzzBase64 holds base64 against that of the standard library, for all bytes, well-formed or not.
func FuzzBase64(f *testing.F) {
	for _, s := range []string{"", "QQ==", "QUI=", "QUJD", "QUJDQUJD", "QUJDQR==", "QUJDQ", "QU\nJD", "QUJD=UJD",
		"++//", "QUJ\x80QUJD", "-_-_"} {
		f.Add([]byte("before"), []byte(s))
	}
	f.Fuzz(func(t *testing.T, before, chars []byte) {
		before = slices.Clip(before)
		want, wantErr := lexical.StrictBase64.AppendDecode(before, chars)
		got, err := lexical.AppendFromBase64(before, chars)
		assert.Equal(t, want, got)
		require.Equal(t, wantErr == nil, err == nil)
		assert.Equal(t, base64.StdEncoding.AppendEncode(before, chars), lexical.AppendBase64(before, chars))
	})
}

// BenchmarkBase64 is a piece of a long value.
func BenchmarkBase64(b *testing.B) {
	octets := make([]byte, 6144)
	_, _ = rand.NewChaCha8([32]byte{}).Read(octets)
	chars := base64.StdEncoding.AppendEncode(nil, octets)
	for name, do := range map[string]func(dst []byte) []byte{
		"encode":           func(dst []byte) []byte { return lexical.AppendBase64(dst, octets) },
		"encode, standard": func(dst []byte) []byte { return base64.StdEncoding.AppendEncode(dst, octets) },
		"decode": func(dst []byte) []byte {
			dst, _ = lexical.AppendFromBase64(dst, chars)
			return dst
		},
		"decode, standard": func(dst []byte) []byte {
			dst, _ = lexical.StrictBase64.AppendDecode(dst, chars)
			return dst
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(chars)))
			var dst []byte
			for b.Loop() {
				dst = do(dst[:0])
			}
		})
	}
}

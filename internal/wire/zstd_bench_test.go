package wire_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/internal/wire"
)

// TestCompressorsAreSmall: a compressor takes less than 1 MiB, an expander less than 128 KiB,
// whatever they had to do. There are no more than work at the same time.
func TestCompressorsAreSmall(t *testing.T) {
	segments := [][]byte{noise(16384), bytes.Repeat([]byte("<a>somebody or other</a>"), 682), noise(3)}
	const each = 4
	var compress [each]func([]byte) []byte
	var expand [each]func([]byte) ([]byte, error)
	start := heap()
	for i := range each {
		compress[i] = wire.NewCompressor()
		for _, s := range segments {
			compress[i](s)
		}
	}
	between := heap()
	for i := range each {
		expand[i] = wire.NewExpander()
		for _, s := range segments {
			out, err := expand[i](compress[0](s))
			require.NoError(t, err)
			require.Equal(t, s, out)
		}
	}
	end := heap()
	assert.Less(t, (between-start)/each, int64(1<<20), "octets of a compressor")
	assert.Less(t, (end-between)/each, int64(128<<10), "octets of an expander")
	t.Logf("compressor %d KiB, expander %d KiB", (between-start)/each>>10, (end-between)/each>>10)
	runtime.KeepAlive(compress)
	runtime.KeepAlive(expand)
}

// BenchmarkZstd is what compressing and expanding a segment costs: of text, and of octets that
// get no smaller.
func BenchmarkZstd(b *testing.B) {
	read := func(name string) []byte { return shared.Read(b, shared.Testdata(b, "soap", name)) }
	for _, v := range []struct {
		name    string
		segment []byte
	}{{"text-655", read("ews-getitem-request.xml")}, {"text-4409", read("ews-finditem-response.xml")}, {"noise-512",
		noise(512)}, {"noise-16000", noise(16000)}} {
		compress, expand := wire.NewCompressor(), wire.NewExpander()
		b.Run("Compress/"+v.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(v.segment)))
			for b.Loop() {
				compress(v.segment)
			}
		})
		frame := bytes.Clone(compress(v.segment))
		b.Run("Expand/"+v.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(v.segment)))
			for b.Loop() {
				if _, err := expand(frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

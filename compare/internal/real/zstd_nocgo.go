//go:build !cgo

package real

import (
	"io"

	"github.com/klauspost/compress/zstd"
)

// bestZstd is the best that needs no C compiler.
func bestZstd(w io.Writer) (flushWriter, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
}

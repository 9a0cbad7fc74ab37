//go:build cgo

package main

import (
	"io"

	"github.com/DataDog/zstd"
)

// zstdC is the zstd library itself, the strongest there is.
func zstdC(level int) func(io.Writer) (flusher, error) {
	return func(w io.Writer) (flusher, error) { return zstd.NewWriterLevel(w, level), nil }
}

//go:build !cgo

package main

import "io"

// zstdC needs a C compiler.
func zstdC(int) func(io.Writer) (flusher, error) { return nil }

package main

import (
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// byteCount counts bytes and drops them.
type byteCount int

func (c *byteCount) Write(b []byte) (int, error) {
	*c += byteCount(len(b))
	return len(b), nil
}

// gzipAlone compresses each message by itself.
func gzipAlone(messages [][]byte) (int, error) {
	var n byteCount
	for _, m := range messages {
		z, err := gzip.NewWriterLevel(&n, gzip.BestCompression)
		if err != nil {
			return 0, err
		}
		if _, err = z.Write(m); err == nil {
			err = z.Close()
		}
		if err != nil {
			return 0, err
		}
	}
	return int(n), nil
}

// flusher is a compressor whose stream can be read to the end of what was written before Flush.
type flusher interface {
	io.Writer
	Flush() error
	Close() error
}

// stream compresses all messages as one stream, flushed after each, as a connection would. What
// Close writes is not counted, neither here nor for hhfr.
func stream(messages [][]byte, open func(io.Writer) (flusher, error)) (int, error) {
	var n byteCount
	z, err := open(&n)
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if _, err = z.Write(m); err == nil {
			err = z.Flush()
		}
		if err != nil {
			return 0, errors.Join(err, z.Close())
		}
	}
	size := int(n)
	return size, z.Close()
}

func deflateStream(messages [][]byte) (int, error) {
	return stream(messages, func(w io.Writer) (flusher, error) { return flate.NewWriter(w, 6) })
}

// zstdStream compresses as one zstd frame, which retains its window over messages. If open is nil,
// the compressor is not available: 0.
func zstdStream(open func(io.Writer) (flusher, error)) func([][]byte) (int, error) {
	return func(messages [][]byte) (int, error) {
		if open == nil {
			return 0, nil
		}
		return stream(messages, open)
	}
}

func zstdGo(w io.Writer, level zstd.EncoderLevel) (flusher, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1))
}

func zstdGoFastest(w io.Writer) (flusher, error) { return zstdGo(w, zstd.SpeedFastest) }
func zstdGoBest(w io.Writer) (flusher, error)    { return zstdGo(w, zstd.SpeedBestCompression) }

package estimate

import (
	"bytes"
	"compress/gzip"
	"errors"

	"github.com/klauspost/compress/zstd"

	"github.com/hhfr/hhfr/internal/http1"
)

// rivals are what else makes messages small.
type rivals struct {
	gzip    *gzip.Writer
	windows map[*connection]*[2]window
	order   []*connection // of windows, the oldest first
	free    []window      // of connections that are over
	buf     bytes.Buffer
}

// window is a compressor of one direction of a connection that knows what it sent before.
type window struct {
	to  *bytes.Buffer
	enc *zstd.Encoder
}

const (
	// windowSize is how far a window goes back, in bytes.
	windowSize = 128 << 10
	// mostWindows bounds the connections that have windows at once; beyond it the oldest one begins
	// anew.
	mostWindows = 32
)

func newRivals() *rivals {
	return &rivals{gzip: gzip.NewWriter(nil), windows: map[*connection]*[2]window{}}
}

// gzipped returns the length of a message whose body is compressed by itself, if that is shorter.
func (r *rivals) gzipped(m *message) (int64, error) {
	h, n, err := http1.ParseHead(m.octets, 0)
	whole := int64(len(m.octets))
	if err != nil || n == len(m.octets) {
		return whole, nil
	}
	if _, coded := h.Get("Content-Encoding"); coded {
		return whole, nil
	}
	r.buf.Reset()
	r.gzip.Reset(&r.buf)
	_, err = r.gzip.Write(m.octets[n:])
	if err = errors.Join(err, r.gzip.Close()); err != nil {
		return 0, err
	}
	return min(whole, int64(n+len("Content-Encoding: gzip\r\n")+r.buf.Len())), nil
}

// windowed returns what a message takes behind those before it in its direction.
func (r *rivals) windowed(c *connection, dir int, octets []byte) (int64, error) {
	pair := r.windows[c]
	if pair == nil {
		if len(r.order) == mostWindows {
			r.leave(r.order[0])
		}
		pair = new([2]window)
		for i := range pair {
			w, err := r.window()
			if err != nil {
				return 0, err
			}
			pair[i] = w
		}
		r.windows[c] = pair
		r.order = append(r.order, c)
	}
	w := &pair[dir]
	w.to.Reset()
	if _, err := w.enc.Write(octets); err != nil {
		return 0, err
	}
	err := w.enc.Flush()
	return int64(w.to.Len()), err
}

func (r *rivals) window() (w window, err error) {
	if last := len(r.free) - 1; last >= 0 {
		w, r.free = r.free[last], r.free[:last]
		w.enc.Reset(w.to)
		return w, nil
	}
	w.to = new(bytes.Buffer)
	w.enc, err = zstd.NewWriter(w.to, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(windowSize),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
	return w, err
}

// leave ends the windows of a connection.
func (r *rivals) leave(c *connection) {
	pair := r.windows[c]
	if pair == nil {
		return
	}
	delete(r.windows, c)
	r.free = append(r.free, pair[0], pair[1])
	for i, other := range r.order {
		if other == c {
			r.order = append(r.order[:i], r.order[i+1:]...)
			return
		}
	}
}

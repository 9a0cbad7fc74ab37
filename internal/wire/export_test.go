package wire

import "github.com/hhfr/hhfr/internal/shape/recall"

// Texts reports whether a part of the message found no number for its shape, and went as text.
func (m *Outgoing) Texts() bool { return m.texts }

// Open is the number of messages begun and not whole.
func (d *Decoder) Open() int { return d.open.Len() }

// IsNoise reports whether a segment is not worth a try.
func IsNoise(segment []byte) bool { return isNoise(segment) }

// NewCompressor makes one that no pool has; it gives a frame with its magic number.
func NewCompressor() func(segment []byte) []byte {
	c := newCompressor()
	return func(segment []byte) []byte {
		c.out = c.EncodeAll(segment, c.out[:0])
		return c.out
	}
}

// NewExpander makes one that no pool has; it gives back what a compressor made.
func NewExpander() func(frame []byte) ([]byte, error) {
	x := newExpander()
	return func(frame []byte) ([]byte, error) {
		x.in = append(x.in[:0], frame...)
		return x.DecodeAll(x.in, x.out[:0])
	}
}

// Expand is what a decoder does to a segment of a lane that is new.
func (c *Compression) Expand(segment []byte, packed bool, undo func([]byte) error) error {
	return c.ExpandBy(new(recall.History), segment, packed, undo)
}

// ExpandBy is that of a lane that has a window.
func (c *Compression) ExpandBy(w *recall.History, segment []byte, packed bool, undo func([]byte) error) error {
	window := func(anew bool) (*recall.History, error) {
		if anew {
			*w = recall.History{}
		}
		return w, nil
	}
	return c.expand(segment, packed, window, undo)
}

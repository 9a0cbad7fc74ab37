package wire

// Texts reports whether a part of the message found no number for its shape, and went as text.
func (m *Outgoing) Texts() bool { return m.texts }

// Open is the number of messages begun and not whole.
func (d *Decoder) Open() int { return len(d.open) }

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

// Expand is what a decoder does to a segment.
func (c *Compression) Expand(segment []byte, packed bool, undo func([]byte) error) error {
	return c.expand(segment, packed, undo)
}

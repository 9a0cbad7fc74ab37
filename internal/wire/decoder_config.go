package wire

import "github.com/hhfr/hhfr/internal/shape/program"

// DecoderConfig says what a decoder is to do. It is copied.
type DecoderConfig struct {
	// Shapes is where shapes are; required.
	Shapes Shapes
	// Named finds a shape by the beginning of its fingerprint, as syncs and bases name shapes; nil:
	// none is found.
	Named func(name [8]byte) *program.Program
	// MaxFragment bounds the payload of a data frame, in bytes; 0 means 16,384.
	MaxFragment int
	// MaxShapes and MaxShapeOctets bound the shapes that stand under numbers; 0 means 1,024 and 4
	// MiB.
	MaxShapes      int
	MaxShapeOctets int64
	// MaxOpen bounds the messages that are begun and not whole; 0 means no bound.
	MaxOpen int
	// MaxHeld bounds the bytes of payload that wait for shapes that were asked for; below 0 nothing
	// waits: content under a shape that is missing is given as [Lacking].
	MaxHeld int64
	// Compression is shared with others; nil: with none.
	Compression *Compression
	// Skim leaves content out of fragments: who drives the decoder wants to know what checks say,
	// and which shapes there are.
	Skim bool
	// Bills: parts say what their places cost, which takes time.
	Bills bool
	// Scratch has content share a buffer that the next call overwrites.
	Scratch bool
	// Reuse has the next call overwrite an [IncomingMessage] that came in one frame.
	Reuse bool
}

func (c DecoderConfig) withDefaults() DecoderConfig {
	if c.MaxShapes == 0 {
		c.MaxShapes = 1024
	}
	if c.MaxShapeOctets == 0 {
		c.MaxShapeOctets = 4 << 20
	}
	if c.Compression == nil {
		c.Compression = new(Compression)
	}
	if c.Named == nil {
		c.Named = func([8]byte) *program.Program { return nil }
	}
	return c
}

package frame

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
)

// Idle names lanes whose memory the sender has given back: its next packed segment on each of them
// resets the memory, so that the receiver may give it back too (section 11.6). Lanes ascend. It has
// the skip bit.
type Idle struct{ Lanes []uint64 }

// Kind is [KindIdle].
func (Idle) Kind() Kind { return KindIdle }

// AppendTo appends the frame.
func (f Idle) AppendTo(b []byte) []byte {
	return appendFramed(b, []byte{byte(KindIdle) | skipBit}, func(b []byte) []byte {
		b = binary.AppendUvarint(b, uint64(len(f.Lanes)))
		for _, lane := range f.Lanes {
			b = binary.AppendUvarint(b, lane)
		}
		return b
	})
}

func parseIdle(c *bin.Cursor) Frame {
	c.Name("lanes", bin.Uint)
	return Idle{list(c, 1, func(c *bin.Cursor) uint64 {
		c.Name("lane", bin.Uint)
		return c.Uvarint()
	}, func(a, b uint64) bool { return a < b })}
}

package program

import (
	"encoding/binary"
	"math/bits"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/items"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// column gathers one group of an array of numbers (wire-format section 10.5).
type column struct {
	open    bool // inside an array of numbers
	total   uint64
	zigzags []uint64 // the mantissas
	scales  []uint8
	union   uint64 // of all zigzag mantissas
	low     uint8  // smallest and largest scale
	high    uint8
	rare    []byte // exceptions as they travel
	rares   uint64
	lastAt  int   // row of the last exception
	from    int64 // where in the message the group began
	packed  []byte
}

func (c *column) reset() { c.open, c.total = false, 0; c.clear() }

func (c *column) clear() {
	c.zigzags, c.scales, c.union, c.low, c.high = c.zigzags[:0], c.scales[:0], 0, lexical.MaxScale, 0
	c.rare, c.rares, c.lastAt = c.rare[:0], 0, 0
}

func (c *column) add(n lexical.Number) {
	z := bin.Zigzag(n.M)
	c.zigzags, c.scales = append(c.zigzags, z), append(c.scales, n.Scale)
	c.union |= z
	c.low, c.high = min(c.low, n.Scale), max(c.high, n.Scale)
}

// exception keeps a row's text; its number is 0 with the smallest scale.
func (c *column) exception(text []byte) {
	at := len(c.zigzags)
	c.rare = binary.AppendUvarint(c.rare, uint64(at-c.lastAt))
	c.rare = binary.AppendUvarint(c.rare, uint64(len(text))+1)
	c.rare = append(c.rare, text...)
	c.rares++
	c.lastAt = at + 1
	c.zigzags, c.scales = append(c.zigzags, 0), append(c.scales, lexical.MaxScale+1)
}

// append writes the group.
func (c *column) append(dst []byte, more, scaled bool) []byte {
	h := uint64(len(c.zigzags)) << 1
	if more {
		h |= 1
	}
	dst = binary.AppendUvarint(dst, h)
	if len(c.zigzags) == 0 {
		return dst
	}
	w := uint(bits.Len64(c.union))
	low, v := c.low, uint(0)
	if c.high < c.low {
		low = 0
	} else {
		v = uint(bits.Len8(c.high - c.low))
	}
	width := byte(w)
	if c.rares > 0 {
		width |= 0x80
	}
	dst = append(dst, width)
	if scaled {
		dst = append(dst, low|byte(v)<<5)
	}
	if c.rares > 0 {
		dst = append(binary.AppendUvarint(dst, c.rares), c.rare...)
	}
	p := bin.NewPacker(dst)
	bin.PutAbove(&p, c.zigzags, 0, w)
	if v > 0 {
		if c.rares > 0 {
			for i, scale := range c.scales {
				if scale > lexical.MaxScale {
					c.scales[i] = low
				}
			}
		}
		bin.PutAbove(&p, c.scales, low, v)
	}
	return p.Finish()
}

// room is how many rows the group can have so that it fits n bytes, a further row may be an
// exception, and nothing is over items.MaxColumn.
func (c *column) room(n int) int {
	const header, perRow = 16, 64 + 5
	n -= header + len(c.rare) + maxException + 4
	return max(0, min(n*8/perRow, items.MaxColumn))
}

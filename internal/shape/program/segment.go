package program

import (
	"encoding/binary"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/items"
)

// segmenter packs items into segments of at most max bytes (wire-format section 10).
type segmenter struct {
	max  int
	emit func(text bool, segment []byte) error
	err  error

	begun bool // a segment was handed out
	rare  int  // values whose text is not the canonical one of their type
	seg   []byte
	bitAt int // place of the bit byte in seg, -1: none
	bitN  uint8
	loops []splitLoop
}

// splitLoop is an array being split.
type splitLoop struct {
	pc       int32
	rows     uint64
	headerAt int // place of the open group's byte in seg, -1: a group must begin before the next row
	group    uint8
	from     int64 // where in the message the row began
}

func (g *segmenter) reset(most int, emit func(text bool, segment []byte) error) {
	g.max, g.emit, g.err, g.rare, g.begun = most-1, emit, nil, 0, false // one byte for what finish appends
	g.seg, g.loops, g.bitAt = g.seg[:0], g.loops[:0], -1
}

// ensure makes room for an item of n bytes.
func (g *segmenter) ensure(n int) {
	if len(g.seg)+n > g.max {
		g.flush()
	}
}

// finish closes the segment's groups: those of unfinished arrays count the row that is being split
// and promise another. Its last byte tells how many bits of the last bit byte are used.
func (g *segmenter) finish() {
	used := g.bitN
	if g.bitAt < 0 {
		used = 0
	}
	g.seg = append(g.seg, used)
	g.bitAt = -1
	for i := range g.loops {
		if l := &g.loops[i]; l.headerAt >= 0 {
			g.seg[l.headerAt] = l.group | 0x80
			l.headerAt = -1
		}
	}
}

// flush ends a segment that others will follow, and hands it out.
func (g *segmenter) flush() {
	g.finish()
	g.out()
}

// out hands the segment out, even if it is empty.
func (g *segmenter) out() {
	g.begun = true
	if g.err == nil {
		g.err = g.emit(false, g.seg)
	}
	g.seg = g.seg[:0]
}

// bits appends an item of n bits, all in one segment.
func (g *segmenter) bits(v uint32, n uint8) {
	g.ensure(int(n+7) / 8)
	if g.bitAt < 0 {
		g.bitN = 8
	}
	for {
		if g.bitN < 8 {
			g.seg[g.bitAt] |= byte(v << g.bitN)
			if n <= 8-g.bitN {
				g.bitN += n
				return
			}
			v >>= 8 - g.bitN
			n -= 8 - g.bitN
		}
		g.seg = append(g.seg, 0)
		g.bitAt, g.bitN = len(g.seg)-1, 0
	}
}

func (g *segmenter) uvarint(u uint64) {
	g.ensure(binary.MaxVarintLen64)
	g.seg = binary.AppendUvarint(g.seg, u)
}

// textItem appends the end of a value's text, in pieces if it does not fit.
func (g *segmenter) textItem(b []byte) {
	g.ensure(4)
	if len(b) <= g.max/8 {
		g.ensure(len(b) + 3) // whole: a segment with a text in pieces is not packed
	}
	for len(b) > g.max-len(g.seg)-3 && g.err == nil {
		b = b[g.textPiece(b):]
		g.ensure(4)
	}
	g.seg = binary.AppendUvarint(g.seg, uint64(len(b))+1)
	g.seg = append(g.seg, b...)
}

// textPiece appends a piece of a value's text to which more will be added, as much as fits the
// segment, and ends the segment when that is full.
func (g *segmenter) textPiece(b []byte) int {
	const overhead, least = 4, 64
	n := min(len(b), g.max-len(g.seg)-overhead)
	if n < least && n < len(b) {
		g.flush()
		n = min(len(b), g.max-overhead)
	}
	g.seg = append(g.seg, 0)
	g.seg = bin.AppendBytes(g.seg, b[:n])
	return n
}

// row begins a row of the innermost array, in its group or a new one.
func (g *segmenter) row() {
	l := &g.loops[len(g.loops)-1]
	if l.headerAt >= 0 && l.group == items.MaxGroup {
		g.seg[l.headerAt] = items.MaxGroup | 0x80
		l.headerAt = -1
	}
	if l.headerAt < 0 {
		g.ensure(1)
		g.seg = append(g.seg, 0)
		l.headerAt, l.group = len(g.seg)-1, 0
	}
	l.group++
	l.rows++
}

// endRows ends the innermost array.
func (g *segmenter) endRows() {
	l := &g.loops[len(g.loops)-1]
	if l.headerAt >= 0 {
		g.seg[l.headerAt] = l.group
	} else {
		g.ensure(1)
		g.seg = append(g.seg, 0)
	}
	g.loops = g.loops[:len(g.loops)-1]
}

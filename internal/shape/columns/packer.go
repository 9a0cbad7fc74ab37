package columns

import (
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// packer writes the columns of one segment (wire-format sections 11.2 to 11.5).
type packer struct {
	gather gatherer
	w      packWriter
	memory *Memory
	recall *recall
	time   timeline
	rows   int     // of the column before, in this segment
	beside []int64 // the column of numbers before, in this segment
	room   []uint64
	dict   dictionary
	fresh  []fresh
	gaps   [2][]byte // room for those of a memory
}

func (e *packer) octets(o *code.Op, b, before []byte) {
	w := &e.w
	if !o.IsUUID() && !w.flag(len(b) == len(before)) {
		w.uvarint(uint64(len(b)))
	}
	w.out = append(w.out, b...)
}

// packed is room for n values.
func (e *packer) packed(n int) []uint64 {
	e.room = slices.Grow(e.room[:0], n)[:n]
	return e.room
}

// putAbove packs what values are above base.
func putAbove[T int64 | uint64 | uint16](w *packWriter, values []T, base T, width uint) {
	p := bin.NewPacker(w.out)
	bin.PutAbove(&p, values, base, width)
	w.out = p.Finish()
}

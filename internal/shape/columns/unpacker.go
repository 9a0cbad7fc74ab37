package columns

import (
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// Unpacker is the other way of a [Packer]. It allocates nothing once its buffers have grown. Not
// safe for concurrent use.
type Unpacker struct {
	// Bill is what places cost in the segments that follow; nil: nobody asks.
	Bill *Bill

	r      packReader
	out    packWriter // the segment
	start  int        // of it in out
	most   int
	p      *code.Code
	walk   *position
	memory *Memory
	recall *recall
	time   timeline
	rows   int
	room   int // how many values columns may still announce
	beside []int64
	values []uint64
	arena  []byte // texts that are not in the packed segment as they are
	at     []int32
	leaves []given
	used   int
	flat   [code.MaxFlat]flatItem[given]
	skip   gatherer
	fresh  []fresh
}

// given is a column that was read.
type given struct {
	leaf
	n, next int
	one     bool // all values are the first
	place   int32
}

func (u *Unpacker) fail(what string) error {
	u.r.Fail(what)
	return u.r.Err
}

// index is the place of the value i.
func (g *given) index(i int) int {
	if g.one {
		return 0
	}
	return i
}

// place is what is remembered of the place at hand.
func (u *Unpacker) place() *place { return &u.recall.places[u.p.Steps()[u.walk.pc].Place] }

// minutes reads the offset of a time.
func (u *Unpacker) minutes() int32 {
	v := u.r.zigzag()
	if v != int64(int32(v)) {
		u.r.Fail("offset of a time")
	}
	return int32(v)
}

// packed takes n values of a width into room.
func (u *Unpacker) packed(n int, width uint) []uint64 {
	u.values = takeAbove(u, u.values[:0], n, 0, width)
	return u.values
}

// takeAbove appends n values of a width to dst, each as much above base; after a failure none.
func takeAbove[T int64 | uint64 | uint16](u *Unpacker, dst []T, n int, base T, width uint) []T {
	if width > 64 {
		u.r.Fail("width over 64")
	}
	octets := u.r.Take(uint64(bin.PackedLen(n, int(width))))
	if u.r.Err != nil {
		return dst
	}
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	values := bin.NewUnpacker(octets)
	bin.TakeAbove(&values, dst[from:], base, width)
	return dst
}

// reserve makes room for n bytes of text; false: there is none.
func (u *Unpacker) reserve(n uint64) bool {
	if u.r.Err != nil || n > uint64(u.most-len(u.arena)) {
		u.r.Fail("texts longer than a fragment")
		return false
	}
	return true
}

func (u *Unpacker) add(b []byte) {
	if u.reserve(uint64(len(b))) {
		u.arena = append(u.arena, b...)
	}
}

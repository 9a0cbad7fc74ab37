package columns

import (
	"encoding/binary"
	"math/bits"

	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// leaf is a column: the fields of one place inside arrays.
type leaf struct {
	n     int
	kind  uint16   // the first; all, if kinds is empty
	kinds []uint16 // all
	nums  []int64
	str   []byte   // the first; all, if strs is empty
	strs  [][]byte // all
}

func (l *leaf) reset() { l.n, l.kinds, l.nums, l.strs = 0, l.kinds[:0], l.nums[:0], l.strs[:0] }

func (l *leaf) addKind(v uint16) {
	if len(l.kinds) > 0 {
		l.kinds = append(l.kinds, v)
	} else if v != l.kind || l.n == 0 {
		l.otherKind(v)
	}
	l.n++
}

// otherKind notes the first kind, or the first that is not as those before.
func (l *leaf) otherKind(v uint16) {
	if l.n == 0 {
		l.kind = v
		return
	}
	for range l.n {
		l.kinds = append(l.kinds, l.kind)
	}
	l.kinds = append(l.kinds, v)
}

// addAgain adds the string that was added last.
func (l *leaf) addAgain() {
	if len(l.strs) > 0 {
		l.strs = append(l.strs, l.strs[len(l.strs)-1])
	}
	l.n++
}

func (l *leaf) addNumber(v int64) {
	l.nums = append(l.nums, v)
	l.n++
}

func (l *leaf) addString(b []byte) {
	switch {
	case l.n == 0:
		l.str = b
	case len(l.strs) > 0:
		l.strs = append(l.strs, b)
	case string(b) != string(l.str):
		for range l.n {
			l.strs = append(l.strs, l.str)
		}
		l.strs = append(l.strs, b)
	}
	l.n++
}

// Methods of a column (wire-format section 11.4).
const (
	columnSame = iota // all as expected
	columnOne         // all the same
	columnPacked
	columnList

	numbersSteady  = 0 // all as expected
	numbersSlot    = 1 // in the range of the column before at this place
	numbersRange   = 2
	numbersSteps   = 3
	numbersFew     = 4
	numbersBeside  = 5
	numbersAligned = 6
)

// bounds is the smallest and largest of some numbers.
type bounds struct{ low, high int64 }

func (s bounds) with(v int64) bounds { return bounds{min(s.low, v), max(s.high, v)} }

// width is that of the differences to the lowest.
func (s bounds) width() uint { return uint(bits.Len64(uint64(s.high) - uint64(s.low))) }

// alignment brings the decimals of a column to the largest scale among them: 2.5 beside 1.25 is
// 2.50. Values that are no numbers are left out.
type alignment struct {
	kinds []uint16
	most  uint16 // the kind of the largest scale
	all   bounds // of the numbers, aligned
}

// alignmentOf tells how the numbers behind some kinds are aligned; false: all have the same scale
// already, or some are no plain decimals.
func alignmentOf(kinds []uint16) (a alignment, ok bool) {
	least := uint16(1 + lexical.MaxScale)
	for _, k := range kinds {
		if k > 1+lexical.MaxScale {
			return a, false
		}
		if k > 0 {
			least, a.most = min(least, k), max(a.most, k)
		}
	}
	a.kinds = kinds
	return a, least < a.most
}

// factor is by what the next number is multiplied; 0: there is no further one.
func (a *alignment) factor() int64 {
	for i, k := range a.kinds {
		if k > 0 {
			a.kinds = a.kinds[i+1:]
			return int64(lexical.Powers[a.most-k])
		}
	}
	return 0
}

// flatItem is a place in such a row, with its columns: those that are gathered, or that were read.
type flatItem[column any] struct {
	pc            int32
	item          code.Item
	kinds, values *column
	latest        []byte // the item of the row before, as it stands in the segment, if it is a text
}

// flatItems gives the items of the rows of the array o, none if they are not of that sort. at has
// for each place and sub one more than the index of its column, 0 if there is none yet.
func flatItems[column any](
	p *code.Code, o *code.Op, at []int32, columns []column, room *[code.MaxFlat]flatItem[column],
) []flatItem[column] {
	list := p.Flat(o.A)
	for i, pc := range list {
		at, f := at[int(pc)*int(subs):][:subs], &room[i]
		f.pc, f.item, f.kinds, f.values, f.latest = pc, p.Steps()[pc].Item, nil, nil, nil
		values := subNumber
		switch f.item {
		case code.ItemText:
			values = subText
		case code.ItemBoolean:
			values = subKind
		}
		if k := at[subKind]; k > 0 {
			f.kinds = &columns[k-1]
		}
		if v := at[values]; v > 0 {
			f.values = &columns[v-1]
		}
	}
	return room[:len(list)]
}

// same reports whether two texts of the same length are equal; most are short, and compared at
// three looks.
func same(a, b []byte) bool {
	n := len(b)
	if n < 8 || n > 24 {
		return string(a) == string(b)
	}
	i, j := min(8, n-8), n-8
	return binary.LittleEndian.Uint64(a) == binary.LittleEndian.Uint64(b) &&
		binary.LittleEndian.Uint64(a[i:]) == binary.LittleEndian.Uint64(b[i:]) &&
		binary.LittleEndian.Uint64(a[j:]) == binary.LittleEndian.Uint64(b[j:])
}

package columns

import (
	"math/bits"
	"sync"
)

// seen is an entry of a ring.
type seen struct {
	text [longestRef]byte
	size uint8
}

func (e *seen) bytes() []byte { return e.text[:e.size] }

// is reports whether the entry is b, of which the first eight bytes are the same.
func (e *seen) is(b []byte) bool {
	return int(e.size) == len(b) && (len(b) <= 8 || string(e.text[8:e.size]) == string(b[8:]))
}

const ringChunk = 128

// ring has texts that were seen, numbered in the order they came; of more than most, a power of
// two, the oldest go.
type ring struct {
	chunks [maxWords / ringChunk]*[ringChunk]seen
	len    int // entries there are
	count  int // entered so far
}

var chunks = sync.Pool{New: func() any { return new([ringChunk]seen) }}

func (t *ring) at(i int) *seen { return &t.chunks[i/ringChunk%len(t.chunks)][i%ringChunk] }

// numberBits is the width of the number of an entry.
func (t *ring) numberBits() uint { return uint(bits.Len(uint(max(t.len-1, 0)))) }

// enter notes a text of 3 to 40 bytes; others are of no use. It gives the number of the entry, -1
// for those.
func (t *ring) enter(b []byte, most int) int {
	if len(b) < shortestRef || len(b) > longestRef {
		return -1
	}
	i := t.count & (most - 1)
	if i == t.len {
		if i%ringChunk == 0 {
			t.chunks[i/ringChunk] = chunks.Get().(*[ringChunk]seen)
		}
		t.len++
	}
	t.count++
	e := t.at(i)
	e.size = uint8(copy(e.text[:], b))
	return i
}

// free gives the room back, without what is in it.
func (t *ring) free() {
	for i := 0; i < t.len; i += ringChunk {
		c := t.chunks[i/ringChunk]
		clear(c[:min(t.len-i, ringChunk)])
		chunks.Put(c)
	}
	*t = ring{}
}

// wayBits are the bits of a place in an index.
const wayBits = 16

// index finds the entries of a ring again, what was pushed out of its set or of the ring excepted.
type index struct{ *table }

// table has sets of four places, by hash, in which the latest is the lowest. A place is the number
// of an entry, and above it bits of the hash.
type table struct {
	sets  []uint64
	heads []uint64 // of entries, their first eight bytes
	size  int      // place in tableSizes
}

// tableSizes are how many entries and sets there may be.
var (
	tableSizes = [...]struct{ entries, sets int }{{64, 128}, {maxTexts, 2 * maxTexts}, {maxWords, maxWords}}
	tables     [len(tableSizes)]sync.Pool
)

// find gives the number of an entry that is b, of which head are the first eight bytes and hash is
// the hash; -1 if none was found. most is that of the ring.
func (x *index) find(t *ring, b []byte, head, hash uint64, most int) int {
	if x.table == nil {
		return -1
	}
	number := uint64(most - 1)
	for set := x.sets[hash&uint64(len(x.sets)-1)]; set != 0; set >>= wayBits {
		if (set^hash>>wayBits)&^number&(1<<wayBits-1) != 0 {
			continue
		}
		// words have no zeros in them
		i := int(set & number)
		if i < len(x.heads) && x.heads[i] == head && (len(b) < 8 && most == maxWords || t.at(i).is(b)) {
			return i
		}
	}
	return -1
}

// add has the entry i, which is b and was entered last, found from now on.
func (x *index) add(t *ring, i int, b []byte, hash uint64, most int) {
	if x.table == nil || t.len > len(x.heads) {
		x.grow(t, most)
	}
	x.put(i, load8(b, 0), hash, most)
}

func (x *table) put(i int, head, hash uint64, most int) {
	x.heads[i] = head
	set := &x.sets[hash&uint64(len(x.sets)-1)]
	*set = *set<<wayBits | (hash>>wayBits&^uint64(most-1)|uint64(i))&(1<<wayBits-1)
}

// grow makes room for all entries, and adds them again, but for the latest.
func (x *index) grow(t *ring, most int) {
	size := 0
	if x.table != nil {
		size = x.size + 1
	}
	x.free()
	if x.table, _ = tables[size].Get().(*table); x.table == nil {
		x.table = &table{make([]uint64, tableSizes[size].sets), make([]uint64, tableSizes[size].entries), size}
	}
	for i := range t.len - 1 {
		b := t.at(i).bytes()
		head := load8(b, 0)
		x.put(i, head, hashText(head, b), most)
	}
}

// free gives the room back, without what is in it.
func (x *index) free() {
	if x.table != nil {
		clear(x.sets)
		clear(x.heads)
		tables[x.size].Put(x.table)
		x.table = nil
	}
}

// golden is the multiplier of Fibonacci hashing.
const golden = 0x9E3779B97F4A7C15

// hashText is the hash of a text of at least one byte, whose first eight are head.
func hashText(head uint64, b []byte) uint64 {
	h := fold(head ^ uint64(len(b)))
	for i := 8; i < len(b); i += 8 {
		h = fold(h ^ load8(b, i))
	}
	return h
}

// fold mixes all bits into all.
func fold(v uint64) uint64 {
	high, low := bits.Mul64(v, golden)
	return high ^ low
}

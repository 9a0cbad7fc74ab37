package columns

import (
	"math/bits"

	"github.com/hhfr/hhfr/internal/reuse"
)

// ring has texts that were seen, numbered in the order they came; of more than most, a power of
// two, the oldest go.
type ring struct {
	*ringRoom     // nil: it is empty
	next      int // place of the next text
	octets    int // of all texts
	len       int // entries there are
	count     int // entered so far
}

// ringRoom is where the texts of a ring lie, one behind the other, and from the beginning again
// where the oldest are gone.
type ringRoom struct {
	entries []uint32 // place and size of each text
	text    []byte
	size    int // place in ringRooms
}

// sizeBits are the bits of the size of a text in an entry, below its place.
const sizeBits = 6

// ringRooms are of growing sizes: most memories have a few short words. The largest has all that a
// ring can have; what is lost at its end, as no text lies there in part, is shorter than one.
var ringRooms [10]reuse.Spares[ringRoom]

func newRingRoom(size int) *ringRoom {
	if r := ringRooms[size].Get(); r != nil {
		return r
	}
	const least, average, largest = 16, 12, (maxWords + 2) * longestRef
	return &ringRoom{make([]uint32, min(least<<size, maxWords)), make([]byte, min(least*average<<size, largest)), size}
}

// at gives the text of an entry, which holds until the next is entered.
func (t *ring) at(i int) []byte {
	e := t.entries[i]
	return t.text[e>>sizeBits:][:e&(1<<sizeBits-1)]
}

// weight is what the entries count for.
func (t *ring) weight() int { return t.octets + entryWeight*t.len }

// numberBits is the width of the number of an entry.
func (t *ring) numberBits() uint { return uint(bits.Len(uint(max(t.len-1, 0)))) }

// enter notes a text of 3 to 40 bytes; others are of no use. It gives the number of the entry, -1
// for those.
func (t *ring) enter(b []byte, most int) int {
	if len(b) < shortestRef || len(b) > longestRef {
		return -1
	}
	i := t.count & (most - 1)
	at, fits := t.room(i, len(b))
	for !fits {
		t.grow(i)
		at, fits = t.room(i, len(b))
	}
	if i < t.len {
		t.octets -= len(t.at(i))
	}
	t.octets += len(b)
	t.entries[i] = uint32(at<<sizeBits | copy(t.text[at:], b))
	t.next = at + len(b)
	t.len = max(t.len, i+1)
	t.count++
	return i
}

// room gives the place for a text of n bytes, which is to be the entry i, in place of the oldest if
// there is one.
func (t *ring) room(i, n int) (at int, fits bool) {
	switch {
	case t.ringRoom == nil || i >= len(t.entries):
		return 0, false
	case i == t.len:
		return t.next, t.next+n <= len(t.text)
	}
	oldest := int(t.entries[(i+1)%t.len] >> sizeBits)
	switch {
	case t.next < oldest:
		return t.next, t.next+n <= oldest
	case t.next == oldest:
		return 0, false
	case t.next+n <= len(t.text):
		return t.next, true
	}
	return 0, n <= oldest
}

// grow makes room for more, without the entry i.
func (t *ring) grow(i int) {
	if t.ringRoom == nil {
		t.ringRoom = newRingRoom(0)
		return
	}
	larger, to := newRingRoom(t.size+1), 0
	for k := range t.len {
		if k = (i + k) % t.len; k == i {
			continue
		}
		b := t.at(k)
		larger.entries[k] = uint32(to<<sizeBits | len(b))
		to += copy(larger.text[to:], b)
	}
	t.giveBack()
	t.ringRoom, t.next = larger, to
}

// giveBack gives the room to others, without what is in it.
func (t *ring) giveBack() {
	if t.ringRoom != nil {
		clear(t.text)
		ringRooms[t.size].Put(t.ringRoom)
	}
}

// free empties the ring.
func (t *ring) free() {
	t.giveBack()
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
	tableSizes = [...]struct{ entries, sets int }{{16, 32}, {64, 128}, {maxTexts, 2 * maxTexts}, {maxWords, maxWords}}
	tables     [len(tableSizes)]reuse.Spares[table]
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
		if i < len(x.heads) && x.heads[i] == head && (len(b) < 8 && most == maxWords || string(t.at(i)) == string(b)) {
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
	if x.table = tables[size].Get(); x.table == nil {
		x.table = &table{make([]uint64, tableSizes[size].sets), make([]uint64, tableSizes[size].entries), size}
	}
	for i := range t.len - 1 {
		b := t.at(i)
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

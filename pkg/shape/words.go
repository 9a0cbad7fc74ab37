package shape

import (
	"encoding/binary"
	"math/bits"
	"sync"
)

const (
	maxWords = 1 << 11
	maxTexts = 1 << 8
	// shortestRef and longestRef bound what is entered, in octets.
	shortestRef = 3
	longestRef  = 40
)

// seen is an entry of a ring.
type seen struct {
	text [longestRef]byte // filled up with zeros to eight octets at least
	size uint8
}

func (e *seen) bytes() []byte { return e.text[:e.size] }

// is tells whether the entry is b, of which head are the first eight octets.
func (e *seen) is(b []byte, head uint64) bool {
	return binary.LittleEndian.Uint64(e.text[:]) == head && int(e.size) == len(b) && (len(b) <= 8 || string(e.text[8:e.size]) == string(b[8:]))
}

const ringChunk = 128

// ring has texts that were seen, numbered in the order they came; of more than most, a power of two, the oldest go.
type ring struct {
	chunks [maxWords / ringChunk]*[ringChunk]seen
	len    int // entries there are
	count  int // entered so far
}

var chunks = sync.Pool{New: func() any { return new([ringChunk]seen) }}

func (t *ring) at(i int) *seen { return &t.chunks[i/ringChunk%len(t.chunks)][i%ringChunk] }

// numberBits is the width of the number of an entry.
func (t *ring) numberBits() uint { return uint(bits.Len(uint(max(t.len-1, 0)))) }

// enter notes a text of 3 to 40 octets; others are of no use. It gives the number of the entry, -1 for those.
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
	*(*[8]byte)(e.text[:]) = [8]byte{}
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

// index finds the entries of a ring again: a table of sets of four places, by hash, in which the latest is the lowest. A place is the number of an entry, and above it bits of the hash. What was
// pushed out of its set, or of the ring, is not found; what is found is compared. There are at least as many sets as entries.
type index struct{ *sets }

type sets []uint64

// indexSizes are how many sets there may be.
var (
	indexSizes = [...]int{128, 2 * maxTexts, maxWords}
	indices    [len(indexSizes)]sync.Pool
)

// find gives the number of an entry that is b, of which head are the first eight octets and hash is the hash; -1 if none was found. most is that of the ring.
func (x *index) find(t *ring, b []byte, head, hash uint64, most int) int {
	if x.sets == nil {
		return -1
	}
	sets, number := *x.sets, uint64(most-1)
	for set := sets[hash&uint64(len(sets)-1)]; set != 0; set >>= wayBits {
		if (set^hash>>wayBits)&^number&(1<<wayBits-1) != 0 {
			continue
		}
		if i := int(set & number); i < t.len && t.at(i).is(b, head) {
			return i
		}
	}
	return -1
}

// add has the entry i, of which hash is the hash, found from now on; it was entered last.
func (x *index) add(t *ring, i int, hash uint64, most int) {
	if x.sets == nil || min(2*t.len, maxWords) > len(*x.sets) {
		x.grow(t, most)
	}
	x.sets.put(i, hash, most)
}

func (s sets) put(i int, hash uint64, most int) {
	set := &s[hash&uint64(len(s)-1)]
	*set = *set<<wayBits | (hash>>wayBits&^uint64(most-1)|uint64(i))&(1<<wayBits-1)
}

// grow makes room for all entries, which it adds again, but for the latest.
func (x *index) grow(t *ring, most int) {
	x.free()
	for i, n := range indexSizes {
		if n < min(2*t.len, maxWords) {
			continue
		}
		if x.sets, _ = indices[i].Get().(*sets); x.sets == nil {
			s := make(sets, n)
			x.sets = &s
		}
		clear(*x.sets)
		break
	}
	for i := range t.len - 1 {
		b := t.at(i).bytes()
		x.sets.put(i, hashText(load8(b, 0), b), most)
	}
}

// free gives the room back.
func (x *index) free() {
	for i, n := range indexSizes {
		if x.sets != nil && n == len(*x.sets) {
			indices[i].Put(x.sets)
		}
	}
	x.sets = nil
}

// load8 gives the octets at i of b, as many as there are up to eight, the first as the lowest.
func load8(b []byte, i int) (w uint64) {
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	if len(b) >= 8 {
		return binary.LittleEndian.Uint64(b[len(b)-8:]) >> (8 * uint(i+8-len(b)))
	}
	for k := len(b) - 1; k >= i; k-- {
		w = w<<8 | uint64(b[k])
	}
	return w
}

// golden is the multiplier of Fibonacci hashing.
const golden = 0x9E3779B97F4A7C15

// hashText is the hash of a text of at least one octet, whose first eight are head.
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

// isWord tells the octets that words are made of.
func isWord(c byte) bool { return alnumOf[c] > 0 || c >= 0x80 }

// notWords has bit 7 of each octet that is no part of a word.
func notWords(w uint64) uint64 {
	const low = 0x7f * ones
	digits, letters, line := w&low, (w|0x20*ones)&low, (w^'_'*ones)&low
	return ^(w | (digits+(0x80-'0')*ones)&^(digits+(0x7f-'9')*ones) | (letters+(0x80-'a')*ones)&^(letters+(0x7f-'z')*ones) | ^(line + low)) & (0x80 * ones)
}

// leadingWord gives the length of the word that b begins with, and its first eight octets with zeros behind it.
func leadingWord(b []byte) (n int, head uint64) {
	head = load8(b, 0)
	const low = 0x7f * ones
	others := head | (head&low + (0x7f-'z')*ones) | ^(head&low + (0x80-'a')*ones) // bit 7: not a to z
	if others &= 0x80 * ones; others == 0 {
		n = 8
	} else if n = bits.TrailingZeros64(others) >> 3; n == len(b) || !isWord(b[n]) {
		return n, head & (1<<(8*uint(n)) - 1)
	} else if ends := notWords(head); ends != 0 {
		n = bits.TrailingZeros64(ends) >> 3
		return n, head & (1<<(8*uint(n)) - 1)
	}
	for n = 8; n < len(b); n += 8 {
		if ends := notWords(load8(b, n)); ends != 0 {
			return n + bits.TrailingZeros64(ends)>>3, head
		}
	}
	return min(n, len(b)), head
}

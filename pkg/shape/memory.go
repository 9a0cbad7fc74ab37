package shape

import "math/bits"

// MaxMemory bounds what a [Memory] holds beside words and texts, in octets as it counts them (wire-format section 11.6).
const MaxMemory = 96 << 10

const (
	// placeWeight is what a place of a shape counts for, in octets.
	placeWeight = 64
	// maxPlaces is how many places a shape may have that is remembered.
	maxPlaces = 1024
	// maxRecalled bounds a text or an octet string that is remembered as the one before, in octets.
	maxRecalled = 4096
)

// Memory is what one direction of a lane, or a message in fragments, remembers from segment to segment (wire-format section 11.6). Both ends hold the same. The zero value is
// empty. Not safe for concurrent use.
type Memory struct {
	shapes map[Fingerprint]*recall
	latest *recall
	weight int
	words  ring      // words, at most maxWords
	texts  ring      // texts of more than one word, at most maxTexts
	step   int64     // of the text that was counted on last
	gaps   [2][]byte // the latest between two words, and another that was before it
	// careful: sending, a segment turned out not to be packed when part of it was noted already. Those that follow are looked through before.
	careful bool
}

// recall is what is remembered of the places of a shape.
type recall struct {
	fp     Fingerprint
	places []place
}

// place is what is remembered of one place.
type place struct {
	kind         uint16
	known        bool // number is one that was there
	width        uint8
	minutes      int32
	number       int64 // the latest
	step, stride int64 // how far it is from the one before; what is expected of the next
	base         int64 // with width: the range of the column before
	octets       []byte
}

// Reset forgets everything, and gives the room back.
func (m *Memory) Reset() { *m = Memory{careful: m.careful} }

// Drop forgets everything, and has the next packed segment tell that.
func (m *Memory) Drop() { *m = Memory{weight: MaxMemory + 1, careful: m.careful} }

// full tells that the memory must be reset before a further segment.
func (m *Memory) full() bool { return m.weight > MaxMemory }

// of gives what is remembered of a shape.
func (m *Memory) of(p *Program) *recall {
	fp := p.shape.Fingerprint()
	if m.latest != nil && m.latest.fp == fp {
		return m.latest
	}
	r := m.shapes[fp]
	if r == nil {
		r = &recall{fp: fp, places: make([]place, p.pack.places)}
		for i := range r.places {
			r.places[i].kind = 1
		}
		if p.pack.places > maxPlaces {
			return r
		}
		if m.shapes == nil {
			m.shapes = map[Fingerprint]*recall{}
		}
		m.weight += placeWeight * p.pack.places
		m.shapes[fp] = r
	}
	m.latest = r
	return r
}

// forgo takes the weight back that a segment of a shape added which is not remembered.
func (m *Memory) forgo(p *Program, before int) {
	if p.pack.places > maxPlaces {
		m.weight = before
	}
}

// keep has a text or octet string remembered; one that is too long leaves an empty one.
func (m *Memory) keep(p *place, b []byte) {
	if len(b) > maxRecalled {
		b = nil
	}
	m.weight += len(b) - len(p.octets)
	p.octets = append(p.octets[:0], b...)
}

const (
	maxWords    = 2048
	maxTexts    = 256
	shortestRef = 3
	longestRef  = 40
	ringChunk   = 128
)

// ring has texts that were seen, numbered in the order they came; of more than most the oldest go.
type ring struct {
	count  int // entered so far
	chunks []*[ringChunk]seen
	heads  []uint16 // by hash: 1 + the number of the latest
}

type seen struct {
	next uint16
	hash uint16
	size uint8
	text [longestRef]byte
}

func (t *ring) at(i int) *seen { return &t.chunks[i/ringChunk][i%ringChunk] }

func (w *seen) bytes() []byte { return w.text[:w.size] }

// len is how many entries there are.
func (t *ring) len(most int) int { return min(t.count, most) }

// numberBits is the width of the number of an entry.
func (t *ring) numberBits(most int) uint { return uint(bits.Len(uint(max(t.len(most)-1, 0)))) }

func hashText(b []byte) uint16 {
	h := uint32(2166136261)
	for _, c := range b {
		h = (h ^ uint32(c)) * 16777619
	}
	return uint16(h ^ h>>16)
}

// find gives the number of an entry, -1 if there is none.
func (t *ring) find(b []byte) int {
	if t.heads == nil || len(b) < shortestRef || len(b) > longestRef {
		return -1
	}
	for i := int(t.heads[int(hashText(b))%len(t.heads)]) - 1; i >= 0; {
		w := t.at(i)
		if string(w.bytes()) == string(b) {
			return i
		}
		i = int(w.next) - 1
	}
	return -1
}

// enter notes a text, unless it is there or of no use.
func (t *ring) enter(b []byte, most int) {
	if len(b) < shortestRef || len(b) > longestRef || t.find(b) >= 0 {
		return
	}
	if t.heads == nil {
		t.heads = make([]uint16, most)
	}
	i := t.count % most
	if i/ringChunk == len(t.chunks) {
		t.chunks = append(t.chunks, new([ringChunk]seen))
	}
	w := t.at(i)
	if t.count >= most {
		t.unlink(i, w)
	}
	t.count++
	w.hash = hashText(b)
	w.size = uint8(copy(w.text[:], b))
	head := &t.heads[int(w.hash)%most]
	w.next = *head
	*head = uint16(i + 1)
}

func (t *ring) unlink(i int, w *seen) {
	at := &t.heads[int(w.hash)%len(t.heads)]
	for int(*at)-1 != i {
		at = &t.at(int(*at) - 1).next
	}
	*at = w.next
}

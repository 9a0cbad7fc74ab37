package fastinfoset

import "hash/maphash"

// interned is a table of a writer: texts with their places. It has its own memory, which reset uses
// again.
type interned struct {
	text  []byte
	ends  []int    // of each text
	slots []uint32 // places plus one by hash, a power of two; at most half are in use
}

var seed = maphash.MakeSeed()

func (t *interned) reset() {
	t.text, t.ends = t.text[:0], t.ends[:0]
	clear(t.slots)
}

func (t *interned) at(place int) []byte {
	from := 0
	if place > 0 {
		from = t.ends[place-1]
	}
	return t.text[from:t.ends[place]]
}

// slot is that of a text: empty, or with its place.
func (t *interned) slot(b []byte) int {
	mask := len(t.slots) - 1
	at := int(maphash.Bytes(seed, b)) & mask
	for t.slots[at] != 0 && string(t.at(int(t.slots[at]-1))) != string(b) {
		at = (at + 1) & mask
	}
	return at
}

// find returns the place of a text.
func (t *interned) find(b []byte) (place int, ok bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	place = int(t.slots[t.slot(b)]) - 1
	return place, place >= 0
}

// add appends an entry, unless the table is full. If it is there already, the first is found.
func (t *interned) add(b []byte) {
	if len(t.ends) >= maxIndex {
		return
	}
	t.text = append(t.text, b...)
	t.ends = append(t.ends, len(t.text))
	if 2*len(t.ends) > len(t.slots) {
		t.slots = make([]uint32, max(32, 2*len(t.slots)))
		for place := range t.ends {
			t.put(place)
		}
		return
	}
	t.put(len(t.ends) - 1)
}

func (t *interned) put(place int) {
	if at := t.slot(t.at(place)); t.slots[at] == 0 {
		t.slots[at] = uint32(place + 1)
	}
}

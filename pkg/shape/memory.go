package shape

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
	words  ring      // at most maxWords
	texts  ring      // at most maxTexts
	step   int64     // of the text that was counted on last
	gaps   [2][]byte // the latest between two words, and another that was before it
	// wordsAt and textsAt are for the sending end: the other reads numbers.
	wordsAt, textsAt index
	// careful: sending, a segment turned out not to be packed when part of it was noted already. Those that follow are looked through before.
	careful bool
}

// recall is what is remembered of the places of a shape.
type recall struct {
	program *Program // the latest of the shape
	places  []place
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
func (m *Memory) Reset() {
	m.words.free()
	m.texts.free()
	*m = Memory{careful: m.careful}
}

// Drop forgets everything, and has the next packed segment tell that.
func (m *Memory) Drop() {
	m.Reset()
	m.weight = MaxMemory + 1
}

// full tells that the memory must be reset before a further segment.
func (m *Memory) full() bool { return m.weight > MaxMemory }

// of gives what is remembered of a shape.
func (m *Memory) of(p *Program) *recall {
	if m.latest != nil && m.latest.program == p {
		return m.latest
	}
	fp := p.shape.Fingerprint()
	r := m.shapes[fp]
	if r == nil {
		r = &recall{places: make([]place, p.pack.places)}
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
	r.program, m.latest = p, r
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

package wire

import (
	"math/bits"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/transit"
)

const (
	// sketchBits is the size of a sketch; shapes have some hundred to some thousand octets.
	sketchBits = 4096
	// gram is how many octets a sketch looks at together.
	gram = 8
)

// sketch is a set of the grams of a serialization: what two sketches share tells how alike two
// shapes are.
type sketch [sketchBits / 64]uint64

func sketchOf(octets []byte) *sketch {
	s := new(sketch)
	var h uint64
	for i, c := range octets {
		h = h<<8 | uint64(c)
		if i >= gram-1 {
			k := h * 0x9E3779B97F4A7C15 >> 52 // 12 bits: Knuth's multiplicative hash
			s[k/64] |= 1 << (k % 64)
		}
	}
	return s
}

func (s *sketch) shared(t *sketch) (n int) {
	for i := range s {
		n += bits.OnesCount64(s[i] & t[i])
	}
	return n
}

// bases are the shapes announced in full last in one direction that are small when packed: both
// ends have the same (wire-format section 4.1). Only one goroutine uses them.
type bases struct {
	kept []base // at most transit.Bases
	next int    // which of them the next one replaces, once there are so many
	// doubtful: one that was sent stands on its own shape, so that the peer may lack it.
	doubtful bool
}

type base struct {
	name   transit.Name
	octets []byte
	sketch *sketch // of those this end sends; nil: not needed yet, or given back
	before bool    // it was announced before a resync, and not since
}

// pack packs a shape, if it may on the base that is most alike, or on its own shape if that takes
// less, and keeps it as a base for others. It reports whether the peer may lack what it stands on,
// and so may ask for it.
func (b *bases) pack(s *shape.Shape, based bool, own *transit.Own) (packed []byte, doubtful bool) {
	packed, doubtful, sketch := b.packed(s, based, own)
	b.keep(s, len(packed), sketch)
	return packed, doubtful
}

// packed is what pack gives; no base is added.
func (b *bases) packed(
	s *shape.Shape, based bool, own *transit.Own,
) (packed []byte, doubtful bool, sketch *sketch) {
	var on []byte
	if based && len(b.kept) > 0 {
		sketch = sketchOf(s.Octets())
		on = b.most(sketch)
	}
	switch {
	case on == nil:
		packed = s.Packed(func(octets []byte) []byte { return transit.Pack(nil, octets, nil) })
	case b.doubtful:
		packed, doubtful = transit.PackChecked(nil, s.Octets(), on), true
	default:
		packed = transit.Pack(nil, s.Octets(), on)
	}
	if own != nil && based {
		if p := transit.PackOwn(nil, s.Octets(), own); len(p) < len(packed) {
			packed, doubtful, b.doubtful = p, true, true
		}
	}
	return packed, doubtful, sketch
}

// most is the base that is most alike; nil: none is.
func (b *bases) most(s *sketch) (on []byte) {
	most := 0
	for i := range b.kept {
		k := &b.kept[i]
		if k.before {
			continue
		}
		if k.sketch == nil {
			k.sketch = sketchOf(k.octets)
		}
		if n := s.shared(k.sketch); n > most {
			most, on = n, k.octets
		}
	}
	return on
}

func (b *bases) keep(s *shape.Shape, packed int, own *sketch) {
	name := transit.NameOf(s.Fingerprint())
	if packed > transit.MaxBased || len(s.Octets()) > transit.MaxBase {
		return
	}
	if old := b.find(name); old != nil {
		old.before = false
		return
	}
	k := base{name: name, octets: s.Octets(), sketch: own}
	if len(b.kept) < transit.Bases {
		b.kept = append(b.kept, k)
		return
	}
	b.kept[b.next] = k
	b.next = (b.next + 1) % len(b.kept)
}

func (b *bases) find(name transit.Name) *base {
	for i := range b.kept {
		if k := &b.kept[i]; k.name == name {
			return k
		}
	}
	return nil
}

// resync has no shape stand on one that was announced so far.
func (b *bases) resync() {
	for i := range b.kept {
		b.kept[i].before = true
	}
}

// rest gives back what can be computed again: a direction that is idle announces nothing.
func (b *bases) rest() {
	for i := range b.kept {
		b.kept[i].sketch = nil
	}
}

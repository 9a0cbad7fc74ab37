package wire

import (
	"math/bits"

	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/shape/transit"
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

func sketchOf(octets []byte) (s sketch) {
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
	kept [transit.Bases]base
	next int
}

type base struct {
	name   transit.Name
	octets []byte
	sketch sketch // of those this end sends
}

// pack packs a shape, if it may on the base that is most alike, and keeps it as a base for others.
func (b *bases) pack(s *shape.Shape, based bool) []byte {
	own := sketchOf(s.Octets())
	var on []byte
	most := 0
	for i := range b.kept {
		k := &b.kept[i]
		if n := own.shared(&k.sketch); based && n > most && k.octets != nil {
			most, on = n, k.octets
		}
	}
	packed := transit.Pack(nil, s.Octets(), on)
	b.keep(s, len(packed), own)
	return packed
}

func (b *bases) keep(s *shape.Shape, packed int, own sketch) {
	name := transit.NameOf(s.Fingerprint())
	if packed > transit.MaxBased || len(s.Octets()) > transit.MaxBase || b.find(name) != nil {
		return
	}
	b.kept[b.next%len(b.kept)] = base{name, s.Octets(), own}
	b.next++
}

func (b *bases) find(name transit.Name) []byte {
	for i := range b.kept {
		if k := &b.kept[i]; k.name == name && k.octets != nil {
			return k.octets
		}
	}
	return nil
}

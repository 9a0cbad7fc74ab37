package wire

// The octets of an announcement by name: in a frame of its own, and in the list of a sync.
const (
	referenceOctets = 36
	listedOctets    = 9
)

// learned is what parts under a shape took on lanes that remembered nothing of the shape, and on
// those that did.
type learned struct{ fresh, known cost }

type cost struct{ octets, parts int64 }

// note counts what a part took that is remembered.
func (l *learned) note(fresh bool, octets int) {
	c := &l.known
	if fresh {
		c = &l.fresh
	}
	c.octets += int64(octets)
	c.parts++
}

// price is how much more the fresh ones took.
func (l *learned) price() int64 {
	if l.known.parts == 0 {
		return l.fresh.octets
	}
	return max(0, l.fresh.octets-l.fresh.parts*l.known.octets/l.known.parts)
}

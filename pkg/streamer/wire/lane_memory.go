package wire

import (
	"sync"

	"github.com/hhfr/hhfr/pkg/shape"
)

var unpackers = sync.Pool{New: func() any { return new(shape.Unpacker) }}

// laneMemory is what a direction of a lane remembers; folded while nobody uses it.
type laneMemory struct {
	open   *shape.Memory
	folded shape.Folded
}

// use gives the memory to be used.
func (m *laneMemory) use() *shape.Memory {
	if m.open == nil {
		m.open = new(shape.Memory)
		m.folded.Unfold(m.open)
	}
	return m.open
}

// fold makes it small.
func (m *laneMemory) fold() {
	if m.open != nil {
		m.folded, m.open = m.open.Fold(), nil
	}
}

var joiners = sync.Pool{New: func() any { return new(shape.Joiner) }}

var packers = sync.Pool{New: func() any { return new(shape.Packer) }}

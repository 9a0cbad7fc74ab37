package wire

import (
	"sync"

	"github.com/hhfr/hhfr/pkg/shape/columns"
	"github.com/hhfr/hhfr/pkg/shape/program"
)

var unpackers = sync.Pool{New: func() any { return new(columns.Unpacker) }}

// laneMemory is what a direction of a lane remembers; folded while nobody uses it.
type laneMemory struct {
	open   *columns.Memory
	folded columns.Folded
}

// use gives the memory to be used.
func (m *laneMemory) use() *columns.Memory {
	if m.open == nil {
		m.open = new(columns.Memory)
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

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

var packers = sync.Pool{New: func() any { return new(columns.Packer) }}

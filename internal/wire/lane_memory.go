package wire

import (
	"sync"

	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
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

// shapes is of how many shapes it remembers something.
func (m *laneMemory) shapes() int {
	if m.open == nil {
		return m.folded.Shapes()
	}
	return m.open.Shapes()
}

// fold makes it small.
func (m *laneMemory) fold() {
	if m.open != nil {
		m.folded.Fold(m.open)
		m.open = nil
	}
}

var joiners = sync.Pool{New: func() any { return new(program.Joiner) }}

var splitters = sync.Pool{New: func() any { return new(program.Splitter) }}

var packers = sync.Pool{New: func() any { return new(columns.Packer) }}

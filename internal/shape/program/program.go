// Package program takes the content out of messages and puts them together again: [Compile] turns a
// shape into a [Program], by which a [Splitter] takes a message apart and a [Joiner] builds it
// again, byte for byte (docs/wire-format.md, section 10).
//
// Programs may be used concurrently; splitters and joiners may not.
package program

import (
	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/code"
)

// Program is a shape compiled to a linear list of operations, for [Splitter], [Joiner] and package
// columns. It is immutable and may be used concurrently.
type Program code.Code

// Compile makes a program. It cannot fail: whatever a [shape.Shape] may be can be compiled.
func Compile(s *shape.Shape) *Program { return (*Program)(code.Compile(s)) }

// Shape is what the program was compiled from.
func (p *Program) Shape() *shape.Shape { return (*code.Code)(p).Shape() }

// Size is about what the program takes in memory, its shape included, in bytes.
func (p *Program) Size() int { return (*code.Code)(p).Size() }

// Leads are the bytes every message of the shape begins with; they must not be changed.
func (p *Program) Leads() []byte { return (*code.Code)(p).Leads() }

package columns

import (
	"github.com/hhfr/hhfr/internal/shape/code"
	"github.com/hhfr/hhfr/internal/shape/program"
)

// Bill is what the places of a shape take in packed segments, for people who look at messages. It
// is for one message and one shape; the zero value is ready.
type Bill struct {
	bits []int64 // by operations
	at   int64   // up to where the segment is billed
}

// Add adds to costs, in bits, what each place took: a value, prefix, optional part, choice or
// array, in the order of the shape. What is in an array is packed in columns, each the cost of its
// place.
func (b *Bill) Add(costs []int64, of *program.Program) []int64 {
	ops, n := (*code.Code)(of).Ops(), 0
	for pc := range ops {
		switch ops[pc].Code {
		case code.OpValue, code.OpSlot, code.OpMaybe, code.OpChoice, code.OpRows, code.OpColumn:
			if n == len(costs) {
				costs = append(costs, 0)
			}
			if pc < len(b.bits) {
				costs[n] += b.bits[pc]
			}
			n++
		}
	}
	return costs
}

// open begins a bill of so many operations behind the first bits of a segment, which no place
// takes.
func (b *Bill) open(operations int, used int64) {
	if b == nil {
		return
	}
	if b.bits == nil {
		b.bits = make([]int64, operations)
	}
	b.at = used
}

// charge puts what was read since the last time on the bill of an operation.
func (b *Bill) charge(pc int32, used int64) {
	if b != nil {
		b.bits[pc] += used - b.at
		b.at = used
	}
}

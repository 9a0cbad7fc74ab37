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

// used is how many bits of the segment were read.
func (r *packReader) used() int64 { return 8*int64(r.At) - int64(r.Left) }

// bill puts what was read since the last time on the bill of an operation.
func (u *Unpacker) bill(pc int32) {
	if b := u.Bill; b != nil {
		used := u.r.used()
		b.bits[pc] += used - b.at
		b.at = used
	}
}

// open begins a bill behind the first bits of a segment, which no place takes.
func (u *Unpacker) open() {
	if b := u.Bill; b != nil {
		if b.bits == nil {
			b.bits = make([]int64, len(u.p.Ops()))
		}
		b.at = u.r.used()
	}
}

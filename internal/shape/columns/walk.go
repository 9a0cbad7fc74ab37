package columns

import "github.com/hhfr/hhfr/internal/shape/code"

// position is where the items of a part stand between two segments, for packing (wire-format
// section 11). The zero value is the beginning.
type position struct {
	pc    int32
	text  bool // a text item follows, which is the value at pc
	form  bool // pieces follow, of the value at pc
	lost  bool // a segment was not understood: those that follow are plain
	loops []walkLoop
}

// walkLoop is an array that is open.
type walkLoop struct {
	pc   int32
	left uint64 // rows of the group, or when unpacking of the segment, still to come
	more bool
	open bool // unpacking: the array goes on in the next segment
	// packing: where its count of this segment is kept; unpacking: rows behind those of the group;
	// -1: no count yet
	at int
}

func (w *position) reset() {
	w.pc, w.text, w.form, w.lost, w.loops = 0, false, false, false, w.loops[:0]
}

// nextRow ends a row; false: the array needs an item to go on.
func (w *position) nextRow(p *code.Code, o *code.Op) bool {
	l := &w.loops[len(w.loops)-1]
	if l.left > 0 {
		l.left--
		w.pc = o.A + 1
		return true
	}
	if l.more {
		return false
	}
	w.loops = w.loops[:len(w.loops)-1]
	w.pc = p.Ops()[o.A].B
	return true
}

// enter is the way to the next operation that has an item; end: there is none.
func (w *position) enter(p *code.Code) (o *code.Op, end bool) {
	for {
		w.pc = p.Steps()[w.pc].At
		o = &p.Ops()[w.pc]
		switch o.Code {
		case code.OpNext:
			if w.nextRow(p, o) {
				continue
			}
			w.pc = o.A
			o = &p.Ops()[w.pc]
		case code.OpEnd:
			return o, true
		case code.OpRows:
			if o.Fixed {
				w.loops = append(w.loops, walkLoop{pc: w.pc, left: o.Min - 1})
				w.pc++
				continue
			}
		}
		return o, false
	}
}

// sub tells the columns of one place apart.
type sub uint8

const (
	subKind    sub = iota // small integers: bits, forms, scales
	subNumber             // integers: numbers, units of time, rows of arrays
	subMinutes            // offsets of times; exponents, with their forms
	subText               // texts
	subOctets             // bytes of UUID, base64 and hexadecimal values; groups of section 10.5 inside arrays
	subGroup              // a group of section 10.5 outside arrays
	subs
)

// Packing is where a part of a message stands between two of its segments, for a [Packer] or an
// [Unpacker]. The zero value is the beginning.
type Packing struct{ at position }

// Reset begins a further part.
func (s *Packing) Reset() { s.at.reset() }

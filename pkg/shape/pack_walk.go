package shape

import "math"

// position is where the items of a part stand between two segments, for packing (wire-format section 11). The zero value is the beginning.
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
	at   int  // packing: where its count of this segment is kept; unpacking: rows behind those of the group; -1: no count yet
}

func (w *position) reset() {
	w.pc, w.text, w.form, w.lost, w.loops = 0, false, false, false, w.loops[:0]
}

// nextRow ends a row; false: the array needs an item to go on.
func (w *position) nextRow(p *Program, o *op) bool {
	l := &w.loops[len(w.loops)-1]
	if l.left > 0 {
		l.left--
		w.pc = o.a + 1
		return true
	}
	if l.more {
		return false
	}
	w.loops = w.loops[:len(w.loops)-1]
	w.pc = p.Ops()[o.a].b
	return true
}

// enter is the way to the next operation that has an item; end: there is none.
func (w *position) enter(p *Program) (o *op, end bool) {
	for {
		w.pc = p.Steps()[w.pc].at
		o = &p.Ops()[w.pc]
		switch o.code {
		case opNext:
			if w.nextRow(p, o) {
				continue
			}
			w.pc = o.a
			o = &p.Ops()[w.pc]
		case opEnd:
			return o, true
		case opRows:
			if o.fixed {
				w.loops = append(w.loops, walkLoop{pc: w.pc, left: o.min - 1})
				w.pc++
				continue
			}
		}
		return o, false
	}
}

// packPlan is what packing by a program needs beside its operations.
type packPlan struct {
	places int       // how many operations have items
	steps  []step    // by operation
	flat   [][]int32 // by array: the operations of rows that are nothing but texts, numbers and booleans; nil without arrays
}

// step is what packing does first at an operation.
type step struct {
	at    int32 // the operation behind texts and jumps, if there is no other before it; the others are about that one
	other int32 // itemMaybe: the operation behind
	place int32 // which of those with items it is
	item  item
	bits  uint8 // of its kind
	// low and high are the kinds that are usual.
	low, high uint16
}

// item tells what an operation's items are.
type item uint8

const (
	itemStop item = iota // other operations
	itemEnd
	itemMaybe
	itemSlot
	itemBoolean
	itemText // those before begin with bits
	itemInt
	itemDecimal
	itemUUID // and those behind begin with an octet
	itemTime
	itemPieces
	itemBits = itemBoolean
)

// kinds are those with which the items of a value are as usual: no text in its place, and no exponent.
func (i item) kinds() (low, high uint16) {
	switch i {
	case itemBoolean:
		return 0, 1
	case itemDecimal:
		return 1, 7
	case itemUUID:
		return 1, math.MaxUint8
	case itemTime:
		return 1, uint16(instantForms - 1)
	}
	return 0, math.MaxUint16
}

func (o *op) item() item {
	switch {
	case o.code == opMaybe:
		return itemMaybe
	case o.code == opSlot:
		return itemSlot
	case o.code == opEnd:
		return itemEnd
	case o.code != opValue:
		return itemStop
	case o.typ == TypeBoolean:
		return itemBoolean
	case o.typ == TypeUUID:
		return itemUUID
	case o.typ == TypeDateTime:
		return itemTime
	case o.typ.pieces():
		return itemPieces
	case o.typ.scaled():
		return itemDecimal
	case o.typ.numeric():
		return itemInt
	}
	return itemText
}

func planPacking(ops []op) packPlan {
	l := packPlan{steps: make([]step, len(ops))}
	for i := range ops {
		o, s := &ops[i], &l.steps[i]
		s.at, s.other, s.item, s.bits = int32(i), o.b, o.item(), uint8(o.kindBits())
		s.low, s.high = s.item.kinds()
		switch o.code {
		case opValue, opSlot, opMaybe, opChoice, opRows, opColumn:
			if o.code == opRows && l.flat == nil {
				l.flat = make([][]int32, len(ops))
			}
			if !o.fixed {
				s.place = int32(l.places)
				l.places++
				if o.code == opRows {
					l.flat[i] = flatRows(ops, i)
				}
			}
		}
	}
	for i := len(ops) - 1; i >= 0; i-- {
		switch o := &ops[i]; o.code {
		case opText, opAgain:
			l.steps[i] = l.steps[i+1]
		case opJump:
			l.steps[i] = l.steps[o.a]
		}
	}
	return l
}

// sub tells the columns of one place apart.
type sub uint8

const (
	subKind    sub = iota // small integers: bits, forms, scales
	subNumber             // integers: numbers, units of time, rows of arrays
	subMinutes            // offsets of times; exponents, with their forms
	subText               // texts
	subOctets             // octets of UUID, base64 and hexadecimal values; groups of section 10.5 inside arrays
	subGroup              // a group of section 10.5 outside arrays
	subs
)

// maxKindBits bounds the width of a kind.
const maxKindBits = 15

// kindBits is the width of the small integers of a place.
func (o *op) kindBits() uint {
	switch {
	case o.code == opSlot || o.code == opMaybe:
		return 1
	case o.code == opChoice:
		return uint(o.bits)
	case o.typ == TypeBoolean:
		return 2
	case o.typ == TypeInt || o.typ == TypeByte:
		return 1
	case o.typ.pieces():
		return 9
	}
	return 8
}

// isUUID tells the places whose octet strings all have 16 octets.
func (o *op) isUUID() bool { return o.code == opValue && o.typ == TypeUUID }

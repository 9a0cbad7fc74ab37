package code

import (
	"hash/crc32"
	"math"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
)

// plan is what packing by a program needs beside its operations.
type plan struct {
	places int      // how many operations have items
	signs  []uint32 // of each of them
	steps  []Step   // by operation
	// by array: the operations of rows that are nothing but texts, numbers and booleans; nil
	// without arrays
	flat [][]int32
}

// Step is what packing does first at an operation.
type Step struct {
	At    int32 // the operation behind texts and jumps, if there is no other before it; the others are about that one
	Other int32 // ItemMaybe, ItemColumn: the operation behind
	Place int32 // which of those with items it is
	Item  Item
	Bits  uint8 // of its kind
	// low and high are the kinds that are usual.
	Low, High uint16
}

// Item tells what an operation's items are.
type Item uint8

const (
	ItemStop Item = iota // other operations
	ItemEnd
	ItemMaybe
	ItemSlot
	ItemBoolean
	ItemText // those before begin with bits
	ItemInt
	ItemDecimal
	ItemUUID // and those behind begin with a byte
	ItemTime
	ItemPieces
	ItemColumn // an array of numbers
	ItemBits   = ItemBoolean
)

// kinds are those with which the items of a value are as usual: no text in its place, and no
// exponent.
func (i Item) kinds() (low, high uint16) {
	switch i {
	case ItemBoolean:
		return 0, 1
	case ItemDecimal:
		return 1, 7
	case ItemUUID:
		return 1, math.MaxUint8
	case ItemTime:
		return 1, uint16(lexical.DateTimeForms - 1)
	}
	return 0, math.MaxUint16
}

func (o *Op) item() Item {
	switch {
	case o.Code == OpMaybe:
		return ItemMaybe
	case o.Code == OpSlot:
		return ItemSlot
	case o.Code == OpEnd:
		return ItemEnd
	case o.Code == OpColumn:
		return ItemColumn
	case o.Code != OpValue:
		return ItemStop
	case o.Type == shape.TypeBoolean:
		return ItemBoolean
	case o.Type == shape.TypeUUID:
		return ItemUUID
	case o.Type == shape.TypeDateTime:
		return ItemTime
	case o.Type.Pieces():
		return ItemPieces
	case o.Type.Scaled():
		return ItemDecimal
	case o.Type.Numeric():
		return ItemInt
	}
	return ItemText
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sign is that of a place (wire-format section 11.6), from the one of what stands before it.
// inside: it stands in the rows of an array.
func (o *Op) sign(before uint32, inside bool) uint32 {
	kind := shape.Value
	switch o.Code {
	case OpSlot:
		kind = shape.Slot
	case OpMaybe:
		kind = shape.Optional
	case OpChoice:
		kind = shape.Choice
	case OpRows, OpColumn:
		kind = shape.Array
	}
	b := [...]byte{byte(kind), byte(o.Type), 0}
	if inside {
		b[2] = 1
	}
	return crc32.Update(before, castagnoli, b[:])
}

func planPacking(ops []Op, lits []byte) plan {
	l := plan{steps: make([]Step, len(ops))}
	var sign uint32
	var rows int32 // where those end that this stands in
	for i := range ops {
		o, s := &ops[i], &l.steps[i]
		s.At, s.Other, s.Item, s.Bits = int32(i), o.B, o.item(), uint8(o.KindBits())
		s.Low, s.High = s.Item.kinds()
		switch o.Code {
		case OpText:
			sign = crc32.Update(sign, castagnoli, lits[o.A:o.B])
		case OpValue, OpSlot, OpMaybe, OpChoice, OpRows, OpColumn:
			if o.Code == OpRows && l.flat == nil {
				l.flat = make([][]int32, len(ops))
			}
			if !o.Fixed {
				s.Place = int32(l.places)
				l.places++
				sign = o.sign(sign, int32(i) < rows)
				l.signs = append(l.signs, sign)
				if o.Code == OpRows {
					l.flat[i] = flatRows(ops, i)
				}
			}
			if o.Code == OpRows {
				rows = max(rows, o.B)
			}
		}
	}
	for i := len(ops) - 1; i >= 0; i-- {
		switch o := &ops[i]; o.Code {
		case OpText, OpAgain:
			l.steps[i] = l.steps[i+1]
		case OpJump:
			l.steps[i] = l.steps[o.A]
		}
	}
	return l
}

// MaxFlat is how many items a row may have that is taken as a whole.
const MaxFlat = 16

// flatRows gives the places in the rows of the array at ops[i], if they are nothing but texts,
// numbers and booleans.
func flatRows(ops []Op, i int) (items []int32) {
	for i++; ; i++ {
		switch o := &ops[i]; o.Code {
		case OpText, OpAgain:
		case OpNext:
			return items
		case OpValue:
			if len(items) == MaxFlat || o.Type == shape.TypeUUID || o.Type == shape.TypeDateTime || o.Type.Pieces() {
				return nil
			}
			items = append(items, int32(i))
		default:
			return nil
		}
	}
}

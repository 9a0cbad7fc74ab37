package code

import "github.com/hhfr/hhfr/internal/shape"

// Opcode is what an [Op] does.
type Opcode uint8

const (
	OpText  Opcode = iota // match lits[a:b]
	OpSlot                // item: prefix of slot a
	OpAgain               // match the prefix of slot a
	// item: value of type up to until; lits[a:b] is the text behind it if it surely ends there, and
	// is not looked for otherwise
	OpValue
	OpMaybe  // item: one bit; the body follows, b is behind it
	OpChoice // item: index; alts[a:b] are the bodies' places, c bits
	OpJump   // go to a
	OpRows   // array: item or count; the body follows, b is behind its OpNext
	OpNext   // end of a row: back to a
	// column: rows begin behind it with static operations, OpNumber, static operations; b is behind
	// their end; a is their place in rows, -1 if they are not plain
	OpColumn
	OpNumber // the number of a column's row
	OpEnd    // end of the message, or of a column's row
)

// Op is an operation. Splitting and joining run the same ones.
type Op struct {
	Code     Opcode
	Type     shape.Type
	Until    shape.Until
	NameEnd  bool // OpMaybe, OpRows, OpJump as alternative: the guard ends in a name, which must end there
	Fixed    bool
	Bits     uint8
	A, B     int32
	Lead     Lead // OpMaybe, OpRows
	Min, Max uint64
	Alts     []Alternative // OpChoice, and OpRows of one
}

// Lead is the text lits[a:b] by which the operations behind a guard are known if they begin with it
// and no prefix follows; else it is empty.
type Lead struct{ A, B int32 }

// Alternative is one body of a choice.
type Alternative struct {
	PC      int32
	NameEnd bool
	Lead    Lead
}

// IsBits tells operations whose item begins with a bit.
func (o *Op) IsBits() bool {
	return o.Code == OpSlot || o.Code == OpMaybe || o.Code == OpChoice ||
		o.Code == OpValue && o.Type == shape.TypeBoolean
}

// IsUUID tells the places whose byte strings all have 16 bytes.
func (o *Op) IsUUID() bool { return o.Code == OpValue && o.Type == shape.TypeUUID }

// MaxKindBits bounds the width of a kind.
const MaxKindBits = 15

// KindBits is the width of the small integers of a place.
func (o *Op) KindBits() uint {
	switch {
	case o.Code == OpSlot || o.Code == OpMaybe:
		return 1
	case o.Code == OpChoice:
		return uint(o.Bits)
	case o.Type == shape.TypeBoolean:
		return 2
	case o.Type == shape.TypeInt || o.Type == shape.TypeByte:
		return 1
	case o.Type.Pieces():
		return 9
	}
	return 8
}

// LitRoom is how many bytes of a text are copied at once.
const LitRoom = 32

// PlainRow is the row of a column that is a text, a number and a text at which the number surely
// ends.
type PlainRow struct {
	Before, Behind []byte
	Between        []byte // behind and before, with a capacity of LitRoom more
}

package shape

import "fmt"

// Kind is the kind of a [Node]; the numbers are those of the wire format.
type Kind uint8

const (
	Text      Kind = iota // exactly Node.Text
	Value                 // a value of Node.Type, which ends as Node.Until says
	Slot                  // where prefix slot Node.Slot gets its prefix
	Again                 // the prefix of slot Node.Slot once more
	Sequence              // Node.Kids in order
	Element               // the same, from `<` to the last `>` of an element
	Attribute             // the same, from the white space before an attribute to its closing quote
	Array                 // Node.Kids[0], Node.Min to Node.Max times
	Optional              // Node.Kids[0] or nothing
	Choice                // one of Node.Kids
	UTF16LE               // the root only: Node.Kids[0] in UTF-16, the lower byte of a unit first
	UTF16BE               // the same, the higher byte first
	kinds
)

// IsUTF16 reports whether messages are in UTF-16.
func (k Kind) IsUTF16() bool { return k == UTF16LE || k == UTF16BE }

// Type is the type of a value; the numbers are those of the wire format. Int, Byte, Float, Boolean
// and String are the five of the HHFR Schema (paper 2, section 4.2).
type Type uint8

const (
	TypeText Type = iota
	TypeString
	TypeInt
	TypeByte
	TypeFloat
	TypeBoolean
	TypeDecimal
	TypeOpen     // bytes of any kind: text, elements, comments
	TypeUUID     // a UUID, also with urn:uuid: in front
	TypeDateTime // xs:dateTime, up to nanoseconds
	TypeBase64
	TypeHex
	TypeScientific // a number that may well have an exponent: as TypeFloat, but an array of it is no column
	types
)

var typeNames = [types]string{
	"text", "string", "int", "byte", "float", "boolean", "decimal", "open", "UUID", "dateTime", "base64", "hex",
	"scientific",
}

func (t Type) String() string {
	if t < types {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Numeric reports whether values are carried as numbers.
func (t Type) Numeric() bool {
	return (1<<TypeInt|1<<TypeByte|1<<TypeFloat|1<<TypeDecimal|1<<TypeScientific)>>t&1 != 0
}

// Scaled reports whether values are numbers that may have digits after the point.
func (t Type) Scaled() bool {
	return (1<<TypeFloat|1<<TypeDecimal|1<<TypeScientific)>>t&1 != 0
}

// Pieces reports whether values travel in pieces.
func (t Type) Pieces() bool { return t == TypeBase64 || t == TypeHex }

// Until tells a splitter where a value ends; the numbers are those of the wire format.
type Until uint8

const (
	UntilTag        Until = iota // the next `<` that begins no comment, instruction or CDATA section
	UntilQuote                   // "
	UntilApostrophe              // '
	UntilLine                    // CR LF, or LF
	UntilElement                 // the end tag of the element around it
	UntilEnd                     // the end of the message
	UntilSpace                   // a blank or tab
	untils
)

// Node is a node of a shape's tree. Which fields count depends on Kind. Nodes of a [Shape] must not
// be changed.
type Node struct {
	Kind     Kind
	Type     Type
	Until    Until
	Slot     int32
	Text     string
	Min, Max uint64 // Max 0: no limit; Min = Max: a fixed number of rows
	Kids     []*Node
}

// Fixed reports whether an array has a number of rows that is no content.
func (n *Node) Fixed() bool { return n.Max != 0 && n.Min == n.Max }

// takesContent reports whether a node takes at least one item of content each time it stands.
func takesContent(n *Node) bool {
	switch n.Kind {
	case Value, Slot, Optional, Choice:
		return true
	case Array:
		return !n.Fixed() || n.Column() != nil || takesContent(n.Kids[0])
	case Sequence, Element, Attribute:
		for _, k := range n.Kids {
			if takesContent(k) {
				return true
			}
		}
	}
	return false
}

// Column gives the one number of an array that is a column (wire-format section 10.5), nil for
// other nodes.
func (n *Node) Column() *Node {
	if n.Kind != Array {
		return nil
	}
	value, ok := onlyNumber(n.Kids[0], nil)
	if !ok {
		return nil
	}
	return value
}

func onlyNumber(n, found *Node) (*Node, bool) {
	switch n.Kind {
	case Text, Again:
		return found, true
	case Value:
		return n, found == nil && n.Type.Numeric() && n.Type != TypeScientific
	case Sequence, Element, Attribute:
		for _, k := range n.Kids {
			var ok bool
			if found, ok = onlyNumber(k, found); !ok {
				return nil, false
			}
		}
		return found, true
	}
	return nil, false
}

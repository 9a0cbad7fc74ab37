// Package shape is the heart of hhfr: message = shape ⊕ content (docs/architecture.md).
//
// A [Shape] is what stays the same from one message of a kind to the next: structure, the types of values, and the exact text around them.
// It is immutable and named by the SHA-256 of its serialization (docs/wire-format.md, section 9). [Compile] turns it into a [Program], by which
// a [Splitter] takes a message's content out and a [Joiner] puts a message together again, byte for byte (section 10). [Learn] and [LearnHead] make a shape
// from one message.
//
// Shapes and programs may be used concurrently; splitters and joiners may not.
package shape

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

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
	UTF16LE               // the root only: Node.Kids[0] in UTF-16, the lower octet of a unit first
	UTF16BE               // the same, the higher octet first
	kinds
)

// Type is the type of a value; the numbers are those of the wire format. Int, Byte, Float, Boolean and String are the five of the HHFR Schema (paper 2, section 4.2).
type Type uint8

const (
	TypeText Type = iota
	TypeString
	TypeInt
	TypeByte
	TypeFloat
	TypeBoolean
	TypeDecimal
	TypeOpen     // octets of any kind: text, elements, comments
	TypeUUID     // a UUID, also with urn:uuid: in front
	TypeDateTime // xs:dateTime, up to nanoseconds
	TypeBase64
	TypeHex
	TypeScientific // a number that may well have an exponent: as TypeFloat, but an array of it is no column
	types
)

var typeNames = [types]string{"text", "string", "int", "byte", "float", "boolean", "decimal", "open", "UUID", "dateTime", "base64", "hex", "scientific"}

func (t Type) String() string {
	if t < types {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// numeric tells the types that are carried as numbers.
func (t Type) numeric() bool {
	return (1<<TypeInt|1<<TypeByte|1<<TypeFloat|1<<TypeDecimal|1<<TypeScientific)>>t&1 != 0
}

// scaled tells the numeric types that may have digits after the point.
func (t Type) scaled() bool {
	return (1<<TypeFloat|1<<TypeDecimal|1<<TypeScientific)>>t&1 != 0
}

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

// Node is a node of a shape's tree. Which fields count depends on Kind. Nodes of a [Shape] must not be changed.
type Node struct {
	Kind     Kind
	Type     Type
	Until    Until
	Slot     int32
	Text     string
	Min, Max uint64 // Max 0: no limit; Min = Max: a fixed number of rows
	Kids     []*Node
}

// Fingerprint names a shape: SHA-256 over its serialization.
type Fingerprint [sha256.Size]byte

// URIPrefix is what the URI of every shape begins with.
const URIPrefix = "urn:hhfr:shape:sha256:"

// URI is the name under which context stores keep the shape.
func (f Fingerprint) URI() string { return URIPrefix + hex.EncodeToString(f[:]) }

// String gives the first eight digits, for people.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:4]) }

// Shape is an immutable, canonical tree with its serialization.
type Shape struct {
	root        *Node
	slots       int
	nodes       int
	octets      []byte
	fingerprint Fingerprint
}

// Root is the root node; it must not be changed.
func (s *Shape) Root() *Node { return s.root }

// Slots is how many prefix slots the shape has.
func (s *Shape) Slots() int { return s.slots }

// Nodes is about how many nodes the tree has, never fewer than there are.
func (s *Shape) Nodes() int { return s.nodes }

// Octets is the canonical serialization; it must not be changed.
func (s *Shape) Octets() []byte { return s.octets }

// Fingerprint names the shape.
func (s *Shape) Fingerprint() Fingerprint { return s.fingerprint }

// New makes a shape of a tree: it brings the tree into canonical form (merges texts, unfolds sequences, numbers slots in order of appearance)
// and checks it. The tree is not changed. Errors are of type [Error], code Invalid or TooLarge.
func New(root *Node) (*Shape, error) {
	tree := canonical(root)
	renumberSlots(tree)
	octets, err := serialize(tree)
	if err != nil {
		return nil, err
	}
	return parse(octets, 0)
}

// Code tells kinds of [Error] apart.
type Code uint8

const (
	// Invalid: a serialization or tree that is no canonical shape.
	Invalid Code = iota + 1
	// TooLarge: beyond a limit of this package (limits.go) or one the caller gave.
	TooLarge
	// Malformed: content that the shape does not fit.
	Malformed
	// Unlearnable: a message from which no shape can be made.
	Unlearnable
)

var codeNames = map[Code]string{Invalid: "invalid shape", TooLarge: "over the limit", Malformed: "malformed content", Unlearnable: "no shape can be learned"}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is an offset in octets: into the serialization (Invalid), the segment (Malformed) or the message (Unlearnable).
type Error struct {
	Code Code
	At   int64
	What string
	Err  error
}

func (e *Error) Error() string {
	s := fmt.Sprintf("%s: offset %d: %s", e.Code, e.At, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

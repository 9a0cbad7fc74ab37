// Package schema makes shapes from descriptions of messages in the HHFR Schema of the papers, a
// small dialect of XML Schema (docs/negotiation.md, section 8): [Parse] reads it, [Schema.String]
// prints it, [Schema.URI] names what it describes. A schema describes types and order of the
// content of the Body, and of header blocks, never their text: the shape is made when the first
// real message gives that ([Schema.Shape]). For values that come without XML, [Schema.Message] has
// a default envelope.
package schema

import (
	"crypto/md5" //nolint:gosec // an identifier that others have defined, for no security
	"fmt"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xsd"
)

// Shape is what all messages of one kind have in common, and Type the type of a value in it.
// Contents is what a schema says, as XML Schema has it.
type (
	Shape    = shape.Shape
	Type     = shape.Type
	Contents = xsd.Contents
)

// Schema describes one kind of message. It is immutable and may be used concurrently.
type Schema struct {
	root    *Element
	headers []*Element
	prefix  string // prefix of the dialect's elements, with its colon; empty: none
}

// Root returns the description of the child of Body. It must not be changed.
func (s *Schema) Root() *Element { return s.root }

// Headers returns the descriptions of header blocks, which messages may have. They must not be
// changed.
func (s *Schema) Headers() []*Element { return s.headers }

// Element describes one element, in the order of the message.
type Element struct {
	// Name is its local name.
	Name string
	// Namespace is what its name is in; empty: none is stated, and messages may have it in any.
	Namespace string
	// Type is that of its text, or of the items of an array; TypeOpen for an element with elements
	// inside.
	Type shape.Type
	// Array: it contains items, elements of one name, each a value of Type.
	Array bool
	// Item is the name of the items, in the namespace of the array; empty: any one name.
	Item string
	// Items is how many items an array has; 0: any number.
	Items int
	// Attributes and Children of an element with elements inside.
	Attributes []Attribute
	Children   []*Element
}

// Leaf reports whether an element has a single value.
func (e *Element) Leaf() bool { return !e.Array && len(e.Children) == 0 }

// Attribute describes an attribute without a namespace.
type Attribute struct {
	Name string
	Type shape.Type
}

// URIPrefix is what the URI of every schema begins with.
const URIPrefix = xsd.URIPrefix

// Fingerprint is the SHA-256 of [Schema.Canonical].
func (s *Schema) Fingerprint() [32]byte { return s.print().Fingerprint }

// Identifier is the MD5 of [Schema.Canonical]: the schema-identifier of Fast SOAP (ITU-T X.892). It
// proves nothing.
func (s *Schema) Identifier() [md5.Size]byte { return s.print().Identifier }

// URI names what the schema describes: schemas that differ only in prefixes, white space, the order
// of attributes or the spelling of types have the same URI, and so has an XML Schema that describes
// the same (docs/schemas.md).
func (s *Schema) URI() string {
	p := s.print()
	return p.URI()
}

func (s *Schema) print() xsd.Print { return xsd.Prints(s.Contents())[0] }

// Canonical returns the text that the fingerprint is made of (docs/schemas.md).
func (s *Schema) Canonical() []byte { return s.Contents().Canonical() }

// Code tells the kinds of [Error] apart.
type Code uint8

const (
	// Malformed: no XML, or XML that is no schema.
	Malformed Code = iota + 1
	// Unsupported: XML Schema beyond the dialect.
	Unsupported
	// TooLarge: beyond a limit of this package (limits.go).
	TooLarge
	// Drift: a message that differs from what the schema describes.
	Drift
	// BadValue: a value that is not of its type, or has no place in the schema.
	BadValue
)

var codeNames = map[Code]string{
	Malformed:   "malformed schema",
	Unsupported: "not in the HHFR Schema dialect",
	TooLarge:    "over the limit",
	Drift:       "message drifts from its schema",
	BadValue:    "bad value",
}

func (c Code) String() string { return codeNames[c] }

// Error is the error of this package. At is an offset in bytes into the schema, -1 where there is
// none. Line and Column count from 1, columns in bytes, and are 0 where there is none. Path is the
// place in the message, by names of elements.
type Error struct {
	Code         Code
	At           int64
	Line, Column int
	Path         string
	What         string
	Err          error
}

func (e *Error) Error() string {
	s := e.Code.String()
	if e.Line > 0 {
		s = fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, s)
	}
	if e.Path != "" {
		s += ": " + e.Path
	}
	if e.What != "" {
		s += ": " + e.What
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Is compares codes.
func (e *Error) Is(t error) bool { o, ok := t.(*Error); return ok && o.Code == e.Code }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Package bind compiles Go structs to programs that write their values as XML, and read such XML,
// without reflection. The tags are those of encoding/xml, as far as docs/library.md has them. What
// a program writes is the same for the same value, byte for byte, and all of its tags but for
// optional elements are the same for all values, so that one shape fits them.
package bind

import (
	"reflect"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// maxDepth is how deep the elements of a value may nest, which may contain itself: less deep than
// what parsers read, envelope included.
const maxDepth = 900

// Blueprint is a program that writes and reads the values of one struct. It is immutable.
type Blueprint struct {
	root *field
	head []byte // the start tag of the root, with all namespaces, up to its attributes
}

// Error says what is wrong with a type, a value, or a message: at the path of a field for a type
// (an error of [Compile]), else at that of an element.
type Error struct {
	Path string
	What string
}

func (e *Error) Error() string { return e.Path + ": " + e.What }

// Compile checks the struct T and compiles it. Errors are *[Error].
func Compile[T any]() (*Blueprint, error) { return compile(reflect.TypeFor[T]()) }

// Name is that of the element.
func (p *Blueprint) Name() (space, local string) { return p.root.space, p.root.local }

// Fits reports whether the program reads elements of a name.
func (p *Blueprint) Fits(space, local []byte) bool { return p.root.is(space, local) }

// Append appends a value of the type that the program was compiled from. Errors are *[Error].
func Append[T any](p *Blueprint, dst []byte, v *T) ([]byte, error) {
	at := pointer(v)
	out := append(dst, p.head...)
	out, err := p.root.record.append(out, at, p.root, 1)
	if err != nil {
		return dst, under(err, p.root.local)
	}
	return out, nil
}

// Read reads the element that the parser stands in, to its end, as a value of the type that the
// program was compiled from. v is zero before. Errors are *[Error], and those of the parser.
func Read[T any](p *Blueprint, x *pull.Parser, v *T) error {
	if space, local := x.Name(); !p.Fits(space, local) {
		return &Error{p.root.local, "found " + name(string(space), string(local)) + ", expected " +
			name(p.root.space, p.root.local)}
	}
	return under(p.root.record.read(x, pointer(v), p.root), p.root.local)
}

func name(space, local string) string {
	if space == "" {
		return local
	}
	return "{" + space + "}" + local
}

// under is an error in an element of a name.
func under(err error, local string) error {
	if e, ok := err.(*Error); ok { //nolint:errorlint // as this package makes them
		if e.Path != "" {
			local += "/" + e.Path
		}
		return &Error{local, e.What}
	}
	return err
}

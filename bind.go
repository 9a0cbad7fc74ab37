package hhfr

import (
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/internal/bind"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// Binding writes values of a struct as the content of a SOAP Body, and reads such content. [Bind]
// makes one. It is immutable, and safe for concurrent use.
type Binding[T any] struct{ program *bind.Blueprint }

// Bind checks the struct T, and compiles it to a program that needs no reflection. Its tags are
// those of encoding/xml, as far as docs/library.md has them. Errors are *[Error] of code Invalid,
// and name the field; a message has no error that comes from the type.
func Bind[T any]() (*Binding[T], error) {
	program, err := bind.Compile[T]()
	if err != nil {
		return nil, invalid(err)
	}
	return &Binding[T]{program}, nil
}

// Append appends the element for a value, the same bytes for the same value. An error is an
// *[Error] of code Invalid that names the element: a string with characters that XML cannot hold, a
// time out of range, a value that contains itself. dst is then returned as it was.
func (b *Binding[T]) Append(dst []byte, v *T) ([]byte, error) {
	if err := b.check(v); err != nil {
		return dst, err
	}
	out, err := bind.Append(b.program, dst, v)
	if err != nil {
		return dst, invalid(err)
	}
	return out, nil
}

// Read sets a value to what an element says. Elements and attributes that T does not have are
// passed over; what is missing is zero. An error is an *[Error] of code Malformed that names the
// element, and what was expected; the value is then undefined.
func (b *Binding[T]) Read(content []byte, v *T) error {
	if err := b.check(v); err != nil {
		return err
	}
	r := parsers.Get().(*pulled)
	defer r.free()
	r.Reset(content)
	err := b.read(&r.Parser, v)
	if err == nil {
		if _, err = r.Next(); errors.Is(err, io.EOF) {
			return nil
		}
	}
	return &Error{Code: Malformed, Err: err}
}

// check refuses what a program left out.
func (b *Binding[T]) check(v *T) error {
	switch {
	case b == nil || b.program == nil:
		return invalid(errors.New("a Binding that Bind did not make"))
	case v == nil:
		return invalid(errors.New("no value"))
	}
	return nil
}

// read reads the root element.
func (b *Binding[T]) read(x *pull.Parser, v *T) error {
	if _, err := x.Next(); err != nil {
		return err
	}
	*v = *new(T)
	return bind.Read(b.program, x, v)
}

// pulled is a parser with the message that it reads.
type pulled struct {
	pull.Parser
	message []byte
}

// maxPooled is the longest message whose memory is used again, in bytes.
const maxPooled = 64 << 10

var parsers = sync.Pool{New: func() any { return &pulled{} }}

func (p *pulled) free() {
	p.Reset(nil)
	if cap(p.message) <= maxPooled {
		parsers.Put(p)
	}
}

// take reads a whole message of up to maxReadAll bytes, whose length is known if it is above 0.
func (p *pulled) take(body io.Reader, length int64) error {
	if p.message = p.message[:0]; body == nil {
		return nil // as of an empty one
	}
	if room := int(min(length, maxPooled)) + 1; cap(p.message) < room {
		p.message = make([]byte, 0, max(room, 1<<10))
	}
	for {
		n, err := body.Read(p.message[len(p.message):cap(p.message)])
		p.message = p.message[:len(p.message)+n]
		switch {
		case errors.Is(err, io.EOF):
			p.Reset(p.message)
			return nil
		case err != nil:
			return err
		case len(p.message) > maxReadAll:
			return tooLong("message")
		case len(p.message) == cap(p.message):
			p.message = append(p.message, 0)[:len(p.message)]
		}
	}
}

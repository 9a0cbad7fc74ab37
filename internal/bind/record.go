package bind

import (
	"encoding/xml"
	"reflect"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// structure is a struct, as it is in the element of one namespace.
type structure struct {
	attrs    []*field
	text     *field // nil: it has elements
	elements []*field
	named    *field // XMLName, which gets the name that was read; nil: there is none
}

// form is how many values a field has, and where they are.
type form uint8

const (
	single  form = iota
	pointed      // none if the pointer is nil
	list
	pointedList
)

// field is one attribute, text or element of a record.
type field struct {
	offset uintptr
	form   form
	typ    reflect.Type // of one value
	size   uintptr      // of an item of a list
	list   reflect.Type // of all values

	space, local string
	any          bool   // it is read in any namespace
	open, close  []byte // the tags, or what is before and behind the value of an attribute
	null         []byte // the element of a nil pointer; nil: there is none

	scalar *scalar // nil: a record
	record *structure
	omit   bool
}

// is reports whether the field has a name.
func (f *field) is(space, local []byte) bool {
	return string(local) == f.local && (f.any || string(space) == f.space)
}

// append appends what is behind the name in the start tag of e, to the end tag.
func (r *structure) append(dst []byte, at ptr, e *field, depth int) (_ []byte, err error) {
	if depth > maxDepth {
		return dst, &Error{What: "the value nests too deep, or contains itself"}
	}
	for _, f := range r.attrs {
		if dst, err = f.appendAttr(dst, f.in(at)); err != nil {
			return dst, under(err, "@"+f.local)
		}
	}
	dst = append(dst, '>')
	if r.text != nil {
		if dst, err = r.text.scalar.append(dst, r.text.in(at)); err != nil {
			return dst, err
		}
	}
	for _, f := range r.elements {
		if dst, err = f.appendAll(dst, f.in(at), depth); err != nil {
			return dst, err
		}
	}
	return append(dst, e.close...), nil
}

func (f *field) appendAttr(dst []byte, at ptr) (_ []byte, err error) {
	if f.form == pointed {
		if at = *as[ptr](at); at == nil {
			return dst, nil
		}
	} else if f.omit && f.scalar.empty(at) {
		return dst, nil
	}
	dst = append(dst, f.open...)
	if dst, err = f.scalar.append(dst, at); err != nil {
		return dst, err
	}
	return append(dst, '"'), nil
}

// appendAll appends the elements of a field.
func (f *field) appendAll(dst []byte, at ptr, depth int) (_ []byte, err error) {
	switch f.form {
	case single:
		if f.omit && f.scalar != nil && f.scalar.empty(at) {
			return dst, nil
		}
	case pointed:
		if at = *as[ptr](at); at == nil {
			return append(dst, f.null...), nil
		}
	default:
		s := as[slice](at)
		for i := range s.len {
			item := s.item(i, f.size)
			if f.form == pointedList {
				if item = *as[ptr](item); item == nil {
					dst = append(dst, f.null...)
					continue
				}
			}
			if dst, err = f.appendOne(dst, item, depth); err != nil {
				return dst, under(err, numbered(f.local, i+1))
			}
		}
		return dst, nil
	}
	if dst, err = f.appendOne(dst, at, depth); err != nil {
		return dst, under(err, f.local)
	}
	return dst, nil
}

func (f *field) appendOne(dst []byte, at ptr, depth int) (_ []byte, err error) {
	dst = append(dst, f.open...)
	if f.record != nil {
		return f.record.append(dst, at, f, depth+1)
	}
	if dst, err = f.scalar.append(dst, at); err != nil {
		return dst, err
	}
	return append(dst, f.close...), nil
}

// read reads the element that the parser stands in, which is e, to its end.
func (r *structure) read(x *pull.Parser, at ptr, e *field) error {
	if r.named != nil {
		own := as[xml.Name](r.named.in(at))
		own.Space, own.Local = e.space, e.local
		if space, _ := x.Name(); string(space) != e.space {
			own.Space = string(space)
		}
	}
	for _, a := range x.Attrs() {
		for _, f := range r.attrs {
			if !f.is(a.Space, a.Local) {
				continue
			}
			to := f.in(at)
			if f.form == pointed {
				to = f.point(to)
			}
			if err := f.scalar.parse(to, a.Value); err != nil {
				return under(err, "@"+f.local)
			}
			break
		}
	}
	if r.text != nil {
		text, err := x.Content()
		if err != nil {
			return err
		}
		return r.text.scalar.parse(r.text.in(at), text)
	}
	next := 0
	for {
		step, err := x.Next()
		switch {
		case err != nil:
			return err
		case step == pull.EndTag:
			return nil
		case step == pull.Chars:
			continue
		}
		f := r.find(x, &next)
		if f == nil {
			err = x.Skip()
		} else {
			err = f.read(x, f.in(at))
		}
		if err != nil {
			return err
		}
	}
}

// find is the field of the element that the parser stands in; nil: there is none. Most elements are
// of the field that the last one was of, at next, or of one behind.
func (r *structure) find(x *pull.Parser, next *int) *field {
	space, local := x.Name()
	var other *field // which takes any namespace, where another one may be of this
	for range r.elements {
		if *next == len(r.elements) {
			*next = 0
		}
		f := r.elements[*next]
		if string(local) == f.local {
			if string(space) == f.space {
				return f
			}
			if f.any && other == nil {
				other = f
			}
		}
		*next++
	}
	return other
}

// read reads one element of a field.
func (f *field) read(x *pull.Parser, at ptr) error {
	null := len(x.Attrs()) > 0 && isNull(x.Attrs())
	local := f.local
	switch f.form {
	case single:
	case pointed:
		if null {
			*as[ptr](at) = nil
			return x.Skip()
		}
		at = f.point(at)
	default:
		all := as[slice](at)
		item := f.grow(at)
		if f.form == pointedList {
			if null && f.null != nil {
				return x.Skip()
			}
			item = f.point(item)
		}
		if err := f.readOne(x, item, null); err != nil {
			return under(err, numbered(local, all.len))
		}
		return nil
	}
	if err := f.readOne(x, at, null); err != nil {
		return under(err, local)
	}
	return nil
}

// point makes a pointer point to a new value, and returns where that is.
func (f *field) point(at ptr) ptr {
	v := f.allocate()
	*as[ptr](at) = v
	return v
}

func (f *field) readOne(x *pull.Parser, at ptr, null bool) error {
	if f.record != nil {
		return f.record.read(x, at, f)
	}
	text, err := x.Content()
	if err != nil {
		return err
	}
	if null {
		return nil
	}
	return f.scalar.parse(at, text)
}

// isNull reports whether xsi:nil says that there is no value (XML Schema part 1, section 2.6.2).
func isNull(attrs []pull.Attr) bool {
	for _, a := range attrs {
		if string(a.Local) == "nil" && string(a.Space) == xmlns.XSI {
			value := string(trim(a.Value))
			return value == "true" || value == "1"
		}
	}
	return false
}

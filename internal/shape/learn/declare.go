package learn

import (
	"strings"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmlns"
)

// Declaration is what a description of messages says of an element. Its methods are asked for what
// stands in a message, so that what it says of itself may have no end.
type Declaration interface {
	// Value is the type of the text in it; false: that is not known, or there is none.
	Value() (t shape.Type, known bool)
	// Attribute is what it says of an attribute.
	Attribute(space, local string) (use AttributeUse, known bool)
	// Element is what it says of an element inside; nil: nothing.
	Element(space, local string) (inside Declaration, occurs Occurrence)
	// Typed is what it says where xsi:type has this local name; nil: nothing.
	Typed(local string) Declaration
}

// AttributeUse is what a description says of an attribute.
type AttributeUse struct {
	Type     shape.Type
	Required bool
}

// Occurrence is how often an element occurs. Its zero value says nothing.
type Occurrence struct{ Optional, Repeats bool }

// Declare takes what is declared of what was learned from one message. Values get their types at
// once; what may be absent and what may repeat is noted until a second message is otherwise than
// the first ([Family.Widen]), since each costs a bit in every message. Texts stay those of the
// message. find gives the declarations of the elements in Header and Body
// of an envelope, or of the root element of what is none; nil where there is none.
func (f *Family) Declare(find func(space, local string) Declaration) {
	declare := func(d *draft) {
		if is := find(d.name.uri, d.name.local); is != nil {
			d.declare(is)
		}
	}
	if uri := f.root.name.uri; f.root.name.local != "Envelope" || uri != xmlns.SOAP11 && uri != xmlns.SOAP12 {
		declare(f.root)
		return
	}
	for _, part := range f.root.entries {
		for o := range part.forms {
			for _, e := range o.element.entries {
				for form := range e.forms {
					declare(form.element)
				}
			}
		}
	}
}

func (d *draft) declare(is Declaration) {
	for _, a := range d.attrs {
		if isXSIType(a) && len(a.fixed) == 1 {
			last := a.fixed[0][len(a.fixed[0])-1].text
			if is = is.Typed(last[strings.IndexByte(last, ':')+1:]); is == nil {
				return
			}
		}
	}
	for _, a := range d.attrs {
		if a.fixed != nil {
			continue
		}
		if use, known := is.Attribute(a.name.uri, a.name.local); known {
			a.typ = declaredType(a.typ, use.Type)
			a.mayLack = !use.Required
		}
	}
	switch {
	case d.any:
	case d.leaf:
		if t, known := is.Value(); known && (!d.isBlank || d.blank == "") {
			d.leafType = declaredType(d.leafType, t)
		}
	default:
		for _, e := range d.entries {
			e.declare(is)
		}
	}
}

// declare widens what stands at one place inside an element.
func (e *entry) declare(inside Declaration) {
	for o := range e.forms {
		is, occurs := inside.Element(o.element.name.uri, o.element.name.local)
		if is == nil {
			continue
		}
		o.element.declare(is)
		if o == e && !e.gap.value { // else nothing fixed would tell whether it is there
			e.mayLack, e.mayRepeat = occurs.Optional, occurs.Repeats
		}
	}
}

// declaredType is the type of a value that was taken for one type, and is declared as another. Text
// says nothing: it may well be a number, always. What is not as declared stays what it is.
func declaredType(learned, declared shape.Type) shape.Type {
	switch {
	case declared == shape.TypeText, learned == shape.TypeScientific:
		return learned
	case learned.Numeric() != declared.Numeric() && learned != shape.TypeText:
		return learned
	case declared == shape.TypeInt && learned.Scaled():
		return learned
	}
	return declared
}

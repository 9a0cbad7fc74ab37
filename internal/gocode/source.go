package gocode

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/hhfr/hhfr/internal/xsd"
)

// goFile is the text of a file of Go that is being written.
type goFile struct {
	strings.Builder
	docs map[xsd.Position]string
}

func (w *goFile) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// commentWidth is where comments wrap, in characters.
const commentWidth = 96

// comment writes paragraphs as a comment.
func (w *goFile) comment(paragraphs ...string) {
	first := true
	for _, text := range paragraphs {
		for _, p := range strings.Split(text, "\n\n") {
			fields := strings.FieldsFunc(p, func(r rune) bool {
				return unicode.IsSpace(r) || !unicode.IsPrint(r)
			})
			if len(fields) == 0 {
				continue
			}
			if !first {
				w.line("//")
			}
			first = false
			w.wrap(fields)
		}
	}
}

func (w *goFile) wrap(words []string) {
	line := "//"
	for _, word := range words {
		if len(line) > len("//") && len([]rune(line))+1+len([]rune(word)) > commentWidth {
			w.line("%s", line)
			line = "//"
		}
		line += " " + word
	}
	w.line("%s", line)
}

// structs writes types, and the constants of their values.
func (w *goFile) structs(all []*structType, enums []*enumType) {
	for _, s := range all {
		w.structType(s)
	}
	for _, e := range enums {
		w.enum(e)
	}
}

func (w *goFile) structType(s *structType) {
	w.line("")
	about := []string{s.name + " is " + s.described(), w.docs[s.place]}
	if s.of.Place != s.place {
		about = append(about, w.docs[s.of.Place])
	}
	w.comment(append(about, s.remarks()...)...)
	w.line("type %s struct {", s.name)
	if s.element != (xsd.QName{}) {
		form := ""
		if s.hasUnqualified() {
			form = "unqualified"
		}
		w.line("XMLName xml.Name %s", tag(s.element, "", form))
	}
	for _, f := range s.fields {
		if text := w.docs[f.place]; text != "" {
			w.comment(text)
		}
		w.line("%s", f.line())
	}
	w.line("}")
}

// hasUnqualified reports whether an element in a message has no namespace.
func (s *structType) hasUnqualified() bool {
	met := map[*structType]bool{s: true}
	for todo := []*structType{s}; len(todo) > 0; todo = todo[1:] {
		for _, f := range todo[0].fields {
			if f.role == elementField && f.xml.Space == "" {
				return true
			}
			if f.struc != nil && !met[f.struc] {
				met[f.struc] = true
				todo = append(todo, f.struc)
			}
		}
	}
	return false
}

// described says what a struct is, after its name.
func (s *structType) described() string {
	switch {
	case s.element != (xsd.QName{}):
		return fmt.Sprintf("the element %s of a message.", s.element)
	case s.of.Name.Local != "":
		return fmt.Sprintf("the type %s.", s.of.Name)
	case s.in != nil:
		return fmt.Sprintf("the content of an element of %s.", s.in.name)
	}
	return "the content of an element."
}

// remarks are what else is to be known of a struct: its choices, and what is not carried.
func (s *structType) remarks() (list []string) {
	for _, c := range s.choices {
		var branches []string
		for _, branch := range c.branches {
			var names []string
			for _, f := range branch {
				if f.lack == nil {
					names = append(names, f.name)
				}
			}
			branches = append(branches, strings.Join(names, " with "))
		}
		text := "One of these is set: " + strings.Join(branches, "; ") + "."
		if c.many {
			text = "A choice that repeats: " + strings.Join(branches, "; ") + "."
		} else if !c.required {
			text = "At most one" + strings.TrimPrefix(text, "One")
		}
		list = append(list, text)
	}
	if len(s.notes) > 0 {
		var what []string
		for _, l := range s.notes {
			what = append(what, l.What)
		}
		list = append(list, "Not carried: "+strings.Join(what, "; ")+".")
	}
	return list
}

// line is the declaration of a field.
func (f *structField) line() string {
	text := f.name + " " + f.goType() + " " + tag(f.xml, f.options(), f.soap())
	if len(f.says) > 0 {
		text += " // " + oneLine(strings.Join(f.says, ", "))
	}
	return text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// base is the type of one value of a field.
func (f *structField) base() string {
	switch {
	case f.struc != nil:
		return f.struc.name
	case f.enum != nil:
		return f.enum.name
	case f.many && f.kind == "uint8": // a slice of these is binary
		return "uint16"
	}
	return f.kind
}

func (f *structField) goType() string {
	switch {
	case f.many && f.nillable:
		return "[]*" + f.base()
	case f.many:
		return "[]" + f.base()
	case f.optional || f.nillable:
		return "*" + f.base()
	}
	return f.base()
}

func (f *structField) options() string {
	switch {
	case f.role == textField:
		return ",chardata"
	case f.role == attributeField && f.optional:
		return ",attr,omitempty"
	case f.role == attributeField:
		return ",attr"
	case f.optional && !f.many:
		return ",omitempty"
	}
	return ""
}

func (f *structField) soap() string {
	if f.nillable && (f.many || !f.optional) {
		return "nil"
	}
	return ""
}

// tag is the tag of a field; soap may be empty.
func tag(name xsd.QName, options, soap string) string {
	text := name.Local + options
	if name.Space != "" {
		text = name.Space + " " + text
	}
	text = "xml:" + strconv.Quote(text)
	if soap != "" {
		text += " soap:" + strconv.Quote(soap)
	}
	if strconv.CanBackquote(text) {
		return "`" + text + "`"
	}
	return strconv.Quote(text)
}

func (w *goFile) enum(e *enumType) {
	w.line("")
	what := "has a few values."
	if e.xml.Local != "" {
		what = fmt.Sprintf("is the type %s.", e.xml)
	}
	w.comment(e.name+" "+what, w.docs[e.place])
	w.line("type %s string", e.name)
	w.line("")
	w.line("// Values of %s.", e.name)
	w.line("const (")
	for i, v := range e.values {
		w.line("%s %s = %s", e.constants[i], e.name, strconv.Quote(v))
	}
	w.line(")")
}

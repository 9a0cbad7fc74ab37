package gocode

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xsd"
)

// goFile is the text of a file of Go that is being written, as gofmt has it; tests compare the two.
type goFile struct {
	strings.Builder
	docs   map[xsd.Position]string
	indent string // of comments
}

func (w *goFile) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// commentWidth is where comments wrap, in characters.
const commentWidth = 96

// comment writes paragraphs as a comment.
func (w *goFile) comment(paragraphs ...string) {
	for _, line := range commentOf(paragraphs...) {
		w.line("%s", strings.TrimRight(w.indent+"// "+line, " "))
	}
}

// commentOf are the lines of a comment.
func commentOf(paragraphs ...string) (list []string) {
	var all [][]string
	for _, text := range paragraphs {
		for _, p := range strings.Split(text, "\n\n") {
			if lines := wrapped(p); len(lines) > 0 {
				all = append(all, lines)
			}
		}
	}
	for i, lines := range all {
		if i > 0 {
			list = append(list, "")
		}
		// gofmt takes a line between paragraphs, without a full stop, for a heading.
		last, _ := utf8.DecodeLastRuneInString(lines[0])
		if i > 0 && i < len(all)-1 && len(lines) == 1 && (unicode.IsLetter(last) || unicode.IsDigit(last)) {
			lines[0] += "."
		}
		list = append(list, lines...)
	}
	return list
}

// quotes are as gofmt writes them in comments.
var quotes = strings.NewReplacer("``", "“", "''", "”")

// wrapped are the lines of a paragraph.
func wrapped(text string) (lines []string) {
	words := strings.FieldsFunc(quotes.Replace(text), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	})
	width := commentWidth
	for _, word := range words {
		if before, is := strings.CutSuffix(word, "]:"); is { // gofmt takes it for a link, which it moves
			word = before + "] :"
		}
		if word == "+build" { // it would be a condition
			word = "“+build”"
		}
		size := utf8.RuneCountInString(word) + 1
		if width += size; width > commentWidth {
			lines, width = append(lines, word), len("//")+size
			continue
		}
		lines[len(lines)-1] += " " + word
	}
	return lines
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
	var block [][]string
	if s.element != (xsd.QName{}) {
		form := ""
		if s.hasUnqualified() {
			form = "unqualified"
		}
		block = append(block, []string{"XMLName", "xml.Name", tag(s.element, "", form)})
	}
	for _, f := range s.fields {
		if text := w.docs[f.place]; len(commentOf(text)) > 0 {
			w.aligned(block)
			block = nil
			w.indent = "\t"
			w.comment(text)
			w.indent = ""
		}
		cells := []string{f.name, f.goType(), tag(f.xml, f.options(), f.soap())}
		if len(f.says) > 0 {
			cells = append(cells, "// "+oneLine(strings.Join(f.says, ", ")))
		}
		block = append(block, cells)
	}
	w.aligned(block)
	w.line("}")
}

// aligned writes lines of cells as gofmt does: a cell is as wide as those above and below it, as
// far as cells follow them.
func (w *goFile) aligned(lines [][]string) {
	widths := make([][]int, len(lines))
	for i, cells := range lines {
		widths[i] = make([]int, len(cells)-1)
		for c := range widths[i] {
			if i > 0 && c < len(widths[i-1]) {
				widths[i][c] = widths[i-1][c]
				continue
			}
			for below := i; below < len(lines) && c+1 < len(lines[below]); below++ {
				widths[i][c] = max(widths[i][c], utf8.RuneCountInString(lines[below][c]))
			}
		}
	}
	for i, cells := range lines {
		w.WriteByte('\t')
		for c, cell := range cells[:len(cells)-1] {
			fmt.Fprintf(w, "%-*s ", widths[i][c], cell)
		}
		w.line("%s", cells[len(cells)-1])
	}
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
	var block [][]string
	for i, v := range e.values {
		block = append(block, []string{e.constants[i], e.name, "= " + strconv.Quote(v)})
	}
	w.aligned(block)
	w.line(")")
}

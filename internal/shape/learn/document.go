package learn

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/shape/lexical"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// document is what was learned of a message: its root element and what stands around it.
type document struct {
	before, after gap
	root          *draft
}

// document reads prolog, root element and what follows it.
func (l *learner) document(partial bool) (d document, err error) {
	first := true
	for {
		tok, err := l.tk.Next()
		if err != nil {
			if errors.Is(err, io.EOF) || partial && errors.Is(err, &xmltext.Error{Code: xmltext.Truncated}) {
				break
			}
			return d, &shape.Error{Code: shape.Unlearnable, At: int64(tok.From), What: "not XML", Err: err}
		}
		switch tok.Kind {
		case xmltext.Start, xmltext.Empty:
			if d.root != nil && len(l.open) == 0 {
				return d, l.fail(tok.From, "a second root element")
			}
			element, err := l.start(tok)
			if err != nil {
				return d, err
			}
			if d.root == nil {
				d.root = element
			}
			if l.run = (run{from: tok.To, to: tok.To}); tok.Kind == xmltext.Empty {
				l.pop()
			}
		case xmltext.End:
			if err := l.end(tok); err != nil {
				return d, err
			}
			l.run = run{from: tok.To, to: tok.To}
		case xmltext.Doctype:
			return d, l.fail(tok.From, "a document type declaration")
		default:
			text := l.src[tok.From:tok.To]
			switch {
			case len(l.open) > 0:
				l.run.to = tok.To
				l.run.mark = l.run.mark || tok.Kind != xmltext.Text
			case d.root == nil && first && (isDeclaration(text) || isMark(text)):
				d.before.text += text
			case tok.Kind == xmltext.Text && !blank(text) && (!first || !isMark(text)):
				return d, l.fail(tok.From, "text outside the root element")
			case d.root == nil:
				d.before.add(tok.Kind, text)
			default:
				d.after.add(tok.Kind, text)
			}
		}
		first = first && isMark(l.src[tok.From:tok.To])
	}
	if d.root == nil || len(l.open) > 0 && !partial {
		return d, l.fail(len(l.src), "the message ends before its root element does")
	}
	for len(l.open) > 0 {
		l.pop()
	}
	return d, nil
}

// declaration is an XML declaration with what XML 1.0 has in it (section 2.8) and nothing else:
// that is markup.
var declaration = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^<\?xml\s+version\s*=\s*["']1\.[0-9]+["']` +
		`(\s+encoding\s*=\s*["'][A-Za-z][A-Za-z0-9._-]{0,39}["'])?(\s+standalone\s*=\s*["'](yes|no)["'])?\s*\?>$`)
})

func isDeclaration(text string) bool {
	return strings.HasPrefix(text, "<?xml") && len(text) <= maxDeclaration && declaration().MatchString(text)
}

// isMark tells a byte order mark, with white space after it.
func isMark(text string) bool {
	rest, ok := strings.CutPrefix(text, "\xEF\xBB\xBF")
	return ok && blank(rest)
}

// start opens an element.
func (l *learner) start(tok xmltext.Token) (*draft, error) {
	if len(l.open) >= maxDepth {
		return nil, &shape.Error{Code: shape.TooLarge, At: int64(tok.From), What: "elements nested too deeply"}
	}
	depth := len(l.open) + 1
	attrs := l.tk.Attrs()
	for _, a := range attrs {
		prefix, local := cutName(l.src[a.NameFrom:a.NameTo])
		if prefix != "xmlns" && (prefix != "" || local != "xmlns") {
			continue
		}
		b := binding{uri: l.src[a.ValueFrom:a.ValueTo], depth: depth}
		if prefix == "xmlns" {
			b.prefix = local
			if lexical.Generated([]byte(local)) && l.slots < shape.MaxSlots {
				b.slot = &slot{number: slotNumbers.Add(1)}
				l.slots++
			}
		}
		l.binds = append(l.binds, b)
	}
	d := l.drafts.get()
	raw := l.src[tok.NameFrom:tok.NameTo]
	*d = draft{name: l.name(raw, true), raw: raw, before: l.gap(), attrs: d.attrs[:0], entries: d.entries[:0]}
	for _, a := range attrs {
		d.attrs = append(d.attrs, l.attribute(a))
	}
	tag := l.src[tok.TagEnd:tok.To]
	if tok.Kind == xmltext.Empty {
		d.empty = tag
	} else {
		d.open, d.end = tag, ">"
	}
	l.open = append(l.open, d)
	return d, nil
}

// gap is what was read since the last tag.
func (l *learner) gap() gap { return gapOf(l.src[l.run.from:l.run.to], l.run.mark) }

// end closes an element.
func (l *learner) end(tok xmltext.Token) error {
	if len(l.open) == 0 {
		return l.fail(tok.From, "an end tag that nothing began")
	}
	d := l.open[len(l.open)-1]
	if name := l.src[tok.NameFrom:tok.NameTo]; name != d.raw {
		return l.fail(tok.From, "</"+name+"> where <"+d.raw+"> is open")
	}
	d.end = l.src[tok.TagEnd:tok.To]
	l.pop()
	return nil
}

// pop takes the innermost element off the stack and hangs it into its parent.
func (l *learner) pop() {
	d := l.open[len(l.open)-1]
	d.finish(l.src[l.run.from:l.run.to], l.octets[l.run.from:l.run.to], l.run.mark, l.plain)
	l.run = run{from: l.run.to, to: l.run.to}
	for n := len(l.binds); n > 0 && l.binds[n-1].depth == len(l.open); n-- {
		l.binds = l.binds[:n-1]
	}
	l.open = l.open[:len(l.open)-1]
	if len(l.open) > 0 {
		l.hang(l.open[len(l.open)-1], d)
	}
}

// hang puts an element into its parent: as a row of the array it continues, or begins with the
// sibling before it, or as an entry of its own.
func (l *learner) hang(parent, d *draft) {
	if n := len(parent.entries) - 1; n >= 0 {
		last := parent.entries[n]
		if l.plain {
			if !last.gap.value && last.gap == d.before && sameMarkup(last.element, d) {
				absorb(last.element, d)
				last.array = true
				l.release(d)
				return
			}
		} else if o := last.find(d.before, d); o != nil {
			if fits(o.element, d) {
				absorb(o.element, d)
				o.gap, last.array = d.before, true
				l.release(d)
				return
			}
			var m merger
			if m.add(last, &entry{gap: d.before, element: d}) {
				last.array = true
				return
			}
		}
	}
	e := l.rows.get()
	*e = entry{gap: d.before, element: d}
	parent.entries = append(parent.entries, e)
}

// release takes an element back, and what stands in it.
func (l *learner) release(d *draft) {
	for _, e := range d.entries {
		for o := range e.forms {
			l.release(o.element)
		}
		l.rows.put(e)
	}
	for _, a := range d.attrs {
		l.attrs.put(a)
	}
	l.drafts.put(d)
}

// finish is called when the element is closed; text, and the same as bytes, is what stands between
// its last two tags, mark tells that there is more in it than character data.
func (d *draft) finish(text string, octets []byte, mark, plain bool) {
	if d.leaf = len(d.entries) == 0 && d.empty == ""; d.leaf {
		if d.isBlank = !mark && blank(text); d.isBlank {
			d.blank = text
		}
		d.leafType = shape.TypeText
		if !mark {
			d.leafType = typeOf(octets)
		}
	} else if len(d.entries) > 0 {
		d.tail = gapOf(text, mark)
	}
	if !plain && len(d.entries) > minRecurring && d.mayRecur() {
		d.gatherRecurring()
	}
	d.settle()
}

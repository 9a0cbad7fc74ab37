package shape

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// maxLearnDepth bounds the nesting of elements: each takes four levels or so of a tree that may have maxDepth.
const maxLearnDepth = 48

// slotNumbers tells the slots of all families apart; shapes number their own anew.
var slotNumbers atomic.Int64

// learner reads one message into draft elements. Their texts are cut from it.
type learner struct {
	octets []byte
	src    string // the same
	*reading
	slots  int
	run    run
	parts  []part
	fixed  [][]part
	drafts pool[draft]
	attrs  pool[attribute]
	rows   pool[entry]
}

func newLearner(message []byte) *learner {
	const usual = 16 // values of markup in most messages
	l := &learner{octets: message, src: string(message), parts: make([]part, 0, usual), fixed: make([][]part, 0, usual)}
	l.reading = readings.Get().(*reading)
	l.tk.Reset(message)
	return l
}

// reading is what a learner needs only while it reads.
type reading struct {
	tk    *xmltext.Tokenizer
	binds []binding
	open  []*draft
}

// readings are used again.
var readings = sync.Pool{New: func() any { return &reading{tk: xmltext.New(nil)} }}

// done gives back what was needed for reading; no part of the message stays in it.
func (l *learner) done() {
	r := l.reading
	r.tk.Reset(nil)
	clear(r.binds[:cap(r.binds)])
	clear(r.open[:cap(r.open)])
	r.binds, r.open = r.binds[:0], r.open[:0]
	readings.Put(r)
	l.reading = nil
}

// run is what was read since the last tag: src[from:to].
type run struct {
	from, to int
	mark     bool // it has comments, instructions or CDATA sections
}

// pool makes things many at a time, and takes those back that are not needed any more.
type pool[T any] struct {
	room []T
	free []*T
	made int
}

func (p *pool[T]) get() *T {
	if n := len(p.free); n > 0 {
		x := p.free[n-1]
		p.free = p.free[:n-1]
		return x
	}
	if len(p.room) == 0 {
		const least, most = 4, 64
		n := min(max(p.made/2, least), most) // half as many again
		p.room = make([]T, n)
		p.made += n
	}
	x := &p.room[0]
	p.room = p.room[1:]
	return x
}

func (p *pool[T]) put(x *T) { p.free = append(p.free, x) }

// binding is a namespace declaration in scope.
type binding struct {
	prefix, uri string
	slot        *slot
	depth       int
}

func (l *learner) fail(at int, what string) error {
	return &Error{Code: Unlearnable, At: int64(at), What: what}
}

// document reads prolog, root element and what follows it.
func (l *learner) document(partial bool) (*Family, error) {
	var before, after gap
	var root *draft
	first := true
	for {
		tok, err := l.tk.Next()
		if err != nil {
			if errors.Is(err, io.EOF) || partial && errors.Is(err, &xmltext.Error{Code: xmltext.Truncated}) {
				break
			}
			return nil, &Error{Code: Unlearnable, At: int64(tok.From), What: "not XML", Err: err}
		}
		switch tok.Kind {
		case xmltext.Start, xmltext.Empty:
			if root != nil && len(l.open) == 0 {
				return nil, l.fail(tok.From, "a second root element")
			}
			d, err := l.start(tok)
			if err != nil {
				return nil, err
			}
			if root == nil {
				root = d
			}
			if l.run = (run{from: tok.To, to: tok.To}); tok.Kind == xmltext.Empty {
				l.pop()
			}
		case xmltext.End:
			if err := l.end(tok); err != nil {
				return nil, err
			}
			l.run = run{from: tok.To, to: tok.To}
		case xmltext.Doctype:
			return nil, l.fail(tok.From, "a document type declaration")
		default:
			text := l.src[tok.From:tok.To]
			switch {
			case len(l.open) > 0:
				l.run.to = tok.To
				l.run.mark = l.run.mark || tok.Kind != xmltext.Text
			case root == nil && first && (isDeclaration(text) || isMark(text)):
				before.text += text
			case tok.Kind == xmltext.Text && !blank(text) && (!first || !isMark(text)):
				return nil, l.fail(tok.From, "text outside the root element")
			case root == nil:
				before.add(tok.Kind, text)
			default:
				after.add(tok.Kind, text)
			}
		}
		first = first && isMark(l.src[tok.From:tok.To])
	}
	if root == nil || len(l.open) > 0 && !partial {
		return nil, l.fail(len(l.src), "the message ends before its root element does")
	}
	for len(l.open) > 0 {
		l.pop()
	}
	return &Family{before: before, after: after, root: root}, nil
}

// declaration is an XML declaration with what XML 1.0 has in it (section 2.8) and nothing else: that is markup.
var declaration = regexp.MustCompile(`^<\?xml\s+version\s*=\s*["']1\.[0-9]+["']` +
	`(\s+encoding\s*=\s*["'][A-Za-z][A-Za-z0-9._-]{0,39}["'])?(\s+standalone\s*=\s*["'](yes|no)["'])?\s*\?>$`)

func isDeclaration(text string) bool {
	return strings.HasPrefix(text, "<?xml") && len(text) <= maxDeclaration && declaration.MatchString(text)
}

// isMark tells a byte order mark, with white space after it.
func isMark(text string) bool {
	rest, ok := strings.CutPrefix(text, "\xEF\xBB\xBF")
	return ok && blank(rest)
}

func blank(b string) bool {
	for i := range len(b) {
		if !xmltext.IsSpace(b[i]) {
			return false
		}
	}
	return true
}

// start opens an element.
func (l *learner) start(tok xmltext.Token) (*draft, error) {
	if len(l.open) >= maxLearnDepth {
		return nil, &Error{Code: TooLarge, At: int64(tok.From), What: "elements nested too deeply"}
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
			if generated([]byte(local)) && l.slots < maxSlots {
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
	d.finish(l.src[l.run.from:l.run.to], l.octets[l.run.from:l.run.to], l.run.mark)
	l.run = run{from: l.run.to, to: l.run.to}
	for n := len(l.binds); n > 0 && l.binds[n-1].depth == len(l.open); n-- {
		l.binds = l.binds[:n-1]
	}
	l.open = l.open[:len(l.open)-1]
	if len(l.open) > 0 {
		l.hang(l.open[len(l.open)-1], d)
	}
}

// hang puts an element into its parent: as a row of the array it continues, or begins with the sibling before it, or as an entry of its own.
func (l *learner) hang(parent, d *draft) {
	if n := len(parent.entries) - 1; n >= 0 {
		last := parent.entries[n]
		if o := last.find(d.before, d); o != nil {
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

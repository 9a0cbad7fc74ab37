package learn

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/shape"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// slotNumbers tells the slots of all families apart; shapes number their own anew.
var slotNumbers atomic.Int64

// learner reads one message into draft elements. Their texts are cut from it.
type learner struct {
	octets []byte
	src    string // the same
	*reading
	plain  bool // only siblings that are alike are an array
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

func (l *learner) fail(at int, what string) error {
	return &shape.Error{Code: shape.Unlearnable, At: int64(at), What: what}
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

// cutName cuts a name as written into prefix and local part.
func cutName(name string) (prefix, local string) {
	if i := strings.IndexByte(name, ':'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

func (l *learner) lookup(prefix string) (binding, bool) {
	for i := len(l.binds) - 1; i >= 0; i-- {
		if l.binds[i].prefix == prefix {
			return l.binds[i], true
		}
	}
	return binding{}, false
}

// name resolves a name as written; a default namespace counts for elements only.
func (l *learner) name(written string, element bool) name {
	prefix, local := cutName(written)
	n := name{prefix: prefix, local: local}
	if prefix == "" && !element {
		return n
	}
	if b, ok := l.lookup(prefix); ok {
		n.uri, n.slot = b.uri, b.slot
	}
	return n
}

func (l *learner) attribute(a xmltext.Attr) *attribute {
	written, value := l.src[a.NameFrom:a.NameTo], l.src[a.ValueFrom:a.ValueTo]
	d := l.attrs.get()
	*d = attribute{lead: l.src[a.From:a.NameFrom], eq: l.src[a.NameTo:a.ValueFrom], quote: l.src[a.ValueTo:a.To]}
	prefix, local := cutName(written)
	switch {
	case prefix == "xmlns":
		b, _ := l.lookup(local)
		d.name = name{prefix: local, local: "xmlns", slot: b.slot}
		if d.declares = b.slot; d.declares != nil {
			d.name.uri = b.uri // generated prefixes are told apart by what they stand for
		}
		d.fixed = l.value(part{text: value})
	case prefix == "" && local == "xmlns":
		d.name = name{local: local}
		d.fixed = l.value(part{text: value})
	default:
		d.name = l.name(written, false)
		if markup(d.name) {
			d.fixed = l.qname(value)
		} else {
			d.typ = typeOf(l.octets[a.ValueFrom:a.ValueTo])
		}
	}
	return d
}

// qname cuts a value that may be a qualified name, so that a generated prefix in it is its slot.
func (l *learner) qname(value string) [][]part {
	if prefix, local := cutName(value); prefix != "" {
		if b, ok := l.lookup(prefix); ok && b.slot != nil {
			return l.value(part{slot: b.slot}, part{text: value[len(value)-len(local)-1:]})
		}
	}
	return l.value(part{text: value})
}

// value gives the one value of an attribute that is markup.
func (l *learner) value(parts ...part) [][]part {
	n, k := len(l.parts), len(l.fixed)
	l.parts = append(l.parts, parts...)
	l.fixed = append(l.fixed, l.parts[n:len(l.parts):len(l.parts)])
	return l.fixed[k : k+1 : k+1]
}

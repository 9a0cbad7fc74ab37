package shape

import (
	"strings"

	"github.com/hhfr/hhfr/internal/xmltext"
)

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

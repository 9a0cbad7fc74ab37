package fastinfoset

import "io"

// Reader reads a document in memory, event by event. Its zero value reads an empty one. Once its
// memory has the size that documents need, it allocates nothing.
type Reader struct {
	// Limits bound what is read; what is 0 is as there.
	Limits Limits
	// External finds the vocabulary that a URI names; nil, also as a function: it is unknown.
	External func(uri string) *Vocabulary
	// NoDoctype refuses document type declarations, notations, unparsed entities and references to
	// entities, which SOAP has not (SOAP 1.1, section 3; SOAP 1.2 part 1, section 5).
	NoDoctype bool

	src        []byte
	at         int
	item       int // where the item begins that is read
	begun      bool
	ends       bool // the second half of a byte of two terminators is still to come
	err        error
	limits     Limits
	tables     readTables
	decoded    []byte // texts that are not as they stand in src
	expanded   int64  // text that was returned
	grammar    grammar
	ev         Event
	properties DocumentProperties
}

// Reset begins with a document, which must not change while it is read.
func (r *Reader) Reset(src []byte) {
	r.limits = r.Limits
	r.limits.fill()
	r.tables.reset()
	r.grammar.reset(r.limits.Depth)
	r.src, r.at, r.item, r.begun, r.ends, r.err = src, 0, 0, false, false, nil
	r.decoded, r.expanded = r.decoded[:0], 0
}

// Offset is where the event that was returned last begins, in bytes.
func (r *Reader) Offset() int { return r.item }

// Next returns the next event, which is the same memory each time. Errors are *[Error], and
// [io.EOF] behind EndDocument; an error stays.
func (r *Reader) Next() (*Event, error) {
	if r.err != nil {
		return nil, r.err
	}
	r.ev = Event{Declared: r.ev.Declared[:0], Attrs: r.ev.Attrs[:0]}
	switch {
	case r.grammar.ended:
		r.err = io.EOF
		return nil, r.err
	case !r.begun:
		r.begun = true
		r.document()
	case r.ends:
		r.ends = false
		r.end()
	default:
		r.item = r.at
		r.next(r.next8())
	}
	if r.err == nil {
		r.accept()
	}
	if r.err != nil {
		return nil, r.err
	}
	return &r.ev, nil
}

// endedTwice is what Apache CXF writes behind a document, whose end it tells its writer twice.
const endedTwice = "\xF0"

// accept checks an event that was read.
func (r *Reader) accept() {
	ev := &r.ev
	if code, wrong := r.grammar.step(ev); wrong != "" {
		r.fail(code, r.item, "%s: %.40q", wrong, ev.Name.Local)
		return
	}
	r.expanded += ev.textBytes()
	switch {
	case r.expanded > r.limits.TextBytes:
		r.fail(Excessive, r.item, "more than %d bytes of text", r.limits.TextBytes)
	case r.NoDoctype && (ev.Kind == StartDoctype || ev.Kind == EntityReference ||
		ev.Properties != nil && len(ev.Properties.Notations)+len(ev.Properties.Unparsed) > 0):
		r.fail(Refused, r.item, "a document type declaration, or an entity or notation of one")
	case ev.Kind == EndDocument && (r.ends || r.at < len(r.src) && string(r.src[r.at:]) != endedTwice):
		r.fail(Malformed, r.at, "something behind the end of the document")
	}
}

// textBytes is about what an event takes in XML, and what its namespaces take, which are compared.
func (ev *Event) textBytes() int64 {
	n := ev.Name.textBytes() + ev.Value.textBound()
	for i := range ev.Declared {
		n += int64(len(ev.Declared[i].Prefix) + len(ev.Declared[i].Space))
	}
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		n += a.Name.textBytes() + a.Value.textBound()
	}
	return n + int64(len(ev.System)+len(ev.Public))
}

func (n *Name) textBytes() int64 { return int64(len(n.Prefix) + len(n.Space) + len(n.Local)) }

// document reads all that stands before the children (X.891 7.2, C.2).
func (r *Reader) document() {
	n, ok := xmlDeclaration(r.src)
	if !ok {
		r.fail(Malformed, 0, "an XML declaration that is none of Fast Infoset")
		return
	}
	r.at = n
	for i := range len(magic) {
		if b := r.next8(); r.err == nil && b != magic[i] {
			r.fail(Malformed, r.at-1, "byte %#02x where %#02x is expected: no Fast Infoset of version 1", b, magic[i])
		}
	}
	p := &r.properties
	*p = DocumentProperties{XMLDeclaration: n > 0, Additional: p.Additional[:0], Notations: p.Notations[:0],
		Unparsed: p.Unparsed[:0]}
	present := r.next8()
	if present&0x80 != 0 {
		r.fail(Malformed, r.at-1, "unknown parts of a document")
	}
	if present&0x40 != 0 {
		r.list(func() {
			uri := r.checked(r.first())
			p.Additional = append(p.Additional, Additional{uri, r.first()})
		})
	}
	if present&0x20 != 0 {
		r.vocabulary()
	}
	if present&0x10 != 0 {
		r.declared(&p.Notations, 0xC0, 0xFC)
	}
	if present&0x08 != 0 {
		r.declared(&p.Unparsed, 0xD0, 0xFE)
	}
	if present&0x04 != 0 {
		p.Encoding = r.checked(r.first())
	}
	if present&0x02 != 0 {
		switch b := r.next8(); b {
		case 0:
			p.Standalone = "no"
		case 1:
			p.Standalone = "yes"
		default:
			r.fail(Malformed, r.at-1, "byte %#02x is no boolean", b)
		}
	}
	if present&0x01 != 0 {
		p.Version = r.valueOn1(&r.tables.texts).Bytes
	}
	r.ev.Kind, r.ev.Properties = StartDocument, p
}

// declared reads notations (X.891 7.11) or unparsed entities (7.10), which begin with what first
// has, as far as mask says.
func (r *Reader) declared(list *[]NotationOrEntity, first, mask byte) {
	for r.err == nil {
		r.item = r.at
		b := r.next8()
		switch {
		case b == 0xF0:
			return
		case b&mask != first:
			r.fail(Malformed, r.item, "byte %#02x begins no notation or unparsed entity", b)
			return
		case len(*list) >= r.limits.Entries:
			r.fail(Excessive, r.item, "more than %d notations or unparsed entities", r.limits.Entries)
			return
		}
		d := NotationOrEntity{Name: r.identifying(&r.tables.ncnames, true)}
		entity := first != 0xC0
		if entity || b&2 != 0 {
			d.System = r.identifying(&r.tables.others, false)
		}
		if b&1 != 0 {
			d.Public = r.identifying(&r.tables.others, false)
		}
		if entity {
			d.Notation = r.identifying(&r.tables.ncnames, true)
		}
		*list = append(*list, d)
	}
}

// next reads the item that begins with b.
func (r *Reader) next(b byte) {
	ev := &r.ev
	switch {
	case r.err != nil:
	case b < 0x80:
		r.element(b)
	case b < 0xC0:
		ev.Kind, ev.Value = Characters, r.chunk(b)
	case b&0xFC == 0xC4:
		ev.Kind = StartDoctype
		r.identifiers(b)
	case b&0xFC == 0xC8:
		ev.Kind, ev.Name.Local = EntityReference, r.identifying(&r.tables.ncnames, true)
		r.identifiers(b)
	case b == 0xE1:
		ev.Kind, ev.Name.Local = Instruction, r.identifying(&r.tables.ncnames, true)
		ev.Value = r.valueOn1(&r.tables.texts)
	case b == 0xE2:
		ev.Kind, ev.Value = Comment, r.valueOn1(&r.tables.texts)
	case b == 0xF0, b == 0xFF:
		r.ends = b == 0xFF
		r.end()
	default:
		r.fail(Malformed, r.item, "byte %#02x begins no item", b)
	}
}

// identifiers reads the system and the public identifier that b announces.
func (r *Reader) identifiers(b byte) {
	if b&2 != 0 {
		r.ev.System = r.identifying(&r.tables.others, false)
	}
	if b&1 != 0 {
		r.ev.Public = r.identifying(&r.tables.others, false)
	}
}

// end is a terminator.
func (r *Reader) end() {
	switch {
	case r.grammar.inDoctype:
		r.ev.Kind = EndDoctype
	case len(r.grammar.open) > 0:
		r.ev.Kind = EndElement
	default:
		r.ev.Kind = EndDocument
	}
}

// element reads the beginning of an element (X.891 7.3, C.3).
func (r *Reader) element(first byte) {
	ev, b := &r.ev, first
	ev.Kind = StartElement
	if first&0x3F == 0x38 {
		r.namespaces()
		if b = r.next8(); b&0xC0 != 0 {
			r.fail(Malformed, r.at-1, "byte %#02x begins no name of an element", b)
		}
	}
	if b&0x3C == 0x3C {
		ev.Name = r.newName(&r.tables.elements, b)
	} else {
		ev.Name = entry(r, r.tables.elements, r.integer(b, 3), "names of elements")
	}
	if first&0x40 != 0 {
		r.attributes()
	}
}

// namespaces reads namespace attributes (X.891 7.12, C.12), and their end.
func (r *Reader) namespaces() {
	for r.err == nil {
		b := r.next8()
		switch {
		case b == 0xF0:
			return
		case b&0xFC != 0xCC:
			r.fail(Malformed, r.at-1, "byte %#02x begins no namespace", b)
			return
		case len(r.ev.Declared) >= maxScopes:
			r.fail(Excessive, r.at-1, "more than %d prefixes", maxScopes)
			return
		}
		var d Prefixed
		if b&2 != 0 {
			d.Prefix = r.identifying(&r.tables.prefixes, true)
		}
		if b&1 != 0 {
			d.Space = r.identifying(&r.tables.namespaces, false)
		}
		r.ev.Declared = append(r.ev.Declared, d)
	}
}

// attributes reads attributes (X.891 7.4, C.4), and their end.
func (r *Reader) attributes() {
	for r.err == nil {
		b := r.next8()
		switch {
		case b == 0xF0, b == 0xFF:
			r.ends = b == 0xFF
			return
		case b&0x80 != 0:
			r.fail(Malformed, r.at-1, "byte %#02x begins no attribute", b)
			return
		case len(r.ev.Attrs) >= maxAttrs:
			r.fail(Excessive, r.at-1, "more than %d attributes of one element", maxAttrs)
			return
		}
		var a Attr
		if b&0x7C == 0x78 {
			a.Name = r.newName(&r.tables.attributes, b)
		} else {
			a.Name = entry(r, r.tables.attributes, r.integer2(b), "names of attributes")
		}
		a.Value = r.valueOn1(&r.tables.values)
		r.ev.Attrs = append(r.ev.Attrs, a)
	}
}

// newName reads a name of which b says whether it has a prefix and a namespace (X.891 7.16, C.17,
// C.18).
func (r *Reader) newName(table *[]Name, b byte) (n Name) {
	if b&3 == 2 {
		r.fail(Malformed, r.at-1, "a name with a prefix and without a namespace")
		return n
	}
	if b&2 != 0 {
		n.Prefix = r.identifying(&r.tables.prefixes, true)
	}
	if b&1 != 0 {
		n.Space = r.identifying(&r.tables.namespaces, false)
	}
	n.Local = r.identifying(&r.tables.locals, true)
	add(r, table, n, 0)
	return n
}

package fastinfoset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

const (
	// shortText is from how many characters on texts are in no table, as in the Java library, whose
	// documents are the same byte for byte.
	shortText = 32
	// maxTexts bounds the texts in tables, in bytes: receivers need memory for them.
	maxTexts = 4 << 20
	// maxString is the longest string (X.891 C.22: 2^32 bytes).
	maxString = math.MaxUint32
)

// InfosetWriter writes a document into memory, event by event. Its zero value is ready for a first
// one. Once its memory has the size that documents need, it allocates nothing.
//
// It never writes what the Java library FastInfoset 2.1.1 misreads: names, alphabets and algorithms
// in an initial vocabulary, booleans of some numbers, an e in the numeric alphabet, CDATA sections
// in attributes, and values of algorithms in comments and instructions.
type InfosetWriter struct {
	// External is the vocabulary that ExternalURI names, which readers have, too.
	ExternalURI string
	External    *Vocabulary
	// Initial has strings and values that the document tells first. Other entries are not written.
	Initial *Vocabulary

	dst     []byte
	begin   int  // of the document in dst
	half    bool // dst ends in a terminator with which the next one can share a byte
	begun   bool
	err     error
	texts   int // bytes in the tables of texts
	grammar grammar
	parser  pull.Parser
	ev      Event  // of FromXML
	packed  []byte // a value in another form

	prefixes, namespaces, locals, ncnames, uris interned
	values, chunks, others                      interned
	elements, attributes                        interned
}

// Reset begins with a document, which is appended to dst.
func (w *InfosetWriter) Reset(dst []byte) {
	w.dst, w.begin, w.half, w.begun, w.err, w.texts = dst, len(dst), false, false, nil, 0
	w.grammar.reset(math.MaxInt)
	for _, t := range [...]*interned{
		&w.prefixes, &w.namespaces, &w.locals, &w.ncnames, &w.uris, &w.values, &w.chunks, &w.others, &w.elements,
		&w.attributes,
	} {
		t.reset()
	}
	w.prefixes.add(xmlPrefix)
	w.namespaces.add(xmlNamespace)
}

// Bytes is what was written behind that with which [InfosetWriter.Reset] began, and that.
func (w *InfosetWriter) Bytes() []byte { return w.dst }

// Write writes an event, as a [Reader] returns it. Without StartDocument, the document has no
// properties. The names of an element must not change before it ends. Errors are *[Error]; an error
// stays.
func (w *InfosetWriter) Write(ev *Event) error {
	if w.err != nil {
		return w.err
	}
	if !w.begun {
		w.begun = true
		properties := ev.Properties
		if properties == nil {
			properties = &DocumentProperties{}
		}
		if w.document(properties); ev.Kind == StartDocument {
			return w.err
		}
	} else if ev.Kind == StartDocument {
		w.fail(Malformed, "a second beginning of the document")
	}
	if code, wrong := w.grammar.step(ev); wrong != "" {
		w.fail(code, "%s: %.40q", wrong, ev.Name.Local)
	}
	if w.err == nil {
		w.item(ev)
	}
	return w.err
}

func (w *InfosetWriter) fail(code Code, format string, args ...any) {
	if w.err == nil {
		w.err = problem(code, len(w.dst)-w.begin, "%w", fmt.Errorf(format, args...))
	}
}

func (w *InfosetWriter) item(ev *Event) {
	switch ev.Kind {
	case EndElement, EndDoctype, EndDocument:
		w.terminate()
		return
	case Characters:
		if len(ev.Value.Bytes) == 0 {
			return // there is no empty one
		}
	default:
	}
	w.half = false
	switch ev.Kind {
	case StartElement:
		w.element(ev)
	case Characters:
		w.chunk(ev.Value)
	case Comment:
		w.dst = append(w.dst, 0xE2)
		w.value(&w.others, ev.Value)
	case Instruction:
		w.dst = append(w.dst, 0xE1)
		w.identifying(&w.ncnames, ev.Name.Local, true)
		w.value(&w.others, ev.Value)
	case StartDoctype:
		w.dst = append(w.dst, 0xC4|two(ev.System, ev.Public))
		w.identifiers(ev.System, ev.Public)
	case EntityReference:
		w.dst = append(w.dst, 0xC8|two(ev.System, ev.Public))
		w.identifying(&w.ncnames, ev.Name.Local, true)
		w.identifiers(ev.System, ev.Public)
	default:
		w.fail(Malformed, "no event of kind %d", ev.Kind)
	}
}

// two are the bits that say which of two strings are there.
func two(first, second []byte) (bits byte) {
	if len(first) > 0 {
		bits = 2
	}
	if len(second) > 0 {
		bits |= 1
	}
	return bits
}

func (w *InfosetWriter) identifiers(ids ...[]byte) {
	for _, id := range ids {
		if len(id) > 0 {
			w.identifying(&w.uris, id, false)
		}
	}
}

// terminate writes a terminator, of four bits; two share a byte.
func (w *InfosetWriter) terminate() {
	if w.half {
		w.dst[len(w.dst)-1] = 0xFF
	} else {
		w.dst = append(w.dst, 0xF0)
	}
	w.half = !w.half
}

// element writes the beginning of an element (X.891 7.3, C.3).
func (w *InfosetWriter) element(ev *Event) {
	first := byte(0)
	if len(ev.Attrs) > 0 {
		first = 0x40
	}
	if len(ev.Declared) > 0 {
		w.dst = append(w.dst, first|0x38)
		for _, d := range ev.Declared {
			w.dst = append(w.dst, 0xCC|two(d.Prefix, d.Space))
			if len(d.Prefix) > 0 {
				w.identifying(&w.prefixes, d.Prefix, true)
			}
			if len(d.Space) > 0 {
				w.identifying(&w.namespaces, d.Space, false)
			}
		}
		w.dst = append(w.dst, 0xF0)
		first = 0
	}
	if place, ok := w.name(&w.elements, &ev.Name, first|0x3C); ok {
		w.dst = appendInteger(w.dst, first, 3, place)
	}
	for i := range ev.Attrs {
		a := &ev.Attrs[i]
		if place, ok := w.name(&w.attributes, &a.Name, 0x78); ok {
			w.dst = appendInteger2(w.dst, 0, place)
		}
		w.value(&w.values, a.Value)
	}
	if len(ev.Attrs) > 0 {
		w.terminate()
	}
}

// key is a name by the places of its parts, if all are in tables.
func (w *InfosetWriter) key(n *Name) (key [12]byte, ok bool) {
	prefix, space := -1, -1
	local, ok := w.locals.find(n.Local)
	if ok && len(n.Prefix) > 0 {
		prefix, ok = w.prefixes.find(n.Prefix)
	}
	if ok && len(n.Space) > 0 {
		space, ok = w.namespaces.find(n.Space)
	}
	for i, place := range [...]int{prefix, space, local} {
		binary.BigEndian.PutUint32(key[4*i:], uint32(place+1))
	}
	return key, ok
}

// name returns the place of a name, or writes it (X.891 7.16, C.17, C.18), from then on in the
// table.
func (w *InfosetWriter) name(table *interned, n *Name, literal byte) (place int, ok bool) {
	key, known := w.key(n)
	if known {
		if place, ok = table.find(key[:]); ok {
			return place, true
		}
	}
	w.dst = append(w.dst, literal|two(n.Prefix, n.Space))
	if len(n.Prefix) > 0 {
		w.identifying(&w.prefixes, n.Prefix, true)
	}
	if len(n.Space) > 0 {
		w.identifying(&w.namespaces, n.Space, false)
	}
	w.identifying(&w.locals, n.Local, true)
	key, _ = w.key(n) // of parts that found no place it is never looked up
	table.add(key[:])
	return 0, false
}

// identifying writes an index, or a string, which then is in the table (X.891 7.13, C.13).
func (w *InfosetWriter) identifying(table *interned, text []byte, isName bool) {
	if place, ok := table.find(text); ok {
		w.dst = appendInteger2(w.dst, 0x80, place)
		return
	}
	if isName && !pull.IsNCName(text) {
		w.fail(Malformed, "%.40q is no name", text)
	}
	w.text(text)
	table.add(text)
}

// text writes characters from bit 2 on.
func (w *InfosetWriter) text(text []byte) {
	w.valid(text)
	w.string(text)
}

func (w *InfosetWriter) string(b []byte) {
	if w.fits(b) {
		w.dst = append(appendLength(w.dst, 0, 2, len(b)), b...)
	}
}

func (w *InfosetWriter) fits(b []byte) bool {
	if len(b) == 0 || uint64(len(b)) > maxString {
		w.fail(Malformed, "a string of %d bytes: 1 to 4 GiB can be written", len(b))
	}
	return w.err == nil
}

func (w *InfosetWriter) valid(text []byte) {
	if at := badText(text); at >= 0 {
		w.fail(Malformed, "byte %#02x is or begins no character of XML in UTF-8: %.20q", text[at], text[at:])
	}
}

// value writes a text that begins at the first bit of a byte (X.891 7.14, C.14).
func (w *InfosetWriter) value(table *interned, v Value) {
	if v = w.form(v); v.Form == Encoded && (v.Index == CDATA || table == &w.others) {
		w.packed, _ = v.AppendText(w.packed[:0]) // of what was checked
		v = Value{Bytes: w.packed}
	}
	if len(v.Bytes) == 0 {
		w.dst = append(w.dst, 0xFF)
		return
	}
	first := byte(v.Form) << 4
	if v.Form == UTF8 {
		place, known, added := w.indexed(table, v.Bytes)
		if known {
			w.dst = appendInteger2(w.dst, 0x80, place)
			return
		}
		if added {
			first |= 0x40
		}
	}
	w.literal(first, v)
}

// literal writes a text whose form, in the bits 3 and 4, is in first (X.891 C.19).
func (w *InfosetWriter) literal(first byte, v Value) {
	if !w.fits(v.Bytes) {
		return
	}
	if v.Form >= Restricted {
		id := byte(v.Index - 1)
		w.dst = append(w.dst, first|id>>4)
		first = id << 4
	}
	w.dst = append(appendLength(w.dst, first, 5, len(v.Bytes)), v.Bytes...)
}

// chunk writes content (X.891 7.7, C.15).
func (w *InfosetWriter) chunk(v Value) {
	v = w.form(v)
	first := 0x80 | byte(v.Form)<<2
	if v.Form == UTF8 {
		place, known, added := w.indexed(&w.chunks, v.Bytes)
		if known {
			w.dst = appendInteger(w.dst, 0xA0, 4, place)
			return
		}
		if added {
			first |= 0x10
		}
	}
	if !w.fits(v.Bytes) {
		return
	}
	if v.Form >= Restricted {
		id := byte(v.Index - 1)
		w.dst = append(w.dst, first|id>>6)
		first = id << 2
	}
	w.dst = append(appendLength(w.dst, first, 7, len(v.Bytes)), v.Bytes...)
}

// indexed finds the place of a text, or adds it if it is short.
func (w *InfosetWriter) indexed(table *interned, text []byte) (place int, known, added bool) {
	if !isShort(text) {
		w.valid(text)
		return 0, false, false
	}
	if place, known = table.find(text); known {
		return place, true, false
	}
	w.valid(text)
	if w.texts+len(text) > maxTexts || len(table.ends) >= maxIndex {
		return 0, false, false
	}
	w.texts += len(text)
	table.add(text)
	return 0, false, true
}

// isShort counts characters as Java does, in UTF-16.
func isShort(text []byte) bool {
	if len(text) < shortText {
		return true
	}
	if len(text) >= 3*shortText {
		return false
	}
	n := 0
	for _, c := range text {
		if c&0xC0 != 0x80 {
			n++
		}
		if c >= 0xF0 {
			n++
		}
	}
	return n < shortText
}

var errForm = errors.New("no form of a text that is written")

// form is a value as it is written: in another form where the Java library would misread it.
func (w *InfosetWriter) form(v Value) Value {
	var err error
	switch v.Form {
	case UTF8:
		return v
	case UTF16:
		w.valid(v.Bytes)
		w.packed = w.packed[:0]
		for _, r := range string(v.Bytes) {
			if r >= 0x10000 {
				w.packed = binary.BigEndian.AppendUint16(w.packed, uint16(0xD800+(r-0x10000)>>10))
				r = 0xDC00 + (r-0x10000)&0x3FF
			}
			w.packed = binary.BigEndian.AppendUint16(w.packed, uint16(r))
		}
		return Value{Bytes: w.packed, Form: UTF16}
	case Restricted:
		if v.Index == Numeric || v.Index == DateTime {
			var ok bool
			if w.packed, ok = appendPacked(w.packed[:0], v.Bytes, builtinAlphabets[v.Index]); ok {
				return Value{Bytes: w.packed, Form: Restricted, Index: v.Index}
			}
		}
		return Value{Bytes: v.Bytes} // an alphabet of the document's own, or text that is not in it
	case Encoded:
		n := 0
		if err = v.check(); err == nil && v.Index == Boolean {
			n, err = booleans(v.Bytes)
		}
		switch {
		case err != nil:
		case v.Index == 0 || v.Index > CDATA:
			err = errAlgorithm
		case len(v.Bytes) == 0, n > 12 && n%8 >= 5: // of these the Java library loses the last byte
			w.packed, _ = v.AppendText(w.packed[:0]) // of what was checked
			return Value{Bytes: w.packed}
		default:
			return v
		}
	default:
		err = errForm
	}
	w.fail(Malformed, "%w", err)
	return Value{}
}

package fastinfoset

import (
	"fmt"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// readTables are the tables of a reader (X.891 8). The index of an entry is one more than its place
// in a slice, but for alphabets and algorithms, whose first are built in.
type readTables struct {
	alphabets                                     [][]rune
	algorithms                                    [][]byte
	prefixes, namespaces, locals, ncnames, others [][]byte // others: URIs
	values, chunks, texts                         []Value
	elements, attributes                          []Name
	bytes                                         int64
}

var (
	xmlPrefix    = []byte("xml")
	xmlNamespace = []byte(xmlns.XML)
)

func (t *readTables) reset() {
	t.alphabets, t.algorithms = t.alphabets[:0], t.algorithms[:0]
	t.prefixes, t.namespaces = append(t.prefixes[:0], xmlPrefix), append(t.namespaces[:0], xmlNamespace)
	t.locals, t.ncnames, t.others = t.locals[:0], t.ncnames[:0], t.others[:0]
	t.values, t.chunks, t.texts = t.values[:0], t.chunks[:0], t.texts[:0]
	t.elements, t.attributes = t.elements[:0], t.attributes[:0]
	t.bytes = 0
}

// load appends an external vocabulary.
func (t *readTables) load(v *Vocabulary) {
	for _, a := range v.Alphabets {
		t.alphabets = append(t.alphabets, []rune(a))
	}
	t.algorithms = append(t.algorithms, v.Algorithms...)
	t.prefixes = append(t.prefixes, v.Prefixes...)
	t.namespaces = append(t.namespaces, v.Namespaces...)
	t.locals = append(t.locals, v.Locals...)
	t.ncnames = append(t.ncnames, v.NCNames...)
	t.others = append(t.others, v.URIs...)
	t.values = append(t.values, v.Values...)
	t.chunks = append(t.chunks, v.Chunks...)
	t.texts = append(t.texts, v.Others...)
	t.elements = append(t.elements, v.Elements...)
	t.attributes = append(t.attributes, v.Attributes...)
}

// add appends an entry of so many bytes. A full table takes no more (X.891 7.13.7).
func add[T any](r *Reader, table *[]T, entry T, bytes int) {
	switch {
	case r.err != nil || len(*table) >= maxIndex:
		return
	case len(*table) >= r.limits.Entries:
		r.fail(Excessive, r.item, "a table of more than %d entries", r.limits.Entries)
		return
	}
	if r.tables.bytes += int64(bytes); r.tables.bytes > r.limits.TableBytes {
		r.fail(Excessive, r.item, "tables of more than %d bytes", r.limits.TableBytes)
		return
	}
	*table = append(*table, entry)
}

// entry is that of a place in a table.
func entry[T any](r *Reader, table []T, place int, what string) (zero T) {
	if r.err != nil {
		return zero
	}
	if place >= len(table) {
		r.fail(Malformed, r.item, "index %d of a table of %d %s", place+1, len(table), what)
		return zero
	}
	return table[place]
}

// vocabulary reads an initial vocabulary (X.891 7.2.6, C.2.5).
func (r *Reader) vocabulary() {
	r.item = r.at
	present := uint16(r.next8())<<8 | uint16(r.next8())
	if present&0xE000 != 0 {
		r.fail(Malformed, r.item, "unknown parts of an initial vocabulary")
	}
	has := func(table int) bool { return r.err == nil && present&(0x1000>>table) != 0 }
	if has(0) {
		r.external(string(r.first()))
	}
	if has(1) {
		r.list(func() {
			text := r.checked(r.first())
			alphabet := []rune(string(text))
			if len(alphabet) < 2 {
				r.fail(Malformed, r.item, "an alphabet of less than two characters")
			}
			add(r, &r.tables.alphabets, alphabet, len(alphabet)*4)
		})
	}
	t := &r.tables
	for i, table := range [...]*[][]byte{
		&t.algorithms, &t.prefixes, &t.namespaces, &t.locals, &t.ncnames, &t.others,
	} {
		if has(2 + i) {
			isName := table == &t.prefixes || table == &t.locals || table == &t.ncnames
			r.list(func() { r.newString(table, r.first(), isName) })
		}
	}
	for i, table := range [...]*[]Value{&t.values, &t.chunks, &t.texts} {
		if has(8 + i) {
			r.list(func() {
				b := r.next8()
				if b&0xC0 != 0 {
					r.fail(Malformed, r.at-1, "byte %#02x begins no string of a vocabulary", b)
				}
				v := r.literal(b)
				add(r, table, v, len(v.Bytes))
			})
		}
	}
	for i, table := range [...]*[]Name{&t.elements, &t.attributes} {
		if has(11 + i) {
			r.list(func() { r.surrogate(table) })
		}
	}
}

// list reads a number of items, and these (X.891 C.21).
func (r *Reader) list(item func()) {
	n := int(r.next8())
	switch {
	case n < 0x80:
		n++
	case n&0xF0 == 0x80:
		n = n&0x0F<<16 | int(r.next8())<<8 | int(r.next8()) + 129
	default:
		r.fail(Malformed, r.at-1, "byte %#02x begins no number of items", n)
	}
	for ; n > 0 && r.err == nil; n-- {
		r.item = r.at
		item()
	}
}

// surrogate reads an entry of a table of names (X.891 C.16).
func (r *Reader) surrogate(table *[]Name) {
	b := r.next8()
	if b > 3 || b == 2 {
		r.fail(Malformed, r.at-1, "byte %#02x begins no name of a vocabulary", b)
	}
	place := func() int {
		b := r.next8()
		if b&0x80 != 0 {
			r.fail(Malformed, r.at-1, "byte %#02x begins no index of a vocabulary", b)
		}
		return r.integer2(b)
	}
	var n Name
	if b&2 != 0 {
		n.Prefix = entry(r, r.tables.prefixes, place(), "prefixes")
	}
	if b&1 != 0 {
		n.Space = entry(r, r.tables.namespaces, place(), "namespaces")
	}
	n.Local = entry(r, r.tables.locals, place(), "local names")
	add(r, table, n, 0)
}

// external loads the vocabulary that a URI names.
func (r *Reader) external(uri string) {
	var v *Vocabulary
	if r.err == nil && r.External != nil {
		v = r.External(uri)
	}
	if v == nil {
		r.fail(Unknown, r.item, "the external vocabulary %.80q", uri)
		return
	}
	r.tables.load(v)
}

// identifying reads a string, which then is in the table, or an index (X.891 7.13, C.13).
func (r *Reader) identifying(table *[][]byte, isName bool) []byte {
	b := r.next8()
	if b&0x80 != 0 {
		return entry(r, *table, r.integer2(b), "strings")
	}
	return r.newString(table, r.take(r.length(b, 2)), isName)
}

func (r *Reader) newString(table *[][]byte, text []byte, isName bool) []byte {
	if text = r.checked(text); isName && r.err == nil && !pull.IsNCName(text) {
		r.fail(Malformed, r.at-len(text), "%.40q is no name", text)
	}
	add(r, table, text, len(text))
	return text
}

// valueOn1 reads a string or an index that begins at the first bit of a byte (X.891 7.14, C.14).
func (r *Reader) valueOn1(table *[]Value) Value {
	b := r.next8()
	switch {
	case b == 0xFF:
		return Value{}
	case b&0x80 != 0:
		return entry(r, *table, r.integer2(b), "texts")
	}
	v := r.literal(b)
	if b&0x40 != 0 {
		add(r, table, v, len(v.Bytes))
	}
	return v
}

// literal reads a string of which b has the form in its bits 3 and 4 (X.891 C.19).
func (r *Reader) literal(b byte) Value {
	form, id := TextForm(b>>4&3), 0
	if form >= Restricted {
		next := r.next8()
		id, b = int(b&0x0F)<<4|int(next>>4), next
	}
	return r.text(form, id+1, r.take(r.length(b, 5)))
}

// chunk reads content (X.891 7.7, C.15).
func (r *Reader) chunk(b byte) Value {
	if b&0x20 != 0 {
		return entry(r, r.tables.chunks, r.integer(b, 4), "texts of content")
	}
	form, id, first := TextForm(b>>2&3), 0, b
	if form >= Restricted {
		next := r.next8()
		id, b = int(b&3)<<6|int(next>>2), next
	}
	v := r.text(form, id+1, r.take(r.length(b, 7)))
	if first&0x10 != 0 {
		add(r, &r.tables.chunks, v, len(v.Bytes))
	}
	return v
}

// text is what bytes of a form say. What is not in the document is in memory that Reset uses again.
func (r *Reader) text(form TextForm, index int, b []byte) Value {
	if r.err != nil {
		return Value{}
	}
	at, from := r.at-len(b), len(r.decoded)
	var err error
	switch form {
	case UTF8:
		return Value{Bytes: r.checked(b)}
	case UTF16:
		r.decoded, err = appendUTF16(r.decoded, b)
	case Restricted:
		var alphabet []rune
		switch {
		case index < len(builtinRunes):
			alphabet = builtinRunes[index]
		case index >= firstAlphabet && index-firstAlphabet < len(r.tables.alphabets):
			alphabet = r.tables.alphabets[index-firstAlphabet]
		default:
			r.fail(Unknown, at, "alphabet %d", index)
			return Value{}
		}
		if most := int64(len(b)) * 8 / int64(characterBits(len(alphabet))) * utf8.UTFMax; most > r.limits.TextBytes {
			r.fail(Excessive, at, "%d characters of an alphabet", most/utf8.UTFMax)
			return Value{}
		}
		r.decoded, err = appendAlphabet(r.decoded, b, alphabet)
	case Encoded:
		v := Value{Bytes: b, Form: form, Index: uint16(index)}
		if index > int(CDATA) && (index < firstAlgorithm || index-firstAlgorithm >= len(r.tables.algorithms)) {
			r.fail(Unknown, at, "encoding algorithm %d", index)
		} else if err := v.check(); err != nil {
			r.fail(Malformed, at, "encoding algorithm %d: %w", index, err)
		}
		return v
	}
	v := Value{Bytes: r.decoded[from:len(r.decoded):len(r.decoded)], Form: form}
	if form == Restricted {
		v.Index = uint16(index)
	}
	switch {
	case err != nil:
		r.fail(Malformed, at, "%w", err)
	case badText(v.Bytes) >= 0:
		r.fail(Malformed, at, "a character that XML cannot have")
	case int64(len(r.decoded)) > r.limits.TextBytes:
		r.fail(Excessive, at, "more than %d bytes of text", r.limits.TextBytes)
	}
	return v
}

// checked is a text in UTF-8, of which the last byte was read last.
func (r *Reader) checked(b []byte) []byte {
	if at := badText(b); at >= 0 && r.err == nil {
		r.fail(Malformed, r.at-len(b)+at, "byte %#02x is or begins no character of XML in UTF-8", b[at])
	}
	return b
}

// AlgorithmURI is the name of an encoding algorithm of the document that is not built in; nil:
// there is none of that index.
func (r *Reader) AlgorithmURI(index uint16) []byte {
	if i := int(index) - firstAlgorithm; i >= 0 && i < len(r.tables.algorithms) {
		return r.tables.algorithms[i]
	}
	return nil
}

// fail is the error from now on, unless there is one.
func (r *Reader) fail(code Code, at int, format string, args ...any) {
	if r.err == nil {
		r.err = problem(code, at, "%w", fmt.Errorf(format, args...))
	}
}

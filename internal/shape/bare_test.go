package shape_test

import (
	"bytes"
	"errors"
)

// bare is the loop with which speeds are compared: it knows the markup of one kind of message and
// does the minimum for extracting the values. It compares the markup, parses the digits of numbers,
// times and UUIDs one after the other, and copies all other values unchanged. It has no segments
// and no guards, and cannot restore the text of a value in another form than it expects.
type bare struct {
	head, row, tail []barePiece

	numbers []decimal
	uuids   []byte
	texts   []byte
}

// barePiece is markup and the value after it.
type barePiece struct {
	markup []byte
	value  valueKind
}

type valueKind uint8

const (
	noValue valueKind = iota
	numberValue
	timeValue // a dateTime, whose digits are read as one number
	uuidValue
	textValue
)

const (
	urn     = "urn:uuid:"
	uuidLen = 36
	timeLen = len("2006-01-02T15:04:05Z")
)

// decimal is digits, and the number of them after the point.
type decimal struct {
	digits int64
	scale  int32
}

// newBare takes the markup from one message: everything except the text of elements without child
// elements. The elements named item are rows.
func newBare(message []byte) *bare {
	first, last := bytes.Index(message, []byte("<item>")), bytes.LastIndex(message, []byte("</item>"))
	if first < 0 {
		return &bare{head: pieces(message)}
	}
	row := bytes.Index(message, []byte("</item>")) + len("</item>")
	return &bare{head: pieces(message[:first]), row: pieces(message[first:row]),
		tail: pieces(message[last+len("</item>"):])}
}

func pieces(text []byte) (list []barePiece) {
	from := 0
	for at := 0; at < len(text); at++ {
		if text[at] != '>' {
			continue
		}
		n := bytes.IndexByte(text[at:], '<')
		if n <= 1 || text[at+n+1] != '/' {
			continue
		}
		p := barePiece{markup: text[from : at+1], value: kindOf(text[at+1 : at+n])}
		if p.value == uuidValue && bytes.HasPrefix(text[at+1:], []byte(urn)) {
			p.markup = text[from : at+1+len(urn)]
		}
		list = append(list, p)
		from, at = at+n, at+n
	}
	return append(list, barePiece{markup: text[from:]})
}

func kindOf(value []byte) valueKind {
	uuid := bytes.TrimPrefix(value, []byte(urn))
	switch {
	case len(bytes.Trim(value, "-.0123456789")) == 0:
		return numberValue
	case len(value) >= timeLen && value[10] == 'T' && len(bytes.Trim(value, "-.:TZ0123456789")) == 0:
		return timeValue
	case len(uuid) == uuidLen && len(bytes.Trim(uuid, "-0123456789abcdef")) == 0:
		return uuidValue
	}
	return textValue
}

var errBare = errors.New("a message that the bare loop does not know")

// run extracts the values of one message.
func (b *bare) run(m []byte) error {
	b.numbers, b.uuids, b.texts = b.numbers[:0], b.uuids[:0], b.texts[:0]
	rest, ok := b.take(m, b.head)
	for ok && len(b.row) > 0 && bytes.HasPrefix(rest, b.row[0].markup) {
		rest, ok = b.take(rest, b.row)
	}
	if ok {
		rest, ok = b.take(rest, b.tail)
	}
	if !ok || len(rest) > 0 {
		return errBare
	}
	return nil
}

func (b *bare) take(m []byte, list []barePiece) ([]byte, bool) {
	for i := range list {
		p := &list[i]
		if !bytes.HasPrefix(m, p.markup) {
			return m, false
		}
		m = m[len(p.markup):]
		n := 0
		switch p.value {
		case noValue:
		case numberValue:
			var d decimal
			d, n = digits(m)
			if n < len(m) && m[n] != '<' { // one with an exponent, now and then
				n = bytes.IndexByte(m, '<')
				b.texts = append(b.texts, m[:max(n, 0)]...)
			}
			b.numbers = append(b.numbers, d)
		case timeValue:
			var d decimal
			d, n = timeDigits(m)
			b.numbers = append(b.numbers, d)
		case uuidValue:
			b.uuids, n = hexDigits(b.uuids, m)
		case textValue:
			if n = bytes.IndexByte(m, '<'); n > 0 {
				b.texts = append(b.texts, m[:n]...)
			}
		}
		if n < 0 {
			return m, false
		}
		m = m[n:]
	}
	return m, true
}

// digits reads a number up to the first byte that is not part of it.
func digits(m []byte) (d decimal, n int) {
	negative := len(m) > 0 && m[0] == '-'
	if negative {
		n = 1
	}
	point := -1
	for ; n < len(m); n++ {
		c := m[n] - '0'
		if c > 9 {
			if m[n] != '.' {
				break
			}
			point = n
			continue
		}
		d.digits = d.digits*10 + int64(c)
	}
	if point >= 0 {
		d.scale = int32(n - 1 - point)
	}
	if negative {
		d.digits = -d.digits
	}
	return d, n
}

// timeDigits reads the digits of a dateTime, up to its element's end.
func timeDigits(m []byte) (d decimal, n int) {
	for ; n < len(m) && m[n] != '<'; n++ {
		if c := m[n] - '0'; c <= 9 {
			d.digits = d.digits*10 + int64(c)
		}
	}
	return d, n
}

var hexValues = func() (v [256]byte) {
	for i, c := range []byte("0123456789abcdef") {
		v[c] = byte(i)
	}
	return v
}()

// hexDigits reads the digits of a UUID, two to a byte.
func hexDigits(dst, m []byte) ([]byte, int) {
	if len(m) < uuidLen {
		return dst, -1
	}
	for n := 0; n < uuidLen; n += 2 {
		if m[n] == '-' {
			n++
		}
		dst = append(dst, hexValues[m[n]]<<4|hexValues[m[n+1]])
	}
	return dst, uuidLen
}

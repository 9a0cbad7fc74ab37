package peer

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	// inflatedFree and inflatedTimes bound what a body in gzip may unfold to: so many bytes in any
	// case, beyond them so many times what has come. SOAP gets 10 to 100 times smaller, a bomb
	// 1,000 times.
	inflatedFree  = 1 << 20
	inflatedTimes = 200
	// sniffed is how much of a body tells how its characters are encoded, in bytes.
	sniffed = 4
)

// text is the body of a request as XML in UTF-8, at most maxRequest bytes of what it is before
// that, with a function that reads what an XML declaration says it is encoded in. What cannot be
// read is told by a refusal.
func text(r *http.Request) (body io.Reader, declared func(label string, in io.Reader) (io.Reader, error)) {
	body = r.Body
	coding, charset := codings(r.Header)
	switch coding {
	case "", "identity":
	case "gzip", "x-gzip":
		body = newInflated(body)
	default:
		body = refused{&complaint{code: soap.Client, reason: "the content coding is not known, only gzip",
			coding: true}}
	}
	in := bufio.NewReader(&bounded{body, maxRequest})
	start, _ := in.Peek(sniffed) // an error is that of the next Read, too
	if order := utf16Order(start, charset); order != nil {
		return &utf16Reader{in: in, order: order}, func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	}
	// The field counts more than the declaration (RFC 7303, section 3.2), a byte order mark more
	// than both.
	mark := bytes.HasPrefix(start, []byte("\xEF\xBB\xBF"))
	if isLatin1(charset) && !mark {
		return latin1{in}, func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	}
	return in, func(label string, in io.Reader) (io.Reader, error) {
		switch label = strings.ToLower(label); {
		case mark || charset == "utf-8" || label == "us-ascii" || label == "ascii":
			return in, nil
		case isLatin1(label):
			return latin1{in}, nil
		}
		return nil, refuse("the encoding %.40q is not read, only UTF-8, UTF-16 and ISO-8859-1", label)
	}
}

// codings are the content coding and the charset that a request names, in lower case; empty where
// it names none.
func codings(header http.Header) (coding, charset string) {
	coding = strings.ToLower(strings.Join(header.Values("Content-Encoding"), ", "))
	return coding, soap.ParseContentType(header.Get("Content-Type")).Charset
}

func isLatin1(label string) bool {
	return label == "iso-8859-1" || label == "iso_8859-1" || label == "latin1" || label == "l1"
}

// refused reads as a refusal.
type refused struct{ why *complaint }

func (r refused) Read([]byte) (int, error) { return 0, r.why }

// inflated opens a body in gzip, as far as it is worth its bytes.
type inflated struct {
	from *intake
	zip  *gzip.Reader
	out  int64
	err  error // to be told again
}

func newInflated(body io.Reader) *inflated { return &inflated{from: &intake{from: body}} }

// Read implements [io.Reader]. Errors: a refusal for what is no gzip, or unfolds to too much.
func (i *inflated) Read(p []byte) (n int, err error) {
	if i.err != nil {
		return 0, i.err
	}
	if i.zip == nil {
		if i.zip, i.err = gzip.NewReader(i.from); i.err != nil {
			i.err = i.judge(i.err)
			return 0, i.err
		}
	}
	n, err = i.zip.Read(p)
	if i.out += int64(n); i.out > inflatedFree+inflatedTimes*i.from.read {
		n, err = 0, refuse("the request unfolds to more than %d times its octets", inflatedTimes)
	}
	i.err = i.judge(err)
	return n, i.err
}

func (i *inflated) judge(err error) error {
	var corrupt flate.CorruptInputError
	malformed := errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &corrupt)
	if malformed && i.from.failed == nil {
		return refuse("the request is no gzip: %v", err)
	}
	if errors.Is(err, io.EOF) && i.from.read == 0 {
		return refuse("the request is no gzip: it is empty")
	}
	return err
}

// intake counts what is read, and notes why no more could be.
type intake struct {
	from   io.Reader
	read   int64
	failed error
}

func (m *intake) Read(p []byte) (int, error) {
	n, err := m.from.Read(p)
	m.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		m.failed = err
	}
	return n, err
}

// latin1 reads ISO-8859-1 as UTF-8.
type latin1 struct{ from io.Reader }

func (l latin1) Read(p []byte) (int, error) {
	if len(p) < 2 {
		return 0, io.ErrShortBuffer
	}
	in := make([]byte, len(p)/2)
	k, err := l.from.Read(in)
	n := 0
	for _, c := range in[:k] {
		n += utf8.EncodeRune(p[n:n+2], rune(c))
	}
	return n, err
}

// utf16Order is the order of a body in UTF-16, by its mark, or by its first tag, or as its charset
// says; nil: it is in another encoding.
func utf16Order(start []byte, charset string) binary.ByteOrder {
	is := func(b string) bool { return bytes.HasPrefix(start, []byte(b)) }
	switch {
	case is("\xFE\xFF"), is("\x00<\x00"):
		return binary.BigEndian
	case is("\xFF\xFE"), len(start) == sniffed && is("<\x00") && start[3] == 0:
		return binary.LittleEndian
	case charset == "utf-16be", charset == "utf-16" && !is("<"):
		return binary.BigEndian
	case charset == "utf-16le":
		return binary.LittleEndian
	}
	return nil
}

// utf16Reader reads UTF-16 as UTF-8, without its mark.
type utf16Reader struct {
	in    *bufio.Reader
	order binary.ByteOrder
	rest  []byte // of the last character
	begun bool
}

// Read implements [io.Reader].
func (u *utf16Reader) Read(p []byte) (n int, err error) {
	for n == 0 || n < len(p) && u.in.Buffered() >= 4 {
		if len(u.rest) > 0 {
			k := copy(p[n:], u.rest)
			u.rest = u.rest[k:]
			if n += k; n == len(p) {
				return n, nil
			}
			continue
		}
		r, err := u.rune()
		if err != nil {
			return n, err
		}
		if first := !u.begun; first {
			if u.begun = true; r == '\uFEFF' {
				continue
			}
		}
		u.rest = utf8.AppendRune(u.rest[:0], r)
	}
	return n, nil
}

func (u *utf16Reader) rune() (rune, error) {
	r, err := u.unit()
	if err != nil || !utf16.IsSurrogate(r) {
		return r, err
	}
	low, err := u.unit()
	if errors.Is(err, io.EOF) {
		err = nil // which leaves one half
	}
	if r = utf16.DecodeRune(r, low); r == utf8.RuneError && err == nil {
		return 0, refuse("the request is no UTF-16")
	}
	return r, err
}

func (u *utf16Reader) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(u.in, b[:]); errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, refuse("the request is no UTF-16")
	} else if err != nil {
		return 0, err
	}
	return rune(u.order.Uint16(b[:])), nil
}

package xsd

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

var errCharset = errors.New("a charset that is not supported (UTF-8, UTF-16, ISO-8859-1, windows-125x)")

// windows has a line for each of the charsets windows-1250 to windows-1258: its name, and the 128
// characters of the bytes from 0x80 on, U+FFFD for none.
//
//go:embed windows.txt
var windows string

// highHalf are the characters of the bytes from 0x80 on in a charset of one byte a character; nil:
// it is none that is known.
func highHalf(charset string) []rune {
	charset = strings.ToLower(charset)
	if charset == "iso-8859-1" || charset == "latin1" {
		half := make([]rune, 0x80)
		for i := range half {
			half[i] = rune(0x80 + i)
		}
		return half
	}
	for line := range strings.Lines(windows) {
		if name, half, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name == charset {
			return []rune(half)
		}
	}
	return nil
}

// decoded reads what is in the charset of this name; recoded: it is in UTF-8 whatever that says.
func decoded(in io.Reader, charset string, recoded bool) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "utf-8", "utf-16", "utf-16le", "utf-16be", "us-ascii", "ascii":
		return in, nil
	}
	half := highHalf(charset)
	switch {
	case recoded:
		return in, nil
	case half == nil:
		return nil, fmt.Errorf("%w: %q", errCharset, charset)
	}
	return &byteReader{in: in, half: half}, nil
}

// mark8 is the byte order mark of UTF-8.
const mark8 = "\xef\xbb\xbf"

// inUTF8 removes a byte order mark, and decodes UTF-16. It reports whether the text is then in
// UTF-8 whatever its first line says.
func inUTF8(text []byte) (out []byte, recoded bool, err error) {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(text, []byte(mark8)):
		return text[3:], true, nil
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		order, text = binary.LittleEndian, text[2:]
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		order, text = binary.BigEndian, text[2:]
	case bytes.HasPrefix(text, []byte{'<', 0}):
		order = binary.LittleEndian
	case bytes.HasPrefix(text, []byte{0, '<'}):
		order = binary.BigEndian
	default:
		return text, false, nil
	}
	if len(text)%2 != 0 {
		return nil, false, errors.New("UTF-16 of an odd number of bytes")
	}
	units := make([]uint16, 0, len(text)/2)
	for at := 0; at < len(text); at += 2 {
		units = append(units, order.Uint16(text[at:]))
	}
	return []byte(string(utf16.Decode(units))), true, nil
}

// Recode applies the charset that came with a document, which goes before what its first line says;
// a byte order mark goes before both. Charsets that are not known are left to the first line.
func Recode(text []byte, charset string) ([]byte, error) {
	if _, marked, err := inUTF8(text); marked || err != nil {
		return text, err
	}
	if strings.EqualFold(charset, "utf-8") {
		return append([]byte(mark8), text...), nil
	}
	if half := highHalf(charset); half != nil {
		utf8, err := io.ReadAll(&byteReader{in: bytes.NewReader(text), half: half})
		return append([]byte(mark8), utf8...), err
	}
	return text, nil
}

// byteReader decodes a charset of one byte a character.
type byteReader struct {
	in   io.Reader
	half []rune // of the bytes from 0x80 on
	rest []byte
	buf  [4096]byte
}

// Read implements [io.Reader].
func (l *byteReader) Read(p []byte) (n int, err error) {
	if len(l.rest) == 0 {
		n, err := l.in.Read(l.buf[:])
		if n == 0 {
			return 0, err
		}
		l.rest = make([]byte, 0, 2*n)
		for _, b := range l.buf[:n] {
			if b < utf8.RuneSelf {
				l.rest = append(l.rest, b)
			} else {
				l.rest = utf8.AppendRune(l.rest, l.half[b-utf8.RuneSelf])
			}
		}
	}
	n = copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

package fastinfoset

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The built-in encoding algorithms (X.891 10).
const (
	Hexadecimal uint16 = iota + 1
	Base64
	Short
	Int
	Long
	Boolean
	Float
	Double
	UUID
	CDATA
)

// The built-in restricted alphabets (X.891 9).
const (
	Numeric uint16 = iota + 1
	DateTime
)

// builtinAlphabets are the characters of the built-in alphabets, by index.
var builtinAlphabets = [...]string{Numeric: "0123456789-+.e ", DateTime: "0123456789-:TZ "}

var builtinRunes = [...][]rune{
	Numeric: []rune(builtinAlphabets[Numeric]), DateTime: []rune(builtinAlphabets[DateTime]),
}

// widths are the bytes of one value of an algorithm, by index; 0: as many as there are.
var widths = [...]int{Short: 2, Int: 4, Long: 8, Float: 4, Double: 8, UUID: 16, CDATA: 0}

var errAlgorithm = errors.New("an encoding algorithm that is not built in: its text is not known")

// AppendText appends the value as text (X.891 10). Numbers of float and double are as Java writes
// them, but INF and -INF, as XML Schema does.
func (v Value) AppendText(dst []byte) ([]byte, error) {
	if v.Form != Encoded {
		return append(dst, v.Bytes...), nil
	}
	b := v.Bytes
	switch v.Index {
	case Hexadecimal:
		from := len(dst)
		dst = hex.AppendEncode(dst, b)
		copy(dst[from:], bytes.ToUpper(dst[from:]))
		return dst, nil
	case Base64:
		return base64.StdEncoding.AppendEncode(dst, b), nil
	case CDATA:
		return append(dst, b...), nil
	case Boolean:
		return appendBooleans(dst, b)
	case Short, Int, Long, Float, Double, UUID:
	default:
		return dst, errAlgorithm
	}
	n := widths[v.Index]
	if len(b)%n != 0 {
		return dst, fmt.Errorf("%d bytes of values of %d", len(b), n)
	}
	for i := 0; i < len(b); i += n {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = appendOne(dst, v.Index, b[i:i+n])
	}
	return dst, nil
}

func appendOne(dst []byte, algorithm uint16, b []byte) []byte {
	switch algorithm {
	case Short:
		return strconv.AppendInt(dst, int64(int16(binary.BigEndian.Uint16(b))), 10)
	case Int:
		return strconv.AppendInt(dst, int64(int32(binary.BigEndian.Uint32(b))), 10)
	case Long:
		return strconv.AppendInt(dst, int64(binary.BigEndian.Uint64(b)), 10)
	case Float:
		return appendFloat(dst, float64(math.Float32frombits(binary.BigEndian.Uint32(b))), 32)
	case Double:
		return appendFloat(dst, math.Float64frombits(binary.BigEndian.Uint64(b)), 64)
	default:
		for i, end := range [...]int{4, 6, 8, 10, 16} {
			from := 0
			if i > 0 {
				from = [...]int{4, 6, 8, 10}[i-1]
				dst = append(dst, '-')
			}
			dst = hex.AppendEncode(dst, b[from:end])
		}
		return dst
	}
}

// appendBooleans: the first four bits are the number of bits at the end that are none (X.891 10.7).
func appendBooleans(dst, b []byte) ([]byte, error) {
	n, err := booleans(b)
	for i := range n {
		if i > 0 {
			dst = append(dst, ' ')
		}
		bit := i + 4
		dst = strconv.AppendBool(dst, b[bit/8]&(0x80>>(bit%8)) != 0)
	}
	return dst, err
}

func booleans(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, errors.New("booleans without a byte")
	}
	if n = len(b)*8 - 4 - int(b[0]>>4); b[0]>>4 > 7 || n < 0 {
		return 0, fmt.Errorf("%d unused bits of %d", b[0]>>4, len(b)*8-4)
	}
	return n, nil
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	switch abs := math.Abs(f); {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "INF"...)
	case math.IsInf(f, -1):
		return append(dst, "-INF"...)
	case abs == 0 || abs >= 1e-3 && abs < 1e7:
		from := len(dst)
		if dst = strconv.AppendFloat(dst, f, 'f', -1, bits); bytes.IndexByte(dst[from:], '.') < 0 {
			dst = append(dst, ".0"...)
		}
		return dst
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, bits)
	e := bytes.IndexByte(text, 'e')
	if dst = append(dst, text[:e]...); bytes.IndexByte(text[:e], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	exponent, _ := strconv.Atoi(string(text[e+1:])) // which AppendFloat wrote
	return strconv.AppendInt(append(dst, 'E'), int64(exponent), 10)
}

// textBound is at most how long a value is as text, in bytes.
func (v *Value) textBound() int64 {
	n := int64(len(v.Bytes))
	switch {
	case v.Form != Encoded || v.Index == CDATA:
		return n
	case v.Index == Boolean:
		return n * 8 * int64(len("false "))
	}
	return n * 4 // as in -1.2345678E-10 and a space, of four bytes
}

// check finds what is wrong with a value of an algorithm that is built in.
func (v *Value) check() error {
	switch {
	case v.Index == Boolean:
		_, err := booleans(v.Bytes)
		return err
	case v.Index == CDATA:
		if at := badText(v.Bytes); at >= 0 {
			return fmt.Errorf("a character that XML cannot have, at byte %d of a CDATA section", at)
		}
	case int(v.Index) < len(widths) && widths[v.Index] > 0 && len(v.Bytes)%widths[v.Index] != 0:
		return fmt.Errorf("%d bytes of values of %d", len(v.Bytes), widths[v.Index])
	}
	return nil
}

// characterBits is how many bits one character of an alphabet takes (X.891 7.17.6): all ones are
// none.
func characterBits(size int) int {
	bits := 1
	for 1<<bits < size+1 {
		bits++
	}
	return bits
}

// appendAlphabet appends the text of packed characters.
func appendAlphabet(dst, packed []byte, alphabet []rune) ([]byte, error) {
	bits := characterBits(len(alphabet))
	ones := 1<<bits - 1
	for at, end := 0, len(packed)*8; at+bits <= end; at += bits {
		c := 0
		for i := at; i < at+bits; i++ {
			c = c<<1 | int(packed[i/8]>>(7-i%8))&1
		}
		switch {
		case c < len(alphabet):
			dst = utf8.AppendRune(dst, alphabet[c])
		case c == ones && end-at < 8 && packed[at/8]|^byte(0xFF>>(at%8)) == 0xFF:
			return dst, nil
		default:
			return dst, fmt.Errorf("number %d of an alphabet of %d characters", c, len(alphabet))
		}
	}
	return dst, nil
}

// appendPacked packs a text in characters of a built-in alphabet; ok is false where it has others,
// or an e, which the Java library writes and reads as E.
func appendPacked(dst, text []byte, alphabet string) (_ []byte, ok bool) {
	half := false
	for _, c := range text {
		n := strings.IndexByte(alphabet, c)
		if n < 0 || c == 'e' {
			return dst, false
		}
		if half {
			dst[len(dst)-1] &= 0xF0 | byte(n)
		} else {
			dst = append(dst, byte(n)<<4|0x0F)
		}
		half = !half
	}
	return dst, true
}

// appendUTF16 appends a text in UTF-16, big endian, as UTF-8.
func appendUTF16(dst, b []byte) ([]byte, error) {
	if len(b)%2 != 0 {
		return dst, errors.New("UTF-16 of an odd number of bytes")
	}
	for i := 0; i < len(b); i += 2 {
		r := rune(binary.BigEndian.Uint16(b[i:]))
		if r >= 0xD800 && r < 0xE000 {
			low := rune(0)
			if i+4 <= len(b) {
				low = rune(binary.BigEndian.Uint16(b[i+2:]))
			}
			if r >= 0xDC00 || low < 0xDC00 || low >= 0xE000 {
				return dst, fmt.Errorf("half a character in UTF-16, at byte %d", i)
			}
			r = 0x10000 + (r-0xD800)<<10 + (low - 0xDC00)
			i += 2
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, nil
}

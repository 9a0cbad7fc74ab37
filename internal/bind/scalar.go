package bind

import (
	"encoding"
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmltext/pull"
)

// scalar is how text stands for the values of a type.
type scalar struct {
	// append appends the text of a value, escaped.
	append func(dst []byte, at ptr) ([]byte, error)
	// parse sets a value; text is valid until it returns.
	parse func(at ptr, text []byte) error
	// empty reports what omitempty leaves out.
	empty func(at ptr) bool
}

var (
	timeType       = reflect.TypeFor[time.Time]()
	textMarshals   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshals = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// scalarOf is the scalar of a type; nil: it is none.
func scalarOf(t reflect.Type) (*scalar, error) {
	if t == timeType {
		return dateTime, nil
	}
	to := reflect.PointerTo(t)
	switch marshals, unmarshals := to.Implements(textMarshals), to.Implements(textUnmarshals); {
	case marshals && unmarshals:
		return textual(t), nil
	case marshals:
		return nil, fmt.Errorf("%s has MarshalText and no UnmarshalText", t)
	case unmarshals:
		return nil, fmt.Errorf("%s has UnmarshalText and no MarshalText", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return boolean, nil
	case reflect.String:
		return text, nil
	case reflect.Int:
		return integer[int](t.Bits()), nil
	case reflect.Int8:
		return integer[int8](8), nil
	case reflect.Int16:
		return integer[int16](16), nil
	case reflect.Int32:
		return integer[int32](32), nil
	case reflect.Int64:
		return integer[int64](64), nil
	case reflect.Uint:
		return natural[uint](t.Bits()), nil
	case reflect.Uint8:
		return natural[uint8](8), nil
	case reflect.Uint16:
		return natural[uint16](16), nil
	case reflect.Uint32:
		return natural[uint32](32), nil
	case reflect.Uint64:
		return natural[uint64](64), nil
	case reflect.Uintptr:
		return natural[uintptr](t.Bits()), nil
	case reflect.Float32:
		return float[float32](32), nil
	case reflect.Float64:
		return float[float64](64), nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return binary, nil
		}
	default:
	}
	return nil, nil
}

// trim takes away the white space around a value (XML Schema part 2, section 4.3.6).
func trim(b []byte) []byte {
	for len(b) > 0 && isSpace(b[0]) {
		b = b[1:]
	}
	for len(b) > 0 && isSpace(b[len(b)-1]) {
		b = b[:len(b)-1]
	}
	return b
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

func wrong(text []byte, what string) error {
	return &Error{What: fmt.Sprintf("%.40q is no %s", text, what)}
}

var boolean = &scalar{
	append: func(dst []byte, at ptr) ([]byte, error) { return strconv.AppendBool(dst, *as[bool](at)), nil },
	parse: func(at ptr, b []byte) error {
		switch b = trim(b); string(b) {
		case "true", "1":
			*as[bool](at) = true
		case "false", "0", "":
			*as[bool](at) = false
		default:
			return wrong(b, "boolean")
		}
		return nil
	},
	empty: func(at ptr) bool { return !*as[bool](at) },
}

func integer[N int | int8 | int16 | int32 | int64](bits int) *scalar {
	what := fmt.Sprintf("integer of %d bits", bits)
	return &scalar{
		append: func(dst []byte, at ptr) ([]byte, error) {
			return strconv.AppendInt(dst, int64(*as[N](at)), 10), nil
		},
		parse: func(at ptr, b []byte) error {
			b = trim(b)
			*as[N](at) = 0
			if len(b) == 0 {
				return nil
			}
			n, err := strconv.ParseInt(string(b), 10, bits)
			if err != nil {
				return wrong(b, what)
			}
			*as[N](at) = N(n)
			return nil
		},
		empty: func(at ptr) bool { return *as[N](at) == 0 },
	}
}

func natural[N uint | uint8 | uint16 | uint32 | uint64 | uintptr](bits int) *scalar {
	what := fmt.Sprintf("number of %d bits without sign", bits)
	return &scalar{
		append: func(dst []byte, at ptr) ([]byte, error) {
			return strconv.AppendUint(dst, uint64(*as[N](at)), 10), nil
		},
		parse: func(at ptr, b []byte) error {
			b = trim(b)
			*as[N](at) = 0
			if len(b) == 0 {
				return nil
			}
			n, err := strconv.ParseUint(strings.TrimPrefix(string(b), "+"), 10, bits)
			if err != nil {
				return wrong(b, what)
			}
			*as[N](at) = N(n)
			return nil
		},
		empty: func(at ptr) bool { return *as[N](at) == 0 },
	}
}

func float[N float32 | float64](bits int) *scalar {
	return &scalar{
		append: func(dst []byte, at ptr) ([]byte, error) {
			return AppendFloat(dst, float64(*as[N](at)), bits), nil
		},
		parse: func(at ptr, b []byte) error {
			b = trim(b)
			*as[N](at) = 0
			if len(b) == 0 {
				return nil
			}
			v, err := ParseFloat(b, bits)
			switch {
			case errors.Is(err, strconv.ErrRange):
				return &Error{What: fmt.Sprintf("%.40q is beyond a float of %d bits", b, bits)}
			case err != nil:
				return wrong(b, "float")
			}
			*as[N](at) = N(v)
			return nil
		},
		empty: func(at ptr) bool { return *as[N](at) == 0 },
	}
}

// ParseFloat reads an xs:float or xs:double without white space around it (XML Schema part 2,
// sections 3.2.4 and 3.2.5). Errors are those of strconv; with ErrRange it is an infinity.
func ParseFloat(b []byte, bits int) (float64, error) {
	for _, c := range b {
		// Go reads more than XML Schema allows: hexadecimal digits, underscores, words.
		if (c < '0' || c > '9') && c != '.' && c != '-' && c != '+' && c != 'e' && c != 'E' {
			return floatWord(b)
		}
	}
	return strconv.ParseFloat(string(b), bits)
}

func floatWord(b []byte) (float64, error) {
	switch string(b) {
	case "INF", "+INF":
		return math.Inf(1), nil
	case "-INF":
		return math.Inf(-1), nil
	case "NaN":
		return math.NaN(), nil
	}
	return 0, strconv.ErrSyntax
}

// AppendFloat appends an xs:float or xs:double with the fewest digits that read back the same:
// without exponent when it is 0 or from 0.001 to below 10000000 in size.
func AppendFloat(dst []byte, v float64, bits int) []byte {
	switch size := math.Abs(v); {
	case size >= 1e-3 && size < 1e7 || size == 0:
		return strconv.AppendFloat(dst, v, 'f', -1, bits)
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "INF"...)
	case math.IsInf(v, -1):
		return append(dst, "-INF"...)
	}
	var room [32]byte
	mantissa, exponent, _ := strings.Cut(string(strconv.AppendFloat(room[:0], v, 'E', -1, bits)), "E")
	dst = append(dst, mantissa...)
	if !strings.Contains(mantissa, ".") {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	if exponent[0] == '-' {
		dst = append(dst, '-')
	}
	return append(dst, strings.TrimLeft(exponent, "+-0")...)
}

var text = &scalar{
	append: func(dst []byte, at ptr) ([]byte, error) { return appendText(dst, *as[string](at)) },
	parse: func(at ptr, b []byte) error {
		*as[string](at) = string(b)
		return nil
	},
	empty: func(at ptr) bool { return *as[string](at) == "" },
}

var binary = &scalar{
	append: func(dst []byte, at ptr) ([]byte, error) {
		return base64.StdEncoding.AppendEncode(dst, *as[[]byte](at)), nil
	},
	parse: func(at ptr, b []byte) error {
		out := make([]byte, base64.StdEncoding.DecodedLen(len(b)))
		// Line ends are passed over; other white space is taken out if there is any.
		n, err := base64.StdEncoding.Decode(out, b)
		if err != nil {
			n, err = base64.StdEncoding.Decode(out, []byte(strings.Join(strings.Fields(string(b)), "")))
		}
		if err != nil {
			return wrong(b, "base64")
		}
		*as[[]byte](at) = out[:n]
		return nil
	},
	empty: func(at ptr) bool { return len(*as[[]byte](at)) == 0 },
}

var dateTime = &scalar{
	append: func(dst []byte, at ptr) ([]byte, error) {
		out, err := as[time.Time](at).AppendText(dst)
		if err != nil {
			return dst, &Error{What: "the time cannot be written: " + err.Error()}
		}
		return out, nil
	},
	parse: func(at ptr, b []byte) error {
		b = trim(b)
		t := as[time.Time](at)
		if err := t.UnmarshalText(b); err == nil {
			return nil
		}
		// Many services leave out the zone, and mean UTC or do not say.
		if err := t.UnmarshalText(append(b[:len(b):len(b)], 'Z')); err != nil {
			return wrong(b, "dateTime")
		}
		return nil
	},
	empty: func(ptr) bool { return false },
}

// textual is the scalar of a type that has a text of its own.
func textual(t reflect.Type) *scalar {
	return &scalar{
		append: func(dst []byte, at ptr) ([]byte, error) {
			written, err := boxed(t, at).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return dst, &Error{What: err.Error()}
			}
			return appendText(dst, string(written))
		},
		parse: func(at ptr, b []byte) error {
			if err := boxed(t, at).(encoding.TextUnmarshaler).UnmarshalText(b); err != nil {
				return &Error{What: fmt.Sprintf("%.40q: %v", b, err)}
			}
			return nil
		},
		empty: func(at ptr) bool { return reflect.NewAt(t, at).Elem().IsZero() },
	}
}

// escaped has what stands for a byte of text or of an attribute's value: "" itself, "?" that is to
// be looked at.
var escaped = func() (table [256]string) {
	for c := range table {
		if c < ' ' || c >= utf8.RuneSelf {
			table[c] = "?"
		}
	}
	table['&'], table['<'], table['>'], table['"'] = "&amp;", "&lt;", "&gt;", "&#34;"
	table['\t'], table['\n'], table['\r'] = "&#9;", "&#10;", "&#13;"
	return table
}()

// clean are the bytes that stand for themselves.
var clean = func() (table [256]bool) {
	for c := range table {
		table[c] = escaped[c] == ""
	}
	return table
}()

// appendText appends text so that it is read back the same. A character that XML cannot hold is an
// error.
func appendText(dst []byte, s string) ([]byte, error) {
	done := 0
	for i := 0; i < len(s); {
		if clean[s[i]] {
			i++
			continue
		}
		as := escaped[s[i]]
		if as == "?" {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 || !pull.IsChar(r) {
				return dst, &Error{What: fmt.Sprintf("%+q cannot stand in XML", s[i:i+size])}
			}
			i += size
			continue
		}
		dst = append(append(dst, s[done:i]...), as...)
		i++
		done = i
	}
	return append(dst, s[done:]...), nil
}

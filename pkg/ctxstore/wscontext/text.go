package wscontext

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/internal/xmltext"
)

// isText reports whether characters may stand in XML. With references, each & must begin one that
// needs no document type, and ]]> must not be there.
func isText(b []byte, references bool) bool {
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case c < 0x20 && c != '\t' && c != '\n' && c != '\r':
			return false
		case c == 0xEF && i+2 < len(b) && b[i+1] == 0xBF && b[i+2] >= 0xBE: // U+FFFE and U+FFFF
			return false
		case c == '&' && references:
			_, n := reference(b[i:])
			if n == 0 {
				return false
			}
			i += n - 1
		case c == ']' && references && bytes.HasPrefix(b[i:], []byte("]]>")):
			return false
		}
	}
	return true
}

var namedReferences = map[string]rune{"amp": '&', "lt": '<', "gt": '>', "quot": '"', "apos": '\''}

// reference returns the character that a reference stands for, and its length; 0: it is none.
func reference(b []byte) (c rune, length int) {
	end := bytes.IndexByte(b[:min(len(b), 12)], ';')
	if end < 0 {
		return 0, 0
	}
	name := string(b[1:end])
	if c, ok := namedReferences[name]; ok {
		return c, end + 1
	}
	digits, ok := strings.CutPrefix(name, "#")
	base := 10
	if hex, is := strings.CutPrefix(digits, "x"); is {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(digits, base, 21)
	c = rune(n)
	if !ok || err != nil || !utf8.ValidRune(c) || c == 0xFFFE || c == 0xFFFF ||
		c < 0x20 && c != '\t' && c != '\n' && c != '\r' {
		return 0, 0
	}
	return c, end + 1
}

// unescape replaces references; the text was checked by isText.
func unescape(b []byte) string {
	if bytes.IndexByte(b, '&') < 0 {
		return string(b)
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); {
		if b[i] == '&' {
			if c, n := reference(b[i:]); n > 0 {
				out = utf8.AppendRune(out, c)
				i += n
				continue
			}
		}
		out = append(out, b[i])
		i++
	}
	return string(out)
}

var escapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\r", "&#13;",
	"\n", "&#10;", "\t", "&#9;")

func escape(s string) string { return escapes.Replace(s) }

// mentions reports whether a text has prefix: where a name may begin: as the name of an element or
// attribute, or as a value that is a name.
func mentions(b []byte, prefix string) bool {
	for from := 0; ; {
		i := bytes.Index(b[from:], []byte(prefix+":"))
		if i < 0 {
			return false
		}
		from += i
		if from == 0 || b[from-1] == '/' || xmltext.IsNameEnd(b[from-1]) || strings.IndexByte("<\"'>", b[from-1]) >= 0 {
			return true
		}
		from++
	}
}

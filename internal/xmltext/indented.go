package xmltext

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Indented is a document with a line for each element and each piece of text between elements; what
// is not well-formed stays as it is.
func Indented(doc []byte) []byte {
	const step, deepest = "  ", 40 // what nests deeper stands where the deepest does
	var b bytes.Buffer
	depth, line := 0, ""
	flush := func() {
		if line != "" {
			fmt.Fprintf(&b, "%s%s\n", strings.Repeat(step, min(depth, deepest)), line)
		}
		line = ""
	}
	open := false // line has a start tag, and maybe text: its end tag may follow
	tokens := New(doc)
	for {
		t, err := tokens.Next()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return doc
		}
		text := string(doc[t.From:t.To])
		switch t.Kind {
		case Start:
			if open {
				flush()
				depth++
			}
			flush()
			line, open = text, true
		case End:
			if open {
				line += text
				flush()
				open = false
				continue
			}
			flush()
			depth = max(depth-1, 0)
			line = text
			flush()
		case Text, CDATA:
			if text = strings.Trim(text, " \t\r\n"); text == "" {
				continue
			}
			if open {
				line += text
				continue
			}
			line = text
			flush()
		default:
			if open {
				flush()
				depth++
				open = false
			}
			line = text
			flush()
		}
	}
	flush()
	return b.Bytes()
}

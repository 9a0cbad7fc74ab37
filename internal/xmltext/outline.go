package xmltext

import (
	"bytes"
	"html"
	"strings"
)

// Outline is a document as a tree without markup, a line for each element, with its attributes and
// its text behind its name: `total @currency EUR 12.50`. Namespace declarations are left out;
// prefixes stand as they are. What is not well-formed stays as it is.
func Outline(doc []byte) []byte {
	const step, deepest = "  ", 40
	var b bytes.Buffer
	depth, line := 0, ""
	flush := func() {
		if line != "" {
			b.WriteString(strings.Repeat(step, min(depth, deepest)) + line + "\n")
		}
		line = ""
	}
	open := false // line is of an element that has had no child
	tokens := New(doc)
	for {
		t, err := tokens.Next()
		if err != nil {
			break
		}
		switch t.Kind {
		case Start, Empty:
			if open {
				flush()
				depth++
			}
			flush()
			line, open = outlined(doc, t, tokens.Attrs()), t.Kind == Start
		case End:
			if !open {
				flush()
				depth = max(depth-1, 0)
			}
			flush()
			open = false
		case Text, CDATA:
			text := strings.Join(strings.Fields(plainText(doc[t.From:t.To], t.Kind)), " ")
			switch {
			case text == "":
			case open:
				line += " " + text
			default:
				flush()
				line = text
			}
		default:
		}
	}
	flush()
	if b.Len() == 0 {
		return doc
	}
	return b.Bytes()
}

func outlined(doc []byte, t Token, attrs []Attr) string {
	line := string(doc[t.NameFrom:t.NameTo])
	for _, a := range attrs {
		name := string(doc[a.NameFrom:a.NameTo])
		if name != "xmlns" && !strings.HasPrefix(name, "xmlns:") {
			line += " @" + name + " " + plainText(doc[a.ValueFrom:a.ValueTo], Text)
		}
	}
	return line
}

func plainText(text []byte, kind Kind) string {
	if kind == CDATA {
		return string(text[len("<![CDATA[") : len(text)-len("]]>")])
	}
	return html.UnescapeString(string(text)) // which knows more names than XML
}

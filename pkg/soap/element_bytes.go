package soap

import "unicode/utf8"

// usualElement is room for most elements that stand alone, in bytes.
const usualElement = 1 << 10

// BuildElement writes an element as a document of its own, in UTF-8; its namespace gets the prefix
// n. A server does that for each session that begins, so that it makes no tree of it.
func BuildElement(e *Element) ([]byte, error) {
	return appendElement(make([]byte, 0, usualElement), e, ""), nil
}

// appendElement appends an element. bound is the namespace that the prefix n stands for around it.
func appendElement(b []byte, e *Element, bound string) []byte {
	b = appendName(append(b, '<'), e)
	if space := e.Name.Space; space != "" && space != bound {
		b = append(appendEscaped(append(b, ` xmlns:n="`...), space, true), '"')
		bound = space
	}
	for _, a := range e.Attrs {
		b = append(append(append(b, ' '), a.Name...), `="`...)
		b = append(appendEscaped(b, a.Value, true), '"')
	}
	if e.Text == "" && len(e.Children) == 0 {
		return append(b, "/>"...)
	}
	b = appendEscaped(append(b, '>'), e.Text, false)
	for i := range e.Children {
		b = appendElement(b, &e.Children[i], bound)
	}
	return append(appendName(append(b, "</"...), e), '>')
}

func appendName(b []byte, e *Element) []byte {
	if e.Name.Space != "" {
		b = append(b, "n:"...)
	}
	return append(b, e.Name.Local...)
}

// appendEscaped appends a text, or the value of an attribute, with no more escapes than needed in a
// text. What XML forbids becomes U+FFFD.
func appendEscaped(b []byte, s string, value bool) []byte {
	from := 0
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		if by := escapeOf(r, width, value); by != "" {
			b = append(append(b, s[from:i]...), by...)
			from = i + width
		}
		i += width
	}
	return append(b, s[from:]...)
}

// escapeOf is what stands for a character; empty: itself.
func escapeOf(r rune, width int, value bool) string {
	switch {
	case r == '&':
		return "&amp;"
	case r == '<':
		return "&lt;"
	case r == '>':
		return "&gt;"
	case r == '\'' && value:
		return "&apos;"
	case r == '"' && value:
		return "&quot;"
	case r == '\r' && !value:
		return "&#xD;"
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == utf8.RuneError && width == 1, r == 0xFFFE, r == 0xFFFF:
		return "\uFFFD"
	}
	return ""
}

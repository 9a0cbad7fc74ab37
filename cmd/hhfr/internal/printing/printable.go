// Package printing makes texts of values, for people and as JSON.
package printing

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Printable makes a line of a text that others wrote. Whatever would move a terminal's cursor,
// turn the direction of writing, or not be seen, becomes a question mark: all that is no graphic
// character of Unicode.
func Printable(s string) string { return strings.ReplaceAll(Lines(s), "\n", "?") }

// Lines is printable for a text of several lines.
func Lines(s string) string {
	return strings.Map(func(r rune) rune {
		if IsHidden(r) {
			return '?'
		}
		return r
	}, s)
}

// IsHidden is true for what a terminal would not show as a character.
func IsHidden(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// Line is [fmt.Fprintf] for a line with texts that others wrote.
func Line(w io.Writer, format string, args ...any) error {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = Printable(a)
		case fmt.Stringer:
			args[i] = Printable(a.String())
		}
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// Escaping is where JSON is written that a terminal may show: the same JSON, with escapes for
// whatever is not [Printable].
type Escaping struct{ io.Writer }

// Write takes whole texts.
func (e Escaping) Write(b []byte) (int, error) {
	if bytes.IndexFunc(b, IsHidden) < 0 {
		return e.Writer.Write(b)
	}
	var out strings.Builder
	for _, r := range string(b) {
		if !IsHidden(r) {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&out, "\\u%04x", unit)
		}
	}
	if _, err := io.WriteString(e.Writer, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

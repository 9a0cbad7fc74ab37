package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
)

// printable makes a line of a text that others wrote. Whatever would move a terminal's cursor,
// turn the direction of writing, or not be seen, becomes a question mark: all that is no graphic
// character of Unicode.
func printable(s string) string { return strings.ReplaceAll(printableLines(s), "\n", "?") }

// printableLines is printable for a text of several lines.
func printableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if isHidden(r) {
			return '?'
		}
		return r
	}, s)
}

func isHidden(r rune) bool { return r != '\n' && !unicode.IsGraphic(r) }

// printLine is [fmt.Fprintf] for a line with texts that others wrote.
func printLine(w io.Writer, format string, args ...any) error {
	for i, a := range args {
		switch a := a.(type) {
		case string:
			args[i] = printable(a)
		case fmt.Stringer:
			args[i] = printable(a.String())
		}
	}
	_, err := fmt.Fprintf(w, format, args...)
	return err
}

// escaping is where JSON is written that a terminal may show: the same JSON, with escapes for
// whatever is not [printable].
type escaping struct{ io.Writer }

// Write takes whole texts.
func (e escaping) Write(b []byte) (int, error) {
	if bytes.IndexFunc(b, isHidden) < 0 {
		return e.Writer.Write(b)
	}
	var out strings.Builder
	for _, r := range string(b) {
		if !isHidden(r) {
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

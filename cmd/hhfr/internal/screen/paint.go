package screen

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

// style is how a text looks.
type style int

const (
	plain style = iota
	title
	cursor
	faint
	match
	bad
	unsure
	good
	differs
)

// Escape sequences of styles, with color and without.
var (
	colored = [...]string{
		title: "1;36", cursor: "7", faint: "2", match: "30;43", bad: "1;31", unsure: "33", good: "32", differs: "30;46",
	}
	gray = [...]string{title: "1", cursor: "7", match: "4", bad: "1", differs: "7"}
)

// brush paints texts, on a terminal with color or without.
type brush struct{ color bool }

// paint is a text that is [safe] in a style.
func (b brush) paint(s style, text string) string {
	code := ""
	switch {
	case b.color:
		code = colored[s]
	case int(s) < len(gray):
		code = gray[s]
	}
	if code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}

// safe is a line of a text that others wrote, with nothing that a terminal would obey. All that is
// shown of messages goes through it.
func safe(s string) string {
	return printing.Printable(strings.ReplaceAll(strings.TrimSuffix(s, "\r"), "\t", "    "))
}

// safeLines are the lines of such a text.
func safeLines(text string) []string {
	lines := strings.Split(strings.TrimRight(text, "\r\n"), "\n")
	for i, line := range lines {
		lines[i] = safe(line)
	}
	return lines
}

// columns is how wide a text without escape sequences is shown.
func columns(s string) int { return ansi.StringWidth(s) }

// cutAt is the length in bytes of the longest beginning of a line that fits a width; at least one
// character.
func cutAt(s string, width int) int {
	const longest = 16 // bytes of what a reader sees as one character, and no less
	near := s[:min(len(s), (width+1)*longest)]
	for i := 0; ; i++ {
		if i == len(s) || i == width && (s[i] < 0x80 || i == 0) {
			return i
		}
		if i > width || s[i] >= 0x80 {
			break
		}
	}
	n := len(ansi.Truncate(near, width, ""))
	if n == 0 {
		for n++; n < len(s) && s[n]&0xc0 == 0x80; n++ {
		}
	}
	return n
}

// fit cuts a line to a width, or fills it up.
func fit(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if n := cutAt(s, width); n < len(s) {
		s = s[:cutAt(s, width-1)] + "…"
	}
	return s + strings.Repeat(" ", max(0, width-columns(s)))
}

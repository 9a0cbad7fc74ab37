// Package hexdump shows what was on the wire as hexadecimal digits, each field by its name.
package hexdump

import (
	"bytes"
	"fmt"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/dissect"
)

const (
	// short fields have their names beside them, a line for each.
	short = 8
	// perRow is how many bytes of a long field stand on a line.
	perRow = 16
)

// Write shows a piece behind its title.
func Write(b *bytes.Buffer, p dissect.Dissected) {
	fmt.Fprintf(b, "%s\n", p.Title)
	if len(p.Fields) == 0 {
		rows(b, 0, p.Octets)
		return
	}
	for _, f := range p.Fields {
		octets, name := p.Octets[f.From:f.To], f.Name
		if f.Value != "" {
			name += ": " + printing.Printable(f.Value)
		}
		if len(octets) <= short {
			fmt.Fprintf(b, "%6d  %-*s  %s\n", f.From, 3*short-1, spaced(octets), name)
			continue
		}
		fmt.Fprintf(b, "%6d  %s, %s\n", f.From, name, printing.Count(len(octets), "byte"))
		rows(b, f.From, octets)
	}
}

func rows(b *bytes.Buffer, at int, octets []byte) {
	for len(octets) > 0 {
		row := octets[:min(perRow, len(octets))]
		fmt.Fprintf(b, "%6d  %-*s  %s\n", at, 3*perRow-1, spaced(row), ascii(row))
		at, octets = at+len(row), octets[len(row):]
	}
}

func spaced(octets []byte) string { return fmt.Sprintf("% x", octets) }

// ascii is what bytes are as text, with dots for what is none.
func ascii(octets []byte) string {
	text := make([]byte, len(octets))
	for i, c := range octets {
		if text[i] = c; c < ' ' || c > '~' {
			text[i] = '.'
		}
	}
	return string(text)
}

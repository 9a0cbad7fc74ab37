package main

import (
	"strings"
	"unicode/utf8"
)

// cells is lines of cells; the first line is the heading.
type cells [][]string

// table prints a table that is readable as text and valid Markdown: first column aligned left, all
// others right.
func (p *tablePrinter) table(t cells) {
	widths := make([]int, len(t[0]))
	for _, line := range t {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range t {
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				p.printf("| %s%s ", cell, pad)
			} else {
				p.printf("| %s%s ", pad, cell)
			}
		}
		p.printf("|\n")
		if n > 0 {
			continue
		}
		for i, w := range widths {
			if i == 0 {
				p.printf("|%s", strings.Repeat("-", w+2))
			} else {
				p.printf("|%s:", strings.Repeat("-", w+1))
			}
		}
		p.printf("|\n")
	}
}

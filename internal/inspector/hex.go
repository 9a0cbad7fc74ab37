package inspector

import "fmt"

// perRow is how many bytes a row of [Hex] has.
const perRow = 16

// Hex makes rows of bytes: offset, bytes, and those among them that are ASCII.
func Hex(b []byte) []string {
	rows := make([]string, 0, len(b)/perRow+1)
	for at := 0; at < len(b); at += perRow {
		part := b[at:min(at+perRow, len(b))]
		text := make([]byte, len(part))
		for i, c := range part {
			if text[i] = '.'; c >= ' ' && c <= '~' {
				text[i] = c
			}
		}
		first, second := part[:min(perRow/2, len(part))], part[min(perRow/2, len(part)):]
		rows = append(rows, fmt.Sprintf("%08x  %-23s  %-23s  %s", at, fmt.Sprintf("% x", first),
			fmt.Sprintf("% x", second), text))
	}
	return rows
}

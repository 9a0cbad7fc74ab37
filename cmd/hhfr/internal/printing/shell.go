package printing

import (
	"fmt"
	"strings"
)

// ShellWord is a text as a word of a shell. What a terminal would obey is escaped, in the quotes of
// POSIX 2024 that bash, zsh and ksh have.
func ShellWord(text string) string {
	if !strings.ContainsFunc(text, IsHidden) {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range text {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case IsHidden(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString("'")
	return b.String()
}

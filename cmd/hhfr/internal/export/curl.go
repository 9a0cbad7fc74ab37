package export

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

// writeCurl writes a command, behind a comment that says which message it sends.
func writeCurl(w io.Writer, m chosen.Asked, r resendable) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d %s\n", m.Number, printing.Printable(m.Operation.Local))
	if bytes.IndexByte(r.body, 0) >= 0 || !utf8.Valid(r.body) {
		fmt.Fprintf(&b, "# left out: no shell takes its bytes as an argument; --save-dir has them\n\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "curl -s -X %s", word(r.method))
	for _, f := range r.fields {
		name := f.Name + ": " + f.Value
		if f.Value == "" {
			name = f.Name + ";" // which is how curl sends a field without a value
		}
		fmt.Fprintf(&b, " \\\n  -H %s", word(name))
	}
	if len(r.body) > 0 {
		fmt.Fprintf(&b, " \\\n  --data-binary %s", word(string(r.body)))
	}
	fmt.Fprintf(&b, " \\\n  %s\n\n", word(r.url))
	_, err := io.WriteString(w, b.String())
	return err
}

// word is a text as a word of a shell. What a terminal would obey is escaped, in the quotes of
// POSIX 2024 that bash, zsh and ksh have.
func word(text string) string {
	if !strings.ContainsFunc(text, printing.IsHidden) && !strings.HasPrefix(text, "@") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i, r := range text {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case printing.IsHidden(r):
			for _, c := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		case i == 0 && r == '@': // curl would take it for a file
			b.WriteString(`\100`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteString("'")
	return b.String()
}

package export

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

// writeCurl writes a command, behind a comment that says which message it sends.
func writeCurl(w io.Writer, r *resendable) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %d %s\n", r.Number, printing.Printable(r.Operation.Local))
	if bytes.IndexByte(r.body, 0) >= 0 || !utf8.Valid(r.body) {
		b.WriteString("# left out: no shell takes its bytes as an argument; --save-dir has them\n\n")
		_, err := io.WriteString(w, b.String())
		return err
	}
	fmt.Fprintf(&b, "curl -s -X %s", printing.ShellWord(r.method))
	for _, f := range r.fields {
		line := f.Name + ": " + f.Value
		if f.Value == "" {
			line = f.Name + ";" // which is how curl sends a field without a value
		}
		fmt.Fprintf(&b, " \\\n  -H %s", printing.ShellWord(line))
	}
	if len(r.body) > 0 {
		fmt.Fprintf(&b, " \\\n  --data-raw %s", printing.ShellWord(string(r.body)))
	}
	fmt.Fprintf(&b, " \\\n  %s\n\n", printing.ShellWord(r.url))
	_, err := io.WriteString(w, b.String())
	return err
}

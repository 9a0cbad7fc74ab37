package listing

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
)

// show prints a message itself, behind a line that says which it is. Characters that a terminal
// would obey are question marks: -o xml and --save-dir have the bytes.
func (l *listing) show(m *listed) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %d %s %s", m.Number, kindOf(m), operationText(m))
	if m.Src.IsValid() {
		fmt.Fprintf(&b, " %s -> %s", m.Src, m.Dst)
	}
	if !m.First.IsZero() {
		b.WriteString(m.First.UTC().Format(" 15:04:05.000000"))
	}
	for _, text := range []string{statusText(m), durationText(m)} {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
	fmt.Fprintf(&b, " %s\n", stateText(m))
	for _, part := range partsOf(m) {
		fmt.Fprintf(&b, "# part %s %s, %s\n", cmp.Or(part.ID, "-"), part.Type, printing.Count(part.Octets, "byte"))
	}
	if l.choice.Head {
		head := bytes.TrimRight(bytes.ReplaceAll(m.Head, []byte("\r\n"), []byte("\n")), "\n")
		if len(head) == 0 {
			head = []byte("(the default head)")
		}
		b.Write(append(head, "\n\n"...))
	}
	var body bytes.Buffer
	if m.Whole() {
		if err := m.WriteBody(&body); err != nil {
			return err
		}
	}
	b.Write(l.choice.Shown(body.Bytes()))
	text := strings.TrimRight(printing.Lines(b.String()), "\n") + "\n\n"
	_, err := io.WriteString(l.w, text)
	return err
}

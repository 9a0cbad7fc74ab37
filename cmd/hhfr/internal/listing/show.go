package listing

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/chosen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/hexdump"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/dissect"
	"github.com/hhfr/hhfr/internal/xmltext"
)

// show prints a message itself.
func (l *Listing) show(m *ListedMessage) error {
	var body bytes.Buffer
	if m.Whole() {
		if err := m.WriteBody(&body); err != nil {
			return err
		}
	}
	_, err := io.WriteString(l.w, Shown(m, body.Bytes(), l.choice)+"\n")
	return err
}

// Shown is a message itself, behind a line that says which it is, in the form that is chosen.
// Characters that a terminal would obey are question marks: -o xml and --save-dir have the bytes.
func Shown(m *ListedMessage, body []byte, choice *chosen.Choice) string {
	var b bytes.Buffer
	title(&b, m, choice)
	if choice.Tree {
		known(&b, m)
	}
	switch {
	case choice.Tree:
		b.WriteString("head\n")
		indent(&b, headText(m))
	case choice.Head:
		fmt.Fprintf(&b, "%s\n\n", headText(m))
	}
	switch {
	case choice.Tree:
		b.WriteString("envelope\n")
		indent(&b, string(xmltext.Outline(body)))
	case choice.Pretty, !choice.Hex && !choice.Bits:
		b.Write(choice.Shown(body))
	}
	if choice.Bits {
		carried(&b, m)
	}
	if choice.Hex {
		if choice.Tree || choice.Pretty {
			b.WriteString("\n")
		}
		left := m.Wire
		for _, p := range dissect.Message(m.Decoded, body) {
			left -= int64(len(p.Octets))
			hexdump.Write(&b, p)
		}
		if m.HHFR && left > 0 {
			b.WriteString("the frames behind these are not shown\n")
		}
	}
	return strings.TrimRight(printing.Lines(b.String()), "\n") + "\n"
}

// title is the line that says which message follows.
func title(b *bytes.Buffer, m *ListedMessage, choice *chosen.Choice) {
	fmt.Fprintf(b, "# %d %s %s", m.Number, m.Kind, operationText(m))
	if m.Src.IsValid() {
		fmt.Fprintf(b, " %s -> %s", m.Src, m.Dst)
	}
	if !m.First.IsZero() {
		b.WriteString(" " + choice.Time(m.First))
	}
	for _, text := range []string{statusText(m), durationText(m)} {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
	fmt.Fprintf(b, " %s\n", stateText(m))
	for _, part := range partsOf(m) {
		fmt.Fprintf(b, "# part %s %s, %s\n", cmp.Or(part.ID, "-"), part.Type, printing.Count(part.Octets, "byte"))
	}
}

// frame prints a frame that belongs to no message.
func (l *Listing) frame(f *capture.RawFrame) error {
	var b bytes.Buffer
	hexdump.Write(&b, dissect.Frame(f))
	_, err := io.WriteString(l.w, printing.Lines(b.String())+"\n")
	return err
}

func headText(m *ListedMessage) string {
	head := strings.TrimRight(strings.ReplaceAll(string(m.Head), "\r\n", "\n"), "\n")
	if head == "" {
		return "(the default head)"
	}
	return head
}

// known lists what is known of a message beside its head and its envelope.
func known(b *bytes.Buffer, m *ListedMessage) {
	fact := func(name, format string, args ...any) {
		fmt.Fprintf(b, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	if m.Packet > 0 {
		fact("packet", "%d", m.Packet)
	}
	if !m.First.IsZero() {
		fact("first", "%s", stamp(m.First))
		fact("last", "%s", stamp(m.Last))
	}
	if m.HHFR {
		fact("session", "%s", m.SessionString())
		fact("stream", "%d %s, message %d there", m.Stream, [...]string{"out", "back"}[m.Direction], m.Index)
		fact("exchange", "%d on lane %d", m.Exchange, m.Lane)
	}
	if m.Operation.Space != "" {
		fact("namespace", "%s", m.Operation.Space)
	}
	fact("wire", "%s", printing.Count(m.Wire, "byte"))
	fact("envelope", "%s", printing.Count(m.BodyOctets, "byte"))
	if m.FastInfoset {
		fact("", "sent in Fast Infoset")
	}
}

// indent writes lines below a heading.
func indent(b *bytes.Buffer, text string) {
	for line := range strings.Lines(text) {
		b.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
	}
}

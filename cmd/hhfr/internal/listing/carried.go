package listing

import (
	"bytes"
	"fmt"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/shape"
)

// carried says how a message became the bytes that it was on the wire: the shapes of its head and
// body, and what each place of them cost.
func carried(b *bytes.Buffer, m *ListedMessage) {
	head := int64(len(m.Head))
	fmt.Fprintf(b, "message    %8d bytes: head %d, envelope %d\n", head+m.BodyOctets, head, m.BodyOctets)
	fmt.Fprintf(b, "on the wire%8d bytes: %s of that\n", m.Wire, printing.RatioText(m.Wire, head+m.BodyOctets))
	on := m.Carriage
	if on == nil {
		b.WriteString("It went as plain SOAP in HTTP: nothing is packed, but for a coding of HTTP.\n")
		return
	}
	fmt.Fprintf(b, "  framing  %8d        kinds, lengths, numbers of frames and shapes\n",
		m.Wire-on.Head.Packed-on.Body.Packed)
	parts := []struct {
		name string
		*capture.CarriedPart
	}{{"head", &on.Head}, {"body", &on.Body}}
	for _, p := range parts {
		what := "values"
		switch {
		case p.Segments == 0:
			fmt.Fprintf(b, "  %s     %8d        it is the default one, or empty\n", p.name, 0)
			continue
		case p.Shape == nil:
			what = "text"
		}
		fmt.Fprintf(b, "  %s     %8d        %s of %d bytes, in %s\n", p.name, p.Packed, what, p.Content,
			printing.Count(p.Segments, "segment"))
	}
	for _, p := range parts {
		if p.Shape == nil {
			continue
		}
		fmt.Fprintf(b, "\nshape of the %s: %s\n", p.name, p.Shape.Fingerprint().URI())
		_ = shape.PrintNoted(b, p.Shape, func(place int) string { // a buffer never fails
			if place >= len(p.Places) {
				return ""
			}
			return "   " + printing.Count(p.Places[place], "bit")
		})
	}
}

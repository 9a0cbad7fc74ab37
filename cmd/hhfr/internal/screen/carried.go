package screen

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/inspector"
	"github.com/hhfr/hhfr/internal/shape"
)

// carriedLines say how a message became the bytes that it was on the wire, with the shapes of its
// head and body.
func carriedLines(e *inspector.LogEntry, shapes func(uri string) *shape.Shape) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, safe(fmt.Sprintf(format, args...))) }
	head := int64(len(e.Head))
	say("message    %8d bytes: head %d, envelope %d", head+e.BodyOctets, head, e.BodyOctets)
	say("on the wire%8d bytes: %s of that", e.Wire, printing.RatioText(e.Wire, head+e.BodyOctets))
	if e.Stream == 0 {
		say("It went as plain SOAP in HTTP: nothing is packed, but for a coding of HTTP.")
		return lines
	}
	parts := []*inspector.CarriedAs{&e.CarriedHead, &e.CarriedBody}
	say("  framing  %8d        kinds, lengths, numbers of frames and shapes",
		e.Wire-parts[0].Packed-parts[1].Packed)
	for i, name := range []string{"head", "body"} {
		p := parts[i]
		what := "values"
		switch {
		case p.Segments == 0:
			say("  %s     %8d        it is the default one, or empty", name, 0)
			continue
		case p.URI == "":
			what = "text"
		}
		say("  %s     %8d        %s of %d bytes, in %s", name, p.Packed, what, p.Content,
			printing.Count(p.Segments, "segment"))
	}
	for i, name := range []string{"head", "body"} {
		if p := parts[i]; p.URI != "" {
			say("")
			say("shape of the %s: %s", name, p.URI)
			tree := new(strings.Builder)
			if s := shapes(p.URI); s != nil {
				_ = shape.PrintNoted(tree, s, func(place int) string { // a builder never fails
					if place >= len(p.Places) {
						return ""
					}
					return fmt.Sprintf("   %s", printing.Count(p.Places[place], "bit"))
				})
			}
			lines = append(lines, safeLines(cmp.Or(tree.String(), "(not stored)"))...)
		}
	}
	return lines
}

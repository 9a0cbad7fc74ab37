package screen

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/hexdump"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/dissect"
	"github.com/hhfr/hhfr/internal/inspector"
)

// carriedLines say how a message became the bytes that it was on the wire. shape is the tree of a
// shape.
func carriedLines(e *inspector.Logged, shape func(uri string) string) (lines []string) {
	say := func(format string, args ...any) { lines = append(lines, safe(fmt.Sprintf(format, args...))) }
	head := int64(len(e.Head))
	say("message    %8d bytes: head %d, envelope %d", head+e.BodyOctets, head, e.BodyOctets)
	say("on the wire%8d bytes: %s of that", e.WireOctets, printing.RatioText(e.WireOctets, head+e.BodyOctets))
	if !e.HHFR {
		say("")
		say("It went as plain SOAP in HTTP: nothing is packed, but for a coding of HTTP.")
		return lines
	}
	packed := e.Carried[0].Packed + e.Carried[1].Packed
	say("  framing  %8d        kind, length, lane and exchange of frames", e.WireOctets-e.Payload)
	say("  numbers  %8d        shapes, lengths of segments, place in a sequence", e.Payload-packed)
	for i, name := range []string{"head", "body"} {
		p := e.Carried[i]
		switch {
		case p.Segments == 0:
			say("  %s     %8d        it is the default one, or empty", name, 0)
		case p.Shape == "":
			say("  %s     %8d        text of %d bytes, in %s", name, p.Packed, p.Content,
				printing.Count(p.Segments, "segment"))
		default:
			say("  %s     %8d        values of %d bytes, packed in %s", name, p.Packed, p.Content,
				printing.Count(p.Segments, "segment"))
		}
	}
	for i, name := range []string{"head", "body"} {
		uri := e.Carried[i].Shape
		if uri == "" {
			continue
		}
		say("")
		say("shape of the %s: %s", name, uri)
		tree := cmp.Or(shape(uri), "(not stored)")
		for line := range strings.Lines(tree) {
			say("  %s", strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// frameLines are the frames of a message of a stream, each field by its name, and a title for the
// envelope behind them.
func frameLines(e *inspector.Logged) []string {
	if len(e.Frames) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, f := range dissect.Message(&capture.Decoded{HHFR: true, Frames: e.Frames}, nil) {
		hexdump.Write(&b, f)
	}
	return append(safeLines(b.Bytes()), "", "envelope")
}

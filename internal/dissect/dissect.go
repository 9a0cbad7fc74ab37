// Package dissect names the fields of what captures have: of the frames of streams (by their names
// on docs/wire-format.md), and of HTTP messages.
package dissect

import (
	"bytes"
	"fmt"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/frame"
)

// Dissected is a frame, or an HTTP message.
type Dissected struct {
	// Title says where it was.
	Title  string
	Octets []byte
	// Fields are those of the bytes, in order and without gaps. What cannot be read has none.
	Fields []frame.FrameField
}

// Message takes a message apart. In plain SOAP it is its HTTP head as it was, and body, which is
// without transfer coding. For frames see [capture.DecodeConfig].
func Message(m *capture.Decoded, body []byte) (list []Dissected) {
	if !m.HHFR {
		return []Dissected{httpMessage(m, body)}
	}
	var state frame.MessageState
	for i := range m.Frames {
		list = append(list, within(&m.Frames[i], &state))
	}
	return list
}

// Frame takes a frame apart, as far as that is possible without the message that it may be of.
func Frame(f *capture.RawFrame) Dissected { return within(f, nil) }

// within takes a frame apart, behind the frames of its message that state has seen.
func within(f *capture.RawFrame, state *frame.MessageState) Dissected {
	p := Dissected{Octets: f.Octets, Title: fmt.Sprintf("stream %d %s, byte %d, length %d", f.Stream,
		[...]string{"out", "back"}[f.Direction], f.At, len(f.Octets))}
	if f.Packet > 0 {
		p.Title += fmt.Sprintf(", packet %d", f.Packet)
	}
	if fields, _, err := frame.Dissect(f.Octets, state); err == nil {
		p.Fields = fields
	}
	return p
}

func httpMessage(m *capture.Decoded, body []byte) Dissected {
	p := Dissected{Octets: append(m.Head[:len(m.Head):len(m.Head)], body...)}
	p.Title = fmt.Sprintf("head, length %d, and body, length %d", len(m.Head), len(body))
	if m.Packet > 0 {
		p.Title += fmt.Sprintf(", packet %d", m.Packet)
	}
	add := func(name string, n int) {
		from := 0
		if len(p.Fields) > 0 {
			from = p.Fields[len(p.Fields)-1].To
		}
		if n > 0 {
			p.Fields = append(p.Fields, frame.FrameField{Name: name, From: from, To: from + n})
		}
	}
	name := "start line"
	for line := range bytes.Lines(m.Head) {
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			name = "end of the head"
		}
		add(name, len(line))
		name = "field"
	}
	add("body", len(body))
	return p
}

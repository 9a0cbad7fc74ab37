package wire

import (
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/program"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// Outgoing is a message on its way out: key and the rest are set before its first fragment.
type Outgoing struct {
	frame.Key
	Interim bool
	OneWay  bool
	Place   frame.Place

	begun bool
	over  bool
	epoch uint64     // syncs before it began
	lane  uint64     // sentLane.id then
	texts bool       // a part found no number for its shape
	parts [2]partOut // head and body
}

// Begun reports whether the first fragment of the message was encoded.
func (m *Outgoing) Begun() bool { return m.begun }

// partOut is a head or body that goes out.
type partOut struct {
	begun    bool
	inLane   bool            // its lane may remember it: it is in one frame, and no sync came since its message began
	sent     *sentShape      // the shape under whose number it goes; nil: as text
	join     *program.Joiner // of content that had no number to go under: it is joined again, and goes as text
	at       columns.Packing
	memory   *columns.Memory // of its own
	window   *recall.History // of its own
	text     []byte          // what it is, if its shape is announced by that; nil: it is not
	recalled int             // bytes that were compressed by a window
	remember bool            // its lane remembers it
	fresh    bool            // its lane remembers nothing of the shape yet
}

// Written is what an encoder has appended: a frame.
type Written struct {
	Kind   frame.Kind
	At     int64
	Octets int
	// Of a data frame: octets of payload, and of content before it was packed.
	Payload, Content int
}

// finish is the end of a message's way.
func (m *Outgoing) finish() {
	if m.over {
		return
	}
	m.over = true
	for i := range m.parts {
		p := &m.parts[i]
		if p.sent != nil {
			p.sent.open--
		}
		if p.memory != nil {
			p.memory.Reset()
		}
		if p.join != nil {
			joiners.Put(p.join)
		}
		p.sent, p.memory, p.window, p.join, p.text = nil, nil, nil, nil, nil
	}
}

// textual reports whether the part goes as text.
func (p *partOut) textual() bool { return p.join != nil || p.text != nil }

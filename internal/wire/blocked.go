package wire

import "github.com/hhfr/hhfr/internal/frame"

// blockedLanes keeps the fragments of lanes that wait for a shape, in order (section 4).
type blockedLanes struct {
	lanes map[uint64][]blockedFragment
	// octets of payload, and with what keeping them costs.
	octets, weight int64
}

// blockedWeight is what a fragment that waits costs beside its payload, in bytes.
const blockedWeight = 512

type blockedFragment struct {
	message     *IncomingMessage
	first, last bool
	parts       frame.Parts
	entries     [2]*numberedShape // of the message when the fragment came
	epoch       uint64
	settled     uint64 // by a flush behind it
}

func (f *blockedFragment) size() int64 {
	return int64(len(f.parts.Head.Segment) + len(f.parts.Body.Segment))
}

// lane reports whether fragments of a lane wait.
func (h *blockedLanes) lane(lane uint64) bool { return len(h.lanes[lane]) > 0 }

// settle notes a flush behind the last fragment of a message, if that waits; it is false if it does
// not.
func (h *blockedLanes) settle(m *IncomingMessage, settled uint64) bool {
	lane := h.lanes[m.Lane]
	for i := len(lane) - 1; i >= 0; i-- {
		if lane[i].message == m {
			lane[i].settled = settled
			return true
		}
	}
	return false
}

// waits reports whether anything waits for a shape.
func (h *blockedLanes) waits(e *numberedShape) bool {
	for _, lane := range h.lanes {
		for i := range lane {
			if lane[i].entries[0] == e || lane[i].entries[1] == e {
				return true
			}
		}
	}
	return false
}

func (f *blockedFragment) bound() bool {
	for i, e := range f.entries {
		if e != nil && e.program == nil && (!e.unread || !f.message.parts[i].states) {
			return false
		}
	}
	return true
}

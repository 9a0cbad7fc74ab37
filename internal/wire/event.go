package wire

import (
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// EventKind is what an [Event] tells.
type EventKind uint8

const (
	// Met: the direction begins, with Event.Hello.
	Met EventKind = iota + 1
	// Fragment: content of a message, the first of it with Event.First, the last with Event.Last.
	// Event.Err says why there is none.
	Fragment
	// Settled: the sender of a message waits. So many octets of the texts behind the last item of
	// its content are there ([program.Joiner.Settle]).
	Settled
	// Cancelled: the sender gives a message up. Event.Message is nil if nothing of it came here.
	Cancelled
	// Refused: the sender does not take a message of the other direction.
	Refused
	// Lost: what is missing of a message will not come, as bytes were missing or malformed.
	Lost
	// Dropped: a message waited for a shape that did not come, or for longer than it could be held.
	Dropped
	// Lacks: the shape of Event.Number is not here, and its sender is to be asked for it.
	Lacks
	// Asked: the sender lacks the shape of a number of the other direction.
	Asked
	// Granted: the sender takes more content of a message of the other direction.
	Granted
	// Acked: the sender tells of a sequence.
	Acked
	// KeptLong: the sender tells what it has of long messages.
	KeptLong
	// Wanted: the sender wants a sync of the other direction.
	Wanted
	// Synced: a sync. Event.Verdict is about the messages since the one before.
	Synced
	// Closed: the direction ends, with Event.Close. Event.Verdict is about the messages since the
	// last sync.
	Closed
)

// Event is something that a frame says. What it refers to holds until the next call, unless the
// configuration says otherwise.
type Event struct {
	Kind    EventKind
	Message *IncomingMessage
	// Of Fragment: content of head and body, as the shape's join takes it.
	First, Last bool
	Head, Body  Part
	Err         error
	// Buffer is where the content lies. Without [DecoderConfig.Scratch] whoever takes the event
	// owns it, and may give it back by [Release].
	Buffer *reuse.Buffer

	Hello   *frame.Hello // of Met
	Cancel  frame.Cancel
	Number  uint64
	Window  frame.Window
	Settled uint64
	Octets  []byte // of Acked
	Kept    []frame.KeptPart
	Close   frame.Close
	Verdict Verdict
}

// Verdict is what a check says of messages: those that became whole from number From+1 on, up to
// To.
type Verdict struct {
	From, To uint64
	// Right: the check agrees. Known: it could be computed; otherwise Right means nothing.
	Right, Known bool
}

// IncomingMessage is a message that comes in.
type IncomingMessage struct {
	frame.Key
	// Interim is a reply before the one that counts.
	Interim bool
	OneWay  bool
	Place   frame.Place
	HasHead bool
	// At is the offset of its first frame; Wire what its frames take so far, and Payload that
	// without framing, in octets.
	At            int64
	Wire, Payload int64
	// Number counts the messages of the direction that became whole before a decoder, from 1; 0: it
	// is not whole.
	Number uint64
	// User is for who drives the decoder.
	User any

	alone   bool   // it is in one frame
	epoch   uint64 // syncs before it began
	dropped bool
	parts   [2]partIn // head and body
}

// unuse notes that a message of several frames is open no more: the numbers of its shapes may be
// given to others.
func (m *IncomingMessage) unuse() {
	for i := range m.parts {
		if e := m.parts[i].entry; e != nil {
			e.uses--
		}
	}
}

// partIn is a head or body that comes in.
type partIn struct {
	entry  *numberedShape // nil: text
	states bool           // its text announces that
	at     columns.Packing
	memory *columns.Memory // of its own
	window *recall.History // of its own
}

// ownWindow is that of a part that no lane remembers.
func (p *partIn) ownWindow(anew bool) *recall.History {
	if p.window == nil || anew {
		p.window = new(recall.History)
	}
	return p.window
}

// DecodedFrame is a frame that was decoded, or bytes that were passed over while a sync was looked
// for: Passed.
type DecodedFrame struct {
	Kind   frame.Kind
	Passed bool
	At     int64
	// Octets is how many bytes it takes; 0: there are not enough of them yet.
	Octets int
	Events []Event
	// Message is that of a data frame, nil if it began before a decoder that joined; First and Last
	// say which of its fragments this is.
	Message     *IncomingMessage
	First, Last bool
	Payload     int // octets
}

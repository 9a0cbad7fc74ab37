package wire

import (
	"errors"

	"github.com/hhfr/hhfr/pkg/shape/columns"
	"github.com/hhfr/hhfr/pkg/shape/program"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// DecoderConfig says what a decoder is to do. It is copied.
type DecoderConfig struct {
	// Shapes is where shapes are; required.
	Shapes Shapes
	// Named finds a shape by the beginning of its fingerprint, as syncs and bases name shapes; nil: none is found.
	Named func(name [8]byte) *program.Program
	// MaxFragment bounds the payload of a data frame, in bytes; 0 means 16,384.
	MaxFragment int
	// MaxShapes and MaxShapeOctets bound the shapes that stand under numbers; 0 means 1,024 and 4 MiB.
	MaxShapes      int
	MaxShapeOctets int64
	// MaxOpen bounds the messages that are begun and not whole; 0 means no bound.
	MaxOpen int
	// MaxHeld bounds the bytes of payload that wait for shapes that were asked for; below 0 nothing waits: content under a shape
	// that is missing is given as [Lacking].
	MaxHeld int64
	// Compression is shared with others; nil: with none.
	Compression *Compression
	// Skim leaves content out of fragments: who drives the decoder wants to know what checks say, and which shapes there are.
	Skim bool
	// Scratch has content share a buffer that the next call overwrites.
	Scratch bool
}

func (c DecoderConfig) withDefaults() DecoderConfig {
	if c.MaxShapes == 0 {
		c.MaxShapes = 1024
	}
	if c.MaxShapeOctets == 0 {
		c.MaxShapeOctets = 4 << 20
	}
	if c.Compression == nil {
		c.Compression = new(Compression)
	}
	if c.Named == nil {
		c.Named = func([8]byte) *program.Program { return nil }
	}
	return c
}

// EventKind is what an [Event] tells.
type EventKind uint8

const (
	// Met: the direction begins, with Event.Hello.
	Met EventKind = iota + 1
	// Fragment: content of a message, the first of it with Event.First, the last with Event.Last. Event.Err says why there is none.
	Fragment
	// Settled: the sender of a message waits. So many octets of the texts behind the last item of its content are there ([program.Joiner.Settle]).
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
	// Synced: a sync. Event.Verdict is about the messages since the one before.
	Synced
	// Closed: the direction ends, with Event.Close. Event.Verdict is about the messages since the last sync.
	Closed
)

// Event is something that a frame says. What it refers to holds until the next call, unless the configuration says otherwise.
type Event struct {
	Kind    EventKind
	Message *Message
	// Of Fragment: content of head and body, as the shape's join takes it.
	First, Last bool
	Head, Body  Part
	Err         error

	Hello   frame.Hello
	Cancel  frame.Cancel
	Number  uint64
	Window  frame.Window
	Settled uint64
	Octets  []byte // of Acked
	Close   frame.Close
	Verdict Verdict
}

// Part is a segment of the content of a head or body.
type Part struct {
	There bool
	// First and Last segment of the part; Text: it goes on as text (section 10.6).
	First, Last, Text bool
	// Program is what the part is joined by; nil: by nothing, the content is the text.
	Program *program.Program
	Content []byte
}

// Verdict is what a check says of messages: those that became whole from number From+1 on, up to To.
type Verdict struct {
	From, To uint64
	// Right: the check agrees. Known: it could be computed; otherwise Right means nothing.
	Right, Known bool
}

// Message is a message that comes in.
type Message struct {
	frame.Key
	// Interim is a reply before the one that counts.
	Interim bool
	OneWay  bool
	Place   frame.Place
	HasHead bool
	// At is the offset of its first frame; Wire what its frames take so far, and Payload that without framing, in octets.
	At            int64
	Wire, Payload int64
	// Number counts the messages of the direction that became whole before a decoder, from 1; 0: it is not whole.
	Number uint64
	// User is for who drives the decoder.
	User any

	alone   bool // it is in one frame
	dropped bool
	parts   [2]partIn // head and body
}

// partIn is a head or body that comes in.
type partIn struct {
	entry  *entry // nil: text
	at     columns.Packing
	memory *columns.Memory // of its own
}

// Frame is a frame that was decoded, or bytes that were passed over while a sync was looked for: Passed.
type Frame struct {
	Kind   frame.Kind
	Passed bool
	At     int64
	// Octets is how many bytes it takes; 0: there are not enough of them yet.
	Octets int
	Events []Event
	// Message is that of a data frame, nil if it began before a decoder that joined; First and Last say which of its fragments this is.
	Message     *Message
	First, Last bool
	Payload     int // octets
}

// Decoder turns the bytes of one direction into events. The first frame is a hello, or, where the beginning is missing, the decoder
// joins at a sync. Of one that no other agreed with yet it lets go when what follows does not fit. Not safe for concurrent use.
type Decoder struct {
	cfg       DecoderConfig
	at        int64
	following bool // every octet since the last hello or sync was read
	known     bool // word and origin are
	sure      bool // by a hello, or by two syncs that agree
	floating  bool // at is not known
	word      [8]byte
	origin    frame.Origin

	numbering frame.Numbering
	checks    frame.Checks
	syncEnd   int64
	covered   uint64 // messages up to here have their verdict
	whole     uint64
	open      map[frame.Key]*Message

	shapes received
	lanes  receivedLanes
	held   held

	events  []Event
	current *Message // of the data frame at hand
	scratch []byte
	closed  bool
}

// NewDecoder makes a decoder of a direction from its first byte on.
func NewDecoder(cfg DecoderConfig) *Decoder {
	d := &Decoder{cfg: cfg.withDefaults(), open: map[frame.Key]*Message{}}
	d.shapes.init(&d.cfg)
	return d
}

// At is the offset of the next byte.
func (d *Decoder) At() int64 { return d.at }

// Origin is what all messages of the direction have in common; ok is false while that is not known.
func (d *Decoder) Origin() (o frame.Origin, ok bool) { return d.origin, d.known }

// Following reports whether every byte since the last hello or sync was read.
func (d *Decoder) Following() bool { return d.following }

// Next decodes the frame that b begins with. Errors are [*frame.Error] and [*Error]; after one, [Decoder.Lose] has the decoder
// look for the next sync, from the byte behind. What comes behind a close is not read.
func (d *Decoder) Next(b []byte) (Frame, error) {
	d.events, d.current = d.events[:0], nil
	if !d.following {
		if passed, searching := d.search(b); searching {
			f := Frame{Passed: true, At: d.at, Octets: passed}
			d.at += int64(passed)
			return f, nil
		}
	}
	if len(b) > 0 && b[0] >= 0x80 {
		data, n, err := frame.ParseData(b, d.at, d.cfg.MaxFragment)
		if err != nil || n == 0 {
			return Frame{}, err
		}
		return d.took(Frame{Kind: frame.KindData, Octets: n, First: data.First, Last: data.Last, Payload: len(data.Payload)}, d.data(&data, n))
	}
	f, n, err := frame.Parse(b, d.at, d.cfg.MaxFragment)
	if err != nil || n == 0 {
		return Frame{}, err
	}
	return d.took(Frame{Kind: f.Kind(), Octets: n}, d.frame(f, n))
}

func (d *Decoder) took(f Frame, err error) (Frame, error) {
	if err != nil {
		return Frame{}, fault(OutOfPlace, d.at, err)
	}
	f.At, f.Events, f.Message = d.at, d.events, d.current
	d.at += int64(f.Octets)
	return f, nil
}

func (d *Decoder) frame(f frame.Frame, n int) error {
	switch f := f.(type) {
	case frame.Hello:
		if d.known {
			return errors.New("a second hello")
		}
		return d.hello(f, n)
	case frame.Sync:
		return d.sync(f, n)
	case frame.Shape:
		return d.shape(f)
	case frame.Cancel:
		d.cancel(f)
	case frame.Window:
		d.emit(Event{Kind: Granted, Window: f})
	case frame.Flush:
		d.flush(f)
	case frame.Ack:
		d.emit(Event{Kind: Acked, Octets: f.Octets})
	case frame.Idle:
		d.lanes.idle(f.Lanes, &d.held)
	case frame.Close:
		d.close(f)
	}
	return nil
}

func (d *Decoder) emit(ev Event) { d.events = append(d.events, ev) }

func (d *Decoder) hello(f frame.Hello, n int) error {
	if err := supported(f.Stages); err != nil {
		return err
	}
	d.known, d.sure, d.following, d.word, d.origin = true, true, true, f.Word, f.Origin()
	d.checks, d.syncEnd = frame.NewChecks(d.origin), d.at+int64(n)
	d.emit(Event{Kind: Met, Hello: f})
	return nil
}

func (d *Decoder) flush(f frame.Flush) {
	m := d.open[f.Message]
	switch {
	case m == nil || m.dropped:
	case d.held.settle(m, f.Settled):
	default:
		d.emit(Event{Kind: Settled, Message: m, Settled: f.Settled})
	}
}

func (d *Decoder) cancel(f frame.Cancel) {
	open := d.checks.Cancel(f)
	if f.Refused {
		d.emit(Event{Kind: Refused, Cancel: f})
		return
	}
	m := d.open[f.Message]
	delete(d.open, f.Message)
	if m != nil {
		m.dropped = true // what of it waits for a shape, too
	}
	if open {
		d.emit(Event{Kind: Cancelled, Cancel: f, Message: m})
	}
}

func (d *Decoder) close(f frame.Close) {
	right, known := d.checks.AgreeClose(f)
	d.closed = true
	d.giveUp()
	d.emit(Event{Kind: Closed, Close: f, Verdict: d.verdict(right, known)})
}

// verdict is that on the messages since the last one.
func (d *Decoder) verdict(right, known bool) Verdict {
	v := Verdict{From: d.covered, To: d.whole, Right: right, Known: known}
	d.covered = d.whole
	return v
}

// Lose has the decoder look for the next sync, since bytes are missing, or were malformed: missing many, -1 if nobody knows how
// many. It returns the messages of which the rest is lost.
func (d *Decoder) Lose(missing int64) []Event {
	d.events = d.events[:0]
	d.lose()
	if missing < 0 {
		d.floating = true
	} else {
		d.at += missing
	}
	return d.events
}

func (d *Decoder) lose() {
	for _, m := range d.open {
		d.emit(Event{Kind: Lost, Message: m})
	}
	clear(d.open)
	d.held = held{}
	d.following, d.covered = false, d.whole
	d.known = d.known && d.sure
}

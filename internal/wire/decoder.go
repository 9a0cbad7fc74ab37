package wire

import (
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/few"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/reuse"
)

// Decoder turns the bytes of one direction into events. The first frame is a hello, or, where the
// beginning is missing, the decoder joins at a sync. Of one that no other agreed with yet it lets
// go when what follows does not fit. Not safe for concurrent use.
type Decoder struct {
	cfg       DecoderConfig
	at        int64
	following bool // every octet since the last hello or sync was read
	known     bool // word and origin are
	sure      bool // by a hello, or by two syncs that agree
	floating  bool // at is not known
	joined    bool // at a sync, and not at the hello
	word      [8]byte
	origin    frame.Origin

	numbering frame.Numbering
	checks    frame.Checks
	syncEnd   int64
	covered   uint64 // messages up to here have their verdict
	whole     uint64
	open      few.Map[frame.Key, *IncomingMessage]

	shapes receivedShapes
	lanes  receivedLanes
	held   blockedLanes

	events  []Event
	current *IncomingMessage // of the data frame at hand
	spare   *IncomingMessage // one that nobody has, if the configuration says so
	scratch reuse.Buffer     // of all fragments of a call
	acked   bool             // an ack frame came
	closed  bool
}

// NewDecoder makes a decoder of a direction from its first byte on.
func NewDecoder(cfg DecoderConfig) *Decoder {
	d := &Decoder{cfg: cfg.withDefaults()}
	d.shapes.init(&d.cfg)
	return d
}

// At is the offset of the next byte.
func (d *Decoder) At() int64 { return d.at }

// Origin is what all messages of the direction have in common; ok is false while that is not known.
func (d *Decoder) Origin() (o frame.Origin, ok bool) { return d.origin, d.known }

// Following reports whether every byte since the last hello or sync was read.
func (d *Decoder) Following() bool { return d.following }

func (d *Decoder) emit(ev Event) { d.events = append(d.events, ev) }

// event is emit for one that is yet to be filled in: it is long to copy.
func (d *Decoder) event(kind EventKind) *Event {
	n := len(d.events)
	d.events = slices.Grow(d.events, 1)[:n+1]
	ev := &d.events[n]
	*ev = Event{Kind: kind}
	return ev
}

// verdict is that on the messages since the last one.
func (d *Decoder) verdict(right, known bool) Verdict {
	v := Verdict{From: d.covered, To: d.whole, Right: right, Known: known}
	d.covered = d.whole
	return v
}

func (d *Decoder) lose() {
	for _, m := range d.open.All {
		m.unuse()
		d.emit(Event{Kind: Lost, Message: m})
	}
	d.open = few.Map[frame.Key, *IncomingMessage]{}
	d.held = blockedLanes{}
	d.shapes.pieces.Reset()
	d.following, d.covered = false, d.whole
	d.known = d.known && d.sure
}

// supported refuses representations and stages that there are not, or not together (section 3).
func supported(o frame.Origin) error {
	switch s := o.Stages & allStages; {
	case o.Stages&^(allStages|frame.Headers) != 0:
		return fmt.Errorf("optional stages %#x, which this version does not know", o.Stages)
	case o.Representation == 0 && o.Responder:
		return nil // it does not take the session: a close follows
	case o.Representation != frame.Binary && o.Representation != frame.XML:
		return fmt.Errorf("representation %d", o.Representation)
	case s != 0 && o.Representation != frame.Binary, s&Memory != 0 && s&Columns == 0,
		s&Plain != 0 && s&Zstd == 0:
		return fmt.Errorf("optional stages %#x with representation %d", o.Stages, o.Representation)
	}
	return nil
}

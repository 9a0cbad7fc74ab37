package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// receiver is told what a direction contains.
type receiver interface {
	// met is called for a hello, and for a sync where bytes were missing.
	met()
	// begun is called for a message whose first bytes have come.
	begun(*incoming)
	// ended is called when a message is whole, or when the rest of it will not come.
	ended(*incoming)
	// checked is called with the result of a check, for the messages from number from+1 on, up to
	// to.
	checked(from, to uint64, s State)
	// refused is called for messages of the other direction that this end did not take.
	refused(k frame.Key, why string)
	// declined is called when it took none at all.
	declined()
	// framed is called with each frame that belongs to no message, if frames are wanted.
	framed(RawFrame)
}

// direction drives a decoder over the bytes of one direction of a stream, as they come, and joins
// its messages.
type direction struct {
	r   *Reader
	dec *wire.Decoder
	to  receiver

	buf   []byte // bytes that are not decoded yet, from at on
	at    int
	marks []arrivalMark // marks of the packets that brought what is in buf

	fragments int
	open      int // messages of several frames that are begun and not whole
	origin    frame.Origin
	found     bool   // there was a hello, or a sync
	opened    bool   // a hello
	target    string // target in the hello
	floated   bool   // an unknown number of bytes was missing before the last sync
	syncAt    int64  // offset of that
	closed    bool
	gaps      int
	left      int // bytes that are no whole frame, or come after a close
	octets    StreamOctets
	problems  []string
}

// arrivalMark records that the bytes from at on came with a packet.
type arrivalMark struct {
	at int
	flow.Mark
}

func newDirection(r *Reader, to receiver) *direction {
	return &direction{r: r, to: to, dec: wire.NewDecoder(wire.DecoderConfig{
		Bills:          r.cfg.Carriage,
		Shapes:         r.shapes,
		Named:          r.shapes.named,
		Compression:    &r.compression,
		MaxShapes:      maxShapes,
		MaxShapeOctets: maxShapeOctets,
		MaxHeld:        -1,
		Scratch:        true,
		Skim:           r.surveying,
	})}
}

// behind returns how many of the bytes that came are not decoded.
func (d *direction) behind() int { return len(d.buf) - d.at }

// write takes bytes that a packet brought.
func (d *direction) write(b []byte, m flow.Mark) {
	if d.closed {
		d.left += len(b)
		return
	}
	if d.at > 0 {
		d.forget()
	}
	d.buf, d.marks = append(d.buf, b...), append(d.marks, arrivalMark{len(d.buf), m})
	for d.at < len(d.buf) && !d.closed {
		following := d.dec.Following()
		f, err := d.dec.Next(d.buf[d.at:])
		if err != nil {
			d.problem(err.Error())
			d.lost(d.dec.Lose(1), "damaged stream")
			d.at++
			continue
		}
		if f.Octets == 0 {
			break
		}
		if !f.Passed {
			d.octets.add(&f)
			d.frame(&f, following)
			if f.Kind != frame.KindData && d.wantsFrames() {
				d.to.framed(d.raw(&f))
			}
		}
		d.at += f.Octets
		d.r.bound()
	}
	if d.closed {
		d.left = len(d.buf) - d.at
		d.lost(d.dec.Lose(0), "bytes missing")
	}
}

// forget drops what was decoded.
func (d *direction) forget() {
	n := 0
	for n+1 < len(d.marks) && d.marks[n+1].at <= d.at {
		n++
	}
	d.marks = slices.Delete(d.marks, 0, n)
	for i := range d.marks {
		d.marks[i].at -= d.at
	}
	d.buf = d.buf[:copy(d.buf, d.buf[d.at:])]
	d.at = 0
}

// markAt returns the mark of the packet that brought the byte with an index.
func (d *direction) markAt(i int) flow.Mark {
	n := sort.Search(len(d.marks), func(k int) bool { return d.marks[k].at > i }) - 1
	return d.marks[max(n, 0)].Mark
}

// gap reports that bytes are missing, -1 if the number is not known.
func (d *direction) gap(missing int64) {
	if d.closed {
		return
	}
	if missing >= 0 {
		missing += int64(d.behind())
	} else {
		d.floated = true
	}
	d.gaps++
	d.lost(d.dec.Lose(missing), "bytes missing")
	d.buf, d.marks, d.at = d.buf[:0], d.marks[:0], 0
}

// end reports that nothing more comes.
func (d *direction) end() {
	if d.closed {
		return
	}
	if d.dec.Following() {
		d.left = len(d.buf) - d.at
	}
	d.lost(d.dec.Lose(0), "bytes missing")
	d.buf, d.marks, d.at = nil, nil, 0
}

// abandon gives up all messages that are open: there are too many of them. The decoder goes on at
// the next sync.
func (d *direction) abandon() {
	d.problem(fmt.Sprintf("offset %d: too many messages are open, %d of them here: they, and what comes before "+
		"the next sync, are left out", d.dec.At(), d.open))
	d.lost(d.dec.Lose(0), "too many messages are open")
}

// cut reports whether the direction begins without its hello, ends without its close, or lacks
// bytes. A direction that was declined may end in any way.
func (d *direction) cut(declined bool) bool {
	return (d.left > 0 || d.found && !d.closed) && !declined || d.gaps > 0 || d.found && !d.opened
}

// declines reports whether the direction is that of a responder which does not take the session: a
// close follows, and it has processed nothing.
func (d *direction) declines() bool {
	return d.opened && d.origin.Responder && d.origin.Representation == 0
}

func (d *direction) problem(text string) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, text)
	}
}

func (d *direction) lost(events []wire.Event, why string) {
	slices.SortStableFunc(events, func(a, b wire.Event) int { return cmp.Compare(a.Message.At, b.Message.At) })
	for i := range events {
		d.give(events[i].Message, Incomplete, why)
	}
}

// give ends a message of which the rest will not come.
func (d *direction) give(m *wire.IncomingMessage, s State, why string) {
	if m == nil || m.User == nil {
		return
	}
	in := m.User.(*incoming)
	in.State, in.Why = s, why
	d.finish(in)
}

// frame processes a frame. following: nothing was missing since the check before.
func (d *direction) frame(f *wire.DecodedFrame, following bool) {
	for i := range f.Events {
		switch ev := &f.Events[i]; ev.Kind {
		case wire.Met:
			d.opened, d.found, d.origin, d.target = true, true, frame.OriginOf(*ev.Hello), ev.Hello.Target
			d.to.met()
			if d.declines() {
				d.to.declined()
			}
		case wire.Fragment:
			d.fragment(ev, f)
		case wire.Lost: // lost by a sync
			d.give(ev.Message, Incomplete, "check does not agree")
		case wire.Cancelled:
			d.give(ev.Message, Cancelled, reason(ev.Cancel))
		case wire.Refused:
			d.to.refused(ev.Cancel.Message, "refused: "+reason(ev.Cancel))
		case wire.Synced:
			if following {
				d.verdict(f.At, ev.Verdict)
				break
			}
			d.found, d.syncAt = true, f.At
			d.origin, _ = d.dec.Origin()
			d.to.met()
			d.floated = false
		case wire.Closed:
			d.closed = true
			d.verdict(f.At, ev.Verdict)
			if c := ev.Close; c.Code != frame.CloseDone && c.Code != frame.CloseGoingAway {
				d.problem(fmt.Sprintf("offset %d: closed: %s %s", f.At, c.Code, c.Text))
			}
		default:
		}
	}
}

func reason(f frame.Cancel) string {
	if f.Text == "" {
		return f.Code.String()
	}
	return f.Code.String() + ": " + f.Text
}

// verdict sets the state of the messages since the last check.
func (d *direction) verdict(at int64, v wire.Verdict) {
	switch {
	case v.Right && !v.Known:
		d.r.blind = true
		d.problem(fmt.Sprintf("offset %d: a shape was announced that nothing here names: "+
			"messages since the sync before stay unverified", at))
	case v.Right:
		d.to.checked(v.From, v.To, Verified)
	default:
		d.problem(fmt.Sprintf("offset %d: check does not agree: messages since the sync before are withdrawn", at))
		d.to.checked(v.From, v.To, Withdrawn)
	}
}

// fragment takes a fragment of a message from a data frame.
func (d *direction) fragment(ev *wire.Event, f *wire.DecodedFrame) {
	if d.fragments++; d.fragments%restAfter == 0 {
		d.dec.Rest() // makes the memories of unused lanes small
	}
	if ev.First {
		in := d.begin(ev.Message)
		if ev.Message.User = in; !ev.Last {
			d.opens(in)
		}
	}
	in, _ := ev.Message.User.(*incoming)
	if in == nil {
		return // begun before the sync that the decoder joined at
	}
	if !d.r.surveying {
		in.Wire, in.Last = ev.Message.Wire, d.markAt(d.at+f.Octets-1).Time
		if d.wantsFrames() {
			in.keep(d.raw(f))
		}
		if in.Carriage != nil {
			in.Carriage.carry(ev)
		}
		if in.err == nil {
			in.err = ev.Err
		}
		for i, p := range [...]*wire.Part{&ev.Head, &ev.Body} {
			if in.err == nil && p.There {
				in.err = d.r.join(&in.parts[i], p)
			}
		}
	}
	if ev.Last {
		in.number, in.State = ev.Message.Number, Unverified
		d.finish(in)
	}
}

// incoming is a message that is being received.
type incoming struct {
	*Decoded
	number uint64 // among the whole messages of its direction; 0: it is not whole
	parts  [2]joining
	err    error
	open   bool // it counts against maxOpen
	framed int  // bytes of its frames
}

func (d *direction) begin(m *wire.IncomingMessage) *incoming {
	first := d.markAt(d.at)
	in := &incoming{
		Decoded: &Decoded{
			HHFR:     true,
			Session:  d.origin.Session,
			Lane:     m.Lane,
			Exchange: m.Exchange,
			Reply:    m.Reply,
			Interim:  m.Interim,
			OneWay:   m.OneWay,
			Place:    m.Place,
			First:    first.Time,
			Packet:   first.PacketNo,
			inForm:   d.origin.Stages&frame.Headers != 0,
		},
	}
	if d.r.cfg.Carriage {
		in.Carriage = &Carriage{}
	}
	if !d.r.surveying {
		d.to.begun(in)
	}
	return in
}

// finish passes on what there is of a message.
func (d *direction) finish(in *incoming) {
	d.ends(in)
	if d.r.surveying {
		return
	}
	for i := range in.parts {
		d.r.release(&in.parts[i])
	}
	head, err := in.parts[0].body.Start()
	if err == nil && in.parts[0].body.Len() > int64(len(head)) {
		err = fmt.Errorf("head of %d bytes", in.parts[0].body.Len())
	}
	if in.err == nil {
		in.err = err
	}
	if in.err != nil && in.Whole() {
		in.State = Undecodable
		in.Why, in.Lacks, in.LacksContract = why(in.err)
		if errors.Is(in.err, &wire.Error{Code: wire.Lacking}) {
			in.couldNotRead(d.r.store.failure(in.Lacks))
		}
	}
	if len(head) > 0 {
		in.Head = bytes.Clone(head)
	}
	in.parts[0].body.Free()
	in.content = in.parts[1].body
	d.to.ended(in)
}

// why returns, for people, the reason why a message could not be decoded, and the shape that is
// missing, if that is the reason. contract: it is made of the description of a service.
func why(err error) (text, lacks string, contract bool) {
	switch {
	case errors.Is(err, &wire.Error{Code: wire.Lacking}):
		if lacks = wire.LackingOwn(err); lacks != "" {
			return "its shape stands on " + lacks + ", which the description of its service makes", lacks, true
		}
		if lacks = wire.LackingShape(err); lacks == "" {
			return "its shape was announced in part before what could be read, or on a base that neither capture " +
				"nor store has", "", false
		}
		return "neither capture nor store has its shape " + lacks, lacks, false
	case errors.Is(err, &wire.Error{Code: wire.Forgotten}):
		return "it needs what messages before it on its lane said, which could not be decoded", "", false
	}
	return err.Error(), "", false
}

func (d *direction) wantsFrames() bool { return d.r.cfg.Frames && !d.r.surveying }

// raw is the frame that begins at d.at.
func (d *direction) raw(f *wire.DecodedFrame) RawFrame {
	mark := d.markAt(d.at)
	return RawFrame{
		At: f.At, Octets: bytes.Clone(d.buf[d.at : d.at+f.Octets]), Time: mark.Time, Packet: mark.PacketNo,
	}
}

// keep keeps a frame of a message.
func (in *incoming) keep(f RawFrame) {
	if in.framed += len(f.Octets); in.framed <= MaxFrames {
		f.Stream, f.Direction = in.Stream, in.Direction
		in.Frames = append(in.Frames, f)
	}
}

// openMessages counts the messages of several frames that are begun and not whole.
type openMessages struct {
	count int
	in    map[*direction]struct{} // directions that have some
}

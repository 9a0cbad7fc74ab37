package capture

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/shape"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// receiver takes what a direction has.
type receiver interface {
	// begun is told of a message whose first octets are there.
	begun(*incoming)
	// ended is told when it is whole, or when the rest of it will not come.
	ended(*incoming)
	// checked is told what a check says of the messages from number from+1 on, up to to.
	checked(from, to uint64, s State)
	// refused is told of messages of the other direction that this end did not take.
	refused(k frame.Key, why string)
}

// direction drives a decoder over the octets of one direction of a stream, as they come, and joins its messages.
type direction struct {
	dec        *wire.Decoder
	to         receiver
	maxMessage int64
	joiners    []*shape.Joiner // not in use

	buf   []byte // octets that are not decoded yet, from at on
	at    int
	marks []flow.Mark // of the packets that brought what is in buf

	origin   frame.Origin
	found    bool // there was a hello, or a sync
	opened   bool // a hello
	closed   bool
	gaps     int
	left     int // octets that are no whole frame, or stand behind a close
	octets   StreamOctets
	problems []string
}

// StreamOctets are the octets of a direction by what they were for. Data counts the frames of messages, payload and framing.
type StreamOctets struct{ Data, Shape, Sync, Other int64 }

func (o *StreamOctets) add(f *wire.Frame) {
	n := &o.Other
	switch f.Kind {
	case frame.KindData:
		n = &o.Data
	case frame.KindShape:
		n = &o.Shape
	case frame.KindSync:
		n = &o.Sync
	default:
	}
	*n += int64(f.Octets)
}

func newDirection(s *shapes, maxMessage int64, to receiver) *direction {
	return &direction{to: to, maxMessage: maxMessage, dec: wire.NewDecoder(wire.DecoderConfig{
		Shapes: s, Named: s.named, MaxShapes: maxShapes, MaxShapeOctets: maxShapeOctets, MaxHeld: -1, Scratch: true})}
}

// write takes octets that a packet brought.
func (d *direction) write(b []byte, m flow.Mark) {
	if d.closed {
		d.left += len(b)
		return
	}
	if d.at > 0 {
		d.forget()
	}
	m.At = len(d.buf)
	d.buf, d.marks = append(d.buf, b...), append(d.marks, m)
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
		}
		d.at += f.Octets
	}
	if d.closed {
		d.left = len(d.buf) - d.at
		d.lost(d.dec.Lose(0), "octets missing")
	}
}

// forget drops what was decoded.
func (d *direction) forget() {
	n := 0
	for n+1 < len(d.marks) && d.marks[n+1].At <= d.at {
		n++
	}
	d.marks = slices.Delete(d.marks, 0, n)
	for i := range d.marks {
		d.marks[i].At -= d.at
	}
	d.buf = d.buf[:copy(d.buf, d.buf[d.at:])]
	d.at = 0
}

// markAt is that of the packet that brought the octet with an index.
func (d *direction) markAt(i int) flow.Mark { return (&flow.Run{Marks: d.marks}).MarkAt(i) }

// gap says that octets are missing, -1 if nobody knows how many.
func (d *direction) gap(missing int64) {
	if d.closed {
		return
	}
	rest := int64(len(d.buf) - d.at)
	if missing >= 0 {
		missing += rest
	}
	d.gaps++
	d.lost(d.dec.Lose(missing), "octets missing")
	d.buf, d.marks, d.at = d.buf[:0], d.marks[:0], 0
}

// end says that nothing more comes.
func (d *direction) end() {
	if d.closed {
		return
	}
	if d.dec.Following() {
		d.left = len(d.buf) - d.at
	}
	d.lost(d.dec.Lose(0), "octets missing")
	d.buf, d.marks, d.at = nil, nil, 0
}

// cut reports whether the direction begins without its hello, ends without its close, or lacks octets.
func (d *direction) cut() bool { return d.left > 0 || d.gaps > 0 || d.found && !(d.opened && d.closed) }

func (d *direction) problem(text string) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, text)
	}
}

func (d *direction) lost(events []wire.Event, why string) {
	for i := range events {
		d.give(events[i].Message, Incomplete, why)
	}
}

// give gives a message out of which the rest will not come.
func (d *direction) give(m *wire.Message, s State, why string) {
	if m == nil || m.User == nil {
		return
	}
	in := m.User.(*incoming)
	in.State, in.Why = s, why
	d.finish(in)
}

// frame does what a frame says. following: nothing was missing since the check before.
func (d *direction) frame(f *wire.Frame, following bool) {
	for i := range f.Events {
		switch ev := &f.Events[i]; ev.Kind {
		case wire.Met:
			d.opened, d.found, d.origin = true, true, ev.Hello.Origin()
		case wire.Fragment:
			d.fragment(ev, f.Octets)
		case wire.Lost: // by a sync
			d.give(ev.Message, Incomplete, "check does not agree")
		case wire.Cancelled:
			d.give(ev.Message, Cancelled, reason(ev.Cancel))
		case wire.Refused:
			d.to.refused(ev.Cancel.Message, "refused: "+reason(ev.Cancel))
		case wire.Synced:
			d.found = true
			d.origin, _ = d.dec.Origin()
			if following {
				d.verdict(f.At, ev.Verdict)
			}
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

// verdict settles the state of the messages since the last check.
func (d *direction) verdict(at int64, v wire.Verdict) {
	switch {
	case v.Right && !v.Known:
		d.problem(fmt.Sprintf("offset %d: a shape was announced that nothing here names: "+
			"messages since the sync before stay unverified", at))
	case v.Right:
		d.to.checked(v.From, v.To, Verified)
	default:
		d.problem(fmt.Sprintf("offset %d: check does not agree: messages since the sync before are withdrawn", at))
		d.to.checked(v.From, v.To, Withdrawn)
	}
}

// fragment takes a fragment of a message from a data frame of so many octets.
func (d *direction) fragment(ev *wire.Event, octets int) {
	if ev.First {
		ev.Message.User = d.begin(ev.Message)
	}
	in, _ := ev.Message.User.(*incoming)
	if in == nil {
		return // begun before the sync that the decoder joined at
	}
	in.Wire, in.Last = ev.Message.Wire, d.markAt(d.at+octets-1).Time
	if in.err == nil {
		in.err = ev.Err
	}
	for i, p := range [...]*wire.Part{&ev.Head, &ev.Body} {
		if in.err == nil && p.There {
			in.err = d.join(&in.parts[i], p)
		}
	}
	if ev.Last {
		in.number, in.State = ev.Message.Number, Unverified
		d.finish(in)
	}
}

// incoming is a message that comes in.
type incoming struct {
	*Decoded
	number uint64 // of those of its direction that became whole; 0: it did not
	parts  [2]joining
	err    error
}

func (d *direction) begin(m *wire.Message) *incoming {
	first := d.markAt(d.at)
	in := &incoming{Decoded: &Decoded{HHFR: true, Session: d.origin.Session, Lane: m.Lane, Exchange: m.Exchange, Reply: m.Reply, Interim: m.Interim, OneWay: m.OneWay,
		Place: m.Place, First: first.Time, Packet: first.PacketNo, inForm: d.origin.Stages&frame.Headers != 0}}
	d.to.begun(in)
	return in
}

// finish gives out what there is of a message.
func (d *direction) finish(in *incoming) {
	if in.err != nil && in.Whole() {
		in.State = Undecodable
		in.Why, in.Lacks = why(in.err)
	}
	for i := range in.parts {
		d.release(&in.parts[i])
	}
	in.Head, in.Body = in.parts[0].out, in.parts[1].out
	d.to.ended(in)
}

// why says for people why a message could not be decoded, and which shape is missing, if that is why.
func why(err error) (text, lacks string) {
	switch {
	case errors.Is(err, &wire.Error{Code: wire.Lacking}):
		if lacks = wire.LackingShape(err); lacks == "" {
			return "its shape was announced on a base that neither capture nor store has", ""
		}
		return "neither capture nor store has its shape " + lacks, lacks
	case errors.Is(err, &wire.Error{Code: wire.Forgotten}):
		return "it needs what messages before it on its lane said, which could not be decoded", ""
	}
	return err.Error(), ""
}

// joining is a head or body that comes in.
type joining struct {
	joiner *shape.Joiner // nil: text
	out    []byte
}

func (d *direction) join(j *joining, p *wire.Part) (err error) {
	if p.First && p.Program != nil {
		if n := len(d.joiners); n > 0 {
			j.joiner, d.joiners = d.joiners[n-1], d.joiners[:n-1]
		} else {
			j.joiner = new(shape.Joiner)
		}
		j.joiner.Reset(p.Program)
	}
	if j.joiner == nil {
		j.out = append(j.out, p.Content...)
	} else {
		j.out, err = j.joiner.Join(j.out, p.Content, p.Text, p.Last)
	}
	if err == nil && int64(len(j.out)) > d.maxMessage {
		err = fmt.Errorf("longer than %d octets", d.maxMessage)
	}
	return err
}

func (d *direction) release(j *joining) {
	if j.joiner != nil {
		d.joiners = append(d.joiners, j.joiner)
		j.joiner = nil
	}
}

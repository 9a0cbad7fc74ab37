package wire

import (
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/reuse"
	"github.com/hhfr/hhfr/internal/shape/columns"
	"github.com/hhfr/hhfr/internal/shape/recall"
)

// data takes a data frame of n octets: numbers, checks, parts, and on to its message.
func (d *Decoder) data(f *frame.Data, n int) error {
	if d.at-d.syncEnd > frame.MaxSyncOctets || d.checks.Messages() > frame.MaxSyncMessages {
		return fmt.Errorf("no sync frame for %d octets and %d messages", d.at-d.syncEnd, d.checks.Messages())
	}
	if err := d.numbering.Resolve(f, d.at); err != nil {
		return err
	}
	if n := d.numbering.Active(); n > frame.MaxSyncLanes {
		return fmt.Errorf("no sync frame for messages on %d lanes", n)
	}
	parts, err := d.checks.Cut(f, d.at, d.at+int64(n-len(f.Payload)))
	if err != nil {
		return err
	}
	var entries [2]*numberedShape // of parts that begin under a number
	for i, p := range [...]*frame.RawPart{&parts.Head, &parts.Body} {
		if !p.First || p.Shape == 0 {
			continue
		}
		if d.origin.Representation == frame.XML {
			return fmt.Errorf("a part under number %d, and all are text", p.Shape)
		}
		if entries[i] = d.shapes.entries.Get(p.Shape); entries[i] != nil {
			continue
		}
		if d.origin.Stages&Plain == 0 || !p.Last || p.Text {
			return &Error{Code: Unannounced, At: d.at, Err: fmt.Errorf("number %d", p.Shape)}
		}
		p.Plain = true
		entries[i] = &numberedShape{plain: true}
		if err := d.shapes.set(p.Shape, entries[i]); err != nil {
			return &Error{Code: Limits, At: d.at, Err: err}
		}
	}
	d.checks.Add(f, &parts, d.shapes.name)
	if d.cfg.MaxOpen > 0 && d.checks.Len() > d.cfg.MaxOpen {
		return &Error{Code: Limits, At: d.at, Err: fmt.Errorf("%d messages are open", d.checks.Len())}
	}
	m := d.message(f)
	d.current = m
	if m == nil {
		return nil // begun before the sync that this decoder joined at
	}
	m.Wire += int64(n)
	m.Payload += int64(len(f.Payload))
	if m.Place.Unknown && (parts.HasHead || len(parts.Body.Segment) > 0) {
		return errors.New("the reply to a message of unknown fate is not empty")
	}
	if f.Last && !f.First {
		m.unuse()
	}
	for i, e := range entries {
		if e == nil {
			continue
		}
		m.parts[i].entry = e
		if i == 0 && parts.Head.Plain || i == 1 && parts.Body.Plain {
			e.unread, m.parts[i].states = true, true
		}
		if !f.Last {
			e.uses++
		}
	}
	return d.pass(m, f.First, f.Last, &parts)
}

// message finds the message of a fragment, or begins it.
func (d *Decoder) message(f *frame.Data) *IncomingMessage {
	key := f.Key()
	m := d.open.Get(key)
	if f.First {
		if m = d.spare; m == nil || !f.Last {
			m = new(IncomingMessage)
		} else {
			d.spare = nil
		}
		// It is empty, and long to copy.
		m.Key, m.Interim, m.OneWay, m.Place, m.HasHead = key, f.Interim, f.OneWay, f.Place, f.Head
		m.At, m.alone, m.epoch = d.at, f.Last, d.lanes.epoch
		if !f.Last {
			d.open.Put(key, m)
		}
	}
	if m != nil && f.Last {
		d.open.Delete(key)
		d.whole++
		m.Number = d.whole
	}
	return m
}

// pass gives a fragment out, or holds it.
func (d *Decoder) pass(m *IncomingMessage, first, last bool, p *frame.Parts) error {
	if m.dropped {
		return d.miss(m, p, d.lanes.epoch)
	}
	if d.cfg.MaxHeld >= 0 && (d.held.lane(m.Lane) || !m.bound()) {
		return d.hold(m, first, last, p)
	}
	return d.deliver(m, first, last, p, d.lanes.epoch)
}

// bound reports whether the shapes of the parts that have begun are here.
func (m *IncomingMessage) bound() bool {
	for i := range m.parts {
		if e := m.parts[i].entry; e != nil && e.program == nil && (!e.unread || !m.parts[i].states) {
			return false
		}
	}
	return true
}

// deliver gives a fragment out that came behind so many syncs.
func (d *Decoder) deliver(m *IncomingMessage, first, last bool, p *frame.Parts, epoch uint64) error {
	ev := d.event(Fragment)
	ev.Message, ev.First, ev.Last = m, first, last
	if d.cfg.Skim && d.origin.Stages&Plain == 0 {
		return nil
	}
	own := &d.scratch
	if !d.cfg.Scratch {
		own = contents.Get(expectedContent(len(p.Head.Segment)+len(p.Body.Segment), d.origin.Stages))
		ev.Buffer = own
	}
	buf := own.Octets
	if p.HasHead {
		buf, ev.Err = d.part(buf, &ev.Head, m, 0, &p.Head, epoch)
	}
	if p.HasBody && ev.Err == nil {
		buf, ev.Err = d.part(buf, &ev.Body, m, 1, &p.Body, epoch)
	}
	if ev.Err != nil {
		if err := errors.Join(unread(d, m, 0, &p.Head), unread(d, m, 1, &p.Body)); err != nil {
			return err
		}
	}
	if d.cfg.Skim { // it was read for the shapes that texts announce
		Release(ev.Buffer)
		ev.Head, ev.Body, ev.Err, ev.Buffer = Part{}, Part{}, nil, nil
	}
	if cap(buf) > cap(own.Octets) && !p.HasHead { // it came to more than expected; no head is in what it left
		own.Octets, buf = buf, own.Octets
		contents.Put(&reuse.Buffer{Octets: buf})
		return nil
	}
	own.Octets = buf
	return nil
}

// inLane reports whether the lane of a message remembers a part of which this is a segment, that
// came behind so many syncs: one in one frame, with no sync since its message began.
func (m *IncomingMessage) inLane(p *frame.RawPart, epoch uint64) bool {
	return p.First && p.Last && m.epoch == epoch
}

// miss notes that a fragment that came behind so many syncs is not read.
func (d *Decoder) miss(m *IncomingMessage, p *frame.Parts, epoch uint64) error {
	if p.HasHead && m.inLane(&p.Head, epoch) || p.HasBody && m.inLane(&p.Body, epoch) {
		d.lanes.of(m.Lane, epoch).lose()
	}
	return errors.Join(unread(d, m, 0, &p.Head), unread(d, m, 1, &p.Body))
}

// grown appends a segment to buf; what that has no room for has room that others had.
func grown(buf, segment []byte) []byte {
	if n := len(buf) + len(segment); n > cap(buf) {
		buf = append(contents.Get(n).Octets, buf...)
	}
	return append(buf, segment...)
}

// contents are the buffers of contents: those of most messages are short, those of long bodies what
// a payload may expand to.
var contents = reuse.Sizes{{Most: 1 << 10}, {Most: 2 << 10}, {Most: 4 << 10}, {Most: 8 << 10}, {Most: mostContent}}

// mostContent is the largest of them, in bytes.
const mostContent = 18 << 10

// Release takes a buffer of content that is used no more; nil: none.
func Release(b *reuse.Buffer) { contents.Put(b) }

// Keep gives a copy of content in a buffer for [Release].
func Keep(content []byte) *reuse.Buffer {
	b := contents.Get(len(content))
	b.Octets = append(b.Octets, content...)
	return b
}

// expectedContent is about what so many octets, as they travel, come to.
func expectedContent(octets int, stages uint64) int {
	if stages == 0 {
		return octets
	}
	return max(octets, min(64+2*octets, mostContent))
}

// part appends the content of a segment to buf, and makes p of it.
func (d *Decoder) part(
	buf []byte, p *Part, m *IncomingMessage, i int, s *frame.RawPart, epoch uint64,
) ([]byte, error) {
	at := &m.parts[i]
	p.There, p.First, p.Last, p.Text, p.Packed = true, s.First, s.Last, s.Text, len(s.Segment)
	var lane *receivedLane
	if m.inLane(s, epoch) && d.origin.Stages&(Memory|Zstd) != 0 {
		lane = d.lanes.of(m.Lane, epoch)
	}
	if s.Plain {
		return readPlain(d, buf, p, m, i, s, lane)
	}
	if at.entry != nil {
		p.Program = at.entry.program
		if p.Program == nil {
			lane.lose()
			return buf, &Error{Code: Lacking, At: m.At, Err: at.entry}
		}
	}
	out, err := d.content(buf, p, at, lane, s)
	if err != nil {
		lane.lose()
		return buf, fault(BadContent, m.At, err)
	}
	p.Content = out[len(buf):len(out):len(out)]
	return out, nil
}

// content undoes what the stages made of a segment.
func (d *Decoder) content(
	buf []byte, p *Part, at *partIn, lane *receivedLane, s *frame.RawPart,
) (out []byte, err error) {
	packed := at.entry != nil && !s.Plain && !s.Text && d.origin.Stages&Columns != 0
	undo := func(segment []byte) error {
		if !packed {
			if len(segment) > frame.MaxPayload {
				return fmt.Errorf("segment of %d octets", len(segment))
			}
			out = grown(buf, segment)
			return nil
		}
		var memory *columns.Memory
		if lane == nil || d.origin.Stages&Memory == 0 {
			memory = at.own()
		} else {
			p.Reset = columns.Resets(segment)
			if lane.lost = lane.lost && !p.Reset; lane.lost && columns.Packed(segment) {
				return &Error{Code: Forgotten, At: d.at}
			}
			memory = lane.memory.use()
		}
		u := unpackers.Get().(*columns.Unpacker)
		if u.Bill = nil; d.cfg.Bills {
			p.Bill = new(columns.Bill)
			u.Bill = p.Bill
		}
		var err error
		out, err = u.Unpack(buf, at.entry.program, &at.at, memory, segment, s.Last, frame.MaxPayload)
		unpackers.Put(u)
		return err
	}
	if d.origin.Stages&Zstd != 0 {
		window := func(anew bool) (*recall.History, error) {
			if lane == nil {
				return at.ownWindow(anew), nil
			}
			return d.lanes.recall(lane, anew, d.at)
		}
		err = d.cfg.Compression.expand(s.Segment, packed, window, undo)
	} else {
		err = undo(s.Segment)
	}
	if s.Last && at.memory != nil {
		at.memory.Reset()
		at.memory = nil
	}
	if s.Last {
		at.window = nil
	}
	return out, err
}

// own is the memory of a part that no lane remembers.
func (p *partIn) own() *columns.Memory {
	if p.memory == nil {
		p.memory = new(columns.Memory)
	}
	return p.memory
}

// readPlain appends a text that announces its shape, and makes that.
func readPlain(
	d *Decoder, buf []byte, p *Part, m *IncomingMessage, i int, s *frame.RawPart, lane *receivedLane,
) ([]byte, error) {
	at := &m.parts[i]
	out, err := d.content(buf, p, at, lane, s)
	if err != nil {
		lane.lose()
		return buf, fault(BadContent, m.At, err)
	}
	text := out[len(buf):len(out):len(out)]
	p.Content = text
	made, err := plainShape(text, i == 0)
	if err != nil {
		return buf, &Error{Code: BadShape, At: m.At, Err: fmt.Errorf("number %d: %w", s.Shape, err)}
	}
	e := at.entry
	if fp := made.Fingerprint(); e.named && e.name != frame.NameOf(fp) {
		return buf, &Error{Code: WrongCheck, At: m.At, Err: fmt.Errorf("number %d is not %x", s.Shape, fp)}
	}
	if e.program == nil {
		program := d.cfg.Shapes.Keep(made)
		if program != nil {
			made = program.Shape()
		}
		d.shapes.bases.keep(made, 0, nil)
		e.unread = false
		d.shapes.complete(e, program)
		if d.shapes.octets > d.cfg.MaxShapeOctets {
			return buf, &Error{Code: Limits, At: m.At, Err: fmt.Errorf("shapes of %d octets", d.shapes.octets)}
		}
	}
	if e.program != nil && lane != nil && d.origin.Stages&Memory != 0 {
		if len(s.Segment) > 0 && s.Segment[0] == markForget {
			lane.memory.use().Reset()
			lane.lost = false
		}
		if !lane.lost {
			noteText(e.program, lane.memory.use(), text, false)
		}
	}
	return out, nil
}

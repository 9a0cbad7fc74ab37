package wire

import (
	"encoding/binary"
	"time"

	"github.com/hhfr/hhfr/internal/shape/columns"

	"github.com/hhfr/hhfr/internal/frame"
)

// Data appends a fragment of a message: up to one segment of its head and one of its body; what is
// not There is left out. The shapes of parts that it begins must have been announced
// ([Encoder.Announce]). last: it is the message's last; then the body has begun.
func (e *Encoder) Data(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	e.shapes.begin(m, 0, head, e.MaxSegment())
	e.shapes.begin(m, 1, body, e.MaxSegment())
	if !m.parts[0].textual() && !m.parts[1].textual() {
		return e.fragment(m, head, body, last, now)
	}
	return e.texts(m, head, body, last, now)
}

// texts appends parts that are joined: in one fragment if they fit, else each in as many as it
// takes.
func (e *Encoder) texts(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	parts := [2]Part{*head, *body}
	for i := range parts {
		s, at := &parts[i], &m.parts[i]
		if s.There && at.text != nil {
			s.Content = at.text
		}
		if !s.There || at.join == nil {
			continue
		}
		joined, err := at.join.Join(nil, s.Content, s.Text, s.Last)
		if err != nil {
			return err
		}
		s.Content, s.Text = joined, false
	}
	if len(parts[0].Content)+len(parts[1].Content) <= e.MaxSegment() {
		return e.fragment(m, &parts[0], &parts[1], last, now)
	}
	for i := range parts {
		if !parts[i].There {
			continue
		}
		if err := e.cut(m, i, &parts[i], last && (i == 1 || !body.There), now); err != nil {
			return err
		}
	}
	return nil
}

// cut appends one part in as many fragments as it takes.
func (e *Encoder) cut(m *Outgoing, i int, part *Part, last bool, now time.Time) error {
	var none Part
	whole := *part
	for more := true; more; {
		piece := whole
		n := min(len(whole.Content), e.MaxSegment())
		piece.Content, whole.Content = whole.Content[:n], whole.Content[n:]
		more = len(whole.Content) > 0
		piece.Last = whole.Last && !more
		both := [2]*Part{&none, &none}
		both[i] = &piece
		if err := e.fragment(m, both[0], both[1], last && !more, now); err != nil {
			return err
		}
	}
	return nil
}

// Flush appends that the sender of a message waits, whose body has begun and of which so many
// octets of the texts behind the last item of its content are there ([SplitStep.Flush]); of none
// nothing is said.
func (e *Encoder) Flush(m *Outgoing, settled int64, now time.Time) error {
	if settled == 0 {
		return nil
	}
	at := &m.parts[1]
	if at.join == nil {
		e.append(frame.Flush{Message: m.Key, Settled: uint64(settled)})
		return nil
	}
	text, err := at.join.Settle(nil, settled)
	if err != nil || len(text) == 0 {
		return err
	}
	return e.cut(m, 1, &Part{There: true, Content: text}, false, now)
}

// fragment appends one data frame.
func (e *Encoder) fragment(m *Outgoing, head, body *Part, last bool, now time.Time) error {
	e.syncIfDue(len(head.Content)+len(body.Content)+frame.DataOverhead+SegmentRoom, now)
	d := frame.Data{First: !m.begun, Last: last, Reply: m.Reply, Interim: m.Interim && !m.begun, OneWay: m.OneWay &&
		!m.begun, Head: head.There,
		Lane: m.Lane, Exchange: m.Exchange}
	if d.First {
		d.Place, m.epoch, m.lane = m.Place, e.lanes.epoch, e.lanes.of(m.Lane).id
	}
	parts := frame.Parts{HasHead: head.There, HasBody: body.There}
	room := max(0, min(packRoom, (int(e.cfg.Limits.MaxFragment)-SegmentRoom-len(head.Content)-len(body.Content))/2-2))
	b := e.payload[:0]
	if head.There {
		b = e.number(b, m, 0, head, &parts.Head, now)
		e.segment = e.pack(e.segment[:0], m, 0, head, room, now)
		n := 2 * uint64(len(e.segment))
		if !head.Last {
			n++
		}
		b = append(binary.AppendUvarint(b, n), e.segment...)
	}
	if body.There {
		b = e.number(b, m, 1, body, &parts.Body, now)
		b = e.pack(b, m, 1, body, room, now)
		d.Text = parts.Body.Text
	}
	if (head.There && m.parts[0].inLane || body.There && m.parts[1].inLane) && m.lane != e.lanes.of(m.Lane).id {
		e.lanes.forget(m.Lane) // restarted since the message began: the rest of that is not for those that follow
	}
	e.payload, d.Payload = b, b
	e.numbering.Choose(&d)
	e.checks.Put(&d, &parts, e.shapes.name)
	m.begun, e.before = true, now
	from := len(e.buf)
	e.buf = d.AppendTo(e.buf)
	e.note(Written{Kind: frame.KindData, Octets: len(e.buf) - from, Payload: len(b),
		Content: len(head.Content) + len(body.Content)})
	for i, there := range [...]bool{head.There, body.There} {
		if at := &m.parts[i]; there && at.text != nil {
			e.shapes.stated(at.sent)
			e.cfg.Peer.Learned(at.sent.program)
			if e.resynced != nil {
				e.resynced.tell(at.sent.program.Shape().Fingerprint())
			}
			at.text = nil
		}
	}
	if last {
		m.finish()
	}
	return nil
}

// number appends the number of the shape that a part is under, where it begins.
func (e *Encoder) number(b []byte, m *Outgoing, i int, s *Part, p *frame.RawPart, now time.Time) []byte {
	at := &m.parts[i]
	p.First, p.Last, p.Text = !at.begun, s.Last, s.Text
	if at.begun {
		return b
	}
	at.begun, at.inLane = true, s.Last && m.epoch == e.lanes.epoch
	if at.sent != nil {
		p.Shape, p.Plain = at.sent.number, at.text != nil
		e.lanes.begin(e.cfg.Origin.Stages, m, at, now)
	}
	return binary.AppendUvarint(b, p.Shape)
}

// pack appends a segment as it travels.
func (e *Encoder) pack(dst []byte, m *Outgoing, i int, s *Part, room int, now time.Time) []byte {
	at := &m.parts[i]
	from, packed := len(dst), at.sent != nil && at.text == nil && !s.Text && e.cfg.Origin.Stages&Columns != 0
	var trial *unpackedTrial
	if packed && i == 1 {
		trial = e.unpackedTrial(m, at, len(s.Content))
	}
	if trial != nil && trial.taken {
		if out, done := e.asItIs(dst, trial, m, s.Content, room, now); done {
			at.sent.learned.note(false, len(out)-from)
			return out
		}
	}
	if packed {
		dst = e.packSegment(dst, m, at, s, len(s.Content)+1+room)
	} else {
		dst = append(dst, s.Content...)
	}
	if e.cfg.Origin.Stages&Zstd != 0 {
		dst = e.compress(dst, from, m, at, packed, len(s.Content), now)
	}
	switch {
	case at.remember && at.text != nil:
		e.lanes.noted(m.Lane, at.sent.program, at.text, dst[from:])
	case at.remember:
		at.sent.learned.note(at.fresh, len(dst)-from)
	}
	if trial != nil && !trial.taken && !marked(dst[from:]) {
		trial.look(e, e.lanes.of(m.Lane), s.Content, len(dst)-from, now)
	}
	return dst
}

func (e *Encoder) packSegment(dst []byte, m *Outgoing, at *partOut, s *Part, most int) []byte {
	memory := at.memory
	if at.remember {
		memory = e.lanes.memory(m.Lane)
	} else if memory == nil {
		at.memory = new(columns.Memory)
		memory = at.memory
	}
	k := packers.Get().(*columns.Packer)
	dst = k.Pack(dst, at.sent.program, &at.at, memory, s.Content, s.Last, most)
	packers.Put(k)
	return dst
}

// Drop gives a message up that is not whole: a cancel is appended if any of it was encoded.
func (e *Encoder) Drop(m *Outgoing, code frame.CancelCode) {
	if m.begun && !m.over {
		e.Cancel(frame.Cancel{Message: m.Key, Code: code})
	}
	m.finish()
}

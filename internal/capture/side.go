package capture

import (
	"strings"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// side receives the messages of one direction of a stream.
type side struct {
	in    *direction // nil: nothing of a stream was found in it yet
	conn  *capturedConn
	dir   int
	given []*Decoded // whole, and given since the last check
	past  *found     // result of the first pass
	whole int        // messages
}

// maxRefusals bounds the stored refusals of a direction.
const maxRefusals = 1 << 14

// what returns what was found, or is to be found, about the direction.
func (s *side) what() *found {
	if s.past == nil {
		s.past = s.conn.r.found(s.conn.flow.ID, s.dir)
	}
	return s.past
}

func (s *side) met() {
	if s.conn.r.surveying && !s.conn.r.past {
		s.what().met = true
	}
	s.conn.begin(s.in.origin.Session)
	if s.in.floated {
		w := &s.conn.ways[s.dir]
		w.tape.place(s.in.syncAt - (w.since - int64(s.in.behind())))
	}
}

func (s *side) begun(in *incoming) {
	d := in.Decoded
	d.Origin = s.dir
	if d.Reply {
		d.Origin = 1 - s.dir
	}
	d.Src, d.Dst, d.flow = s.conn.flow.Src, s.conn.flow.Dst, min(s.conn.flow.ID, 0)
	if s.dir == 1 {
		d.Src, d.Dst = d.Dst, d.Src
	}
	d.Stream, d.Direction = s.conn.stream.number, s.dir
	if d.Lane == negotiate.FragmentsLane {
		return // a negotiation
	}
	d.Number = s.conn.r.numbers.of(s.conn.sequence(d.Origin, d.Lane), d.Exchange)
}

func (s *side) ended(in *incoming) {
	d, r := in.Decoded, s.conn.r
	d.Index = in.number
	s.whole++
	r.putHeadersBack(d)
	unread := asXML(r, d, contentTypeOf(d.Head))
	if err := d.open(); err != nil && d.Whole() {
		d.State, d.Why = Undecodable, err.Error()
	}
	if in.number > 0 && r.twice {
		s.final(d)
	}
	peer := s.conn.ways[1-s.dir].what()
	if d.Declined = peer.declined; d.Why == "" {
		d.Why = peer.refusal(frame.Key{Lane: d.Lane, Reply: d.Reply, Exchange: d.Exchange})
	}
	if unread != nil {
		d.Why = strings.TrimSpace(d.Why + " " + unread.Error())
	}
	d.recognize()
	if r.once && !s.settled(d) {
		r.need()
	}
	if in.number > 0 && !r.twice {
		s.given = append(s.given, d)
	}
	r.give(d)
}

// settled reports whether the survey of the beginnings of long inputs has shown all that is known
// of a message of a stream: its check, and whether the peer took it. A refusal that comes more than
// half of the beginnings later is not shown.
func (s *side) settled(d *Decoded) bool {
	checked := d.Index == 0 || s.what().verdictOf(d.Index) != 0
	return checked && d.State != Undecodable && d.LacksContext == "" && s.conn.ways[1-s.dir].what().met &&
		d.Packet < s.conn.r.packets/2
}

// asXML makes the body of a message in Fast Infoset XML text, if that is wanted. One that cannot be
// read stays as it is.
func asXML(r *Reader, d *Decoded, contentType string) error {
	if !r.cfg.XML || r.surveying || d.content.Len() == 0 || !isFastInfoset(contentType) {
		return nil
	}
	text := r.bodies.Body()
	if err := writeInfoset(text, d.content, d.Whole(), r.cfg.MaxMessage); err != nil {
		text.Free()
		return err
	}
	d.content.Free()
	d.content, d.FastInfoset = text, true
	return nil
}

// contentTypeOf is the Content-Type of a head; empty: there is none.
func contentTypeOf(head []byte) string {
	if len(head) == 0 {
		return ""
	}
	h, _, err := http1.ParseHead(head, len(head))
	if err != nil {
		return ""
	}
	kind, _ := h.Get("Content-Type")
	return string(kind)
}

// final gives a message the state that the first pass found.
func (s *side) final(d *Decoded) {
	if state := s.what().verdictOf(d.Index); state != 0 {
		d.settle(state)
	}
}

func (s *side) checked(from, to uint64, state State) {
	r := s.conn.r
	if r.surveying {
		if r.past {
			return
		}
		f := s.what()
		if n := len(f.verdicts); from > 0 && (n == 0 || f.verdicts[n-1].to < from) {
			f.verdicts = append(f.verdicts, verdict{from, Unverified})
		}
		f.verdicts = append(f.verdicts, verdict{to, state})
		return
	}
	given := s.given
	s.given = nil
	if r.twice || to == from {
		return
	}
	check := &Check{
		State:     state,
		Stream:    s.conn.stream.number,
		Direction: s.dir,
		From:      from + 1,
		To:        to,
		Session:   s.in.origin.Session,
	}
	for _, d := range given {
		if d.Index > from && d.Index <= to {
			r.summary.uncount(d)
			d.settle(state)
			r.summary.count(d)
			check.Messages = append(check.Messages, d)
		}
	}
	r.tell(Event{Check: check})
}

func (s *side) framed(f RawFrame) {
	if s.conn.stream != nil {
		f.Stream, f.Direction = s.conn.stream.number, s.dir
		s.conn.r.tell(Event{Frame: &f})
	}
}

func (s *side) declined() { s.what().declined = true }

func (s *side) refused(k frame.Key, why string) {
	f := s.what()
	if f.refusals == nil {
		f.refusals = map[frame.Key]string{}
	}
	if len(f.refusals) < maxRefusals {
		f.refusals[k] = why
	}
}

package capture

import (
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// gathered is what became of the messages of one direction.
type gathered struct {
	messages  []*incoming // in the order of their first octets
	uncovered []*incoming // whole since the last check
	refusals  map[frame.Key]string
}

func (g *gathered) begun(m *incoming) { g.messages = append(g.messages, m) }

func (g *gathered) ended(m *incoming) {
	m.recognize()
	if m.number > 0 {
		g.uncovered = append(g.uncovered, m)
	}
}

func (g *gathered) checked(from, to uint64, s State) {
	for _, m := range g.uncovered {
		switch {
		case m.number <= from || m.number > to:
		case s == Withdrawn:
			m.State, m.Why = s, "its check is wrong"
		case m.State == Unverified:
			m.State = s
		}
	}
	g.uncovered = nil
}

func (g *gathered) refused(k frame.Key, why string) {
	if g.refusals == nil {
		g.refusals = map[frame.Key]string{}
	}
	g.refusals[k] = why
}

// surveyor takes no messages: a direction is read for its shapes, and whose it is.
type surveyor struct{}

func (surveyor) begun(*incoming)               {}
func (surveyor) ended(*incoming)               {}
func (surveyor) checked(_, _ uint64, _ State)  {}
func (surveyor) refused(_ frame.Key, _ string) {}

func (dec *decoder) direction(to receiver, runs []flow.Run) *direction {
	d := newDirection(dec.shapes, dec.cfg.MaxMessage, to)
	for i := range runs {
		r := &runs[i]
		if i > 0 {
			d.gap(r.Offset - runs[i-1].End())
		}
		for k, m := range r.Marks {
			end := len(r.Data)
			if k+1 < len(r.Marks) {
				end = r.Marks[k+1].At
			}
			d.write(r.Data[m.At:end], m)
		}
	}
	d.end()
	return d
}

// survey reads both directions of a stream for their shapes, which messages before them may need, and those of other streams.
func (dec *decoder) survey(dirs [2][]flow.Run) (both [2]*direction) {
	for i, runs := range dirs {
		both[i] = dec.direction(surveyor{}, runs)
	}
	return both
}

// decodeStream decodes the directions of one stream; either may have no runs. It returns nil if it is none.
func (dec *decoder) decodeStream(dirs [2][]flow.Run) (*Stream, []*Decoded) {
	var both [2]*direction
	var got [2]gathered
	for i, runs := range dirs {
		both[i] = dec.direction(&got[i], runs)
	}
	if !both[0].found && !both[1].found {
		return nil, nil
	}
	s := &Stream{}
	for i, d := range both {
		if s.Octets[i] = d.octets; d.found {
			s.Session = d.origin.Session
		}
		for _, p := range d.problems {
			s.Problems = append(s.Problems, [2]string{"first", "second"}[i]+" direction, "+p)
		}
		s.Cut = s.Cut || d.cut()
	}
	var all []*Decoded
	for i := range got {
		for _, m := range got[i].messages {
			if m.origin = i; m.Reply {
				m.origin = 1 - i
			}
			if m.Why == "" {
				m.Why = got[1-i].refusals[frame.Key{Lane: m.Lane, Reply: m.Reply, Exchange: m.Exchange}]
			}
			all = append(all, m.Decoded)
		}
	}
	return s, all
}

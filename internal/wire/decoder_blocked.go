package wire

import (
	"errors"

	"github.com/hhfr/hhfr/internal/frame"
)

// hold has a fragment wait. If too much does, all of it is given up.
func (d *Decoder) hold(m *IncomingMessage, first, last bool, p *frame.Parts) error {
	f := blockedFragment{message: m, first: first, last: last, parts: *p, epoch: d.lanes.epoch}
	for i := range m.parts {
		f.entries[i] = m.parts[i].entry
	}
	b := make([]byte, 0, f.size())
	b = append(b, p.Head.Segment...)
	head := len(b)
	b = append(b, p.Body.Segment...)
	f.parts.Head.Segment, f.parts.Body.Segment = b[:head:head], b[head:]
	h := &d.held
	if h.lanes == nil {
		h.lanes = map[uint64][]blockedFragment{}
	}
	h.lanes[m.Lane] = append(h.lanes[m.Lane], f)
	h.octets += f.size()
	h.weight += f.size() + blockedWeight
	if h.octets > d.cfg.MaxHeld || h.weight > 2*d.cfg.MaxHeld+int64(d.cfg.MaxOpen+1)*blockedWeight {
		return d.giveUp()
	}
	return nil
}

// release gives out what waits no more. Texts among it may announce shapes that others wait for.
func (d *Decoder) release() error {
	h, some := &d.held, false
	for number, lane := range h.lanes {
		for len(lane) > 0 && lane[0].bound() {
			f := lane[0]
			lane, some = lane[1:], true
			h.octets -= f.size()
			h.weight -= f.size() + blockedWeight
			before := len(d.events)
			if err := d.deliver(f.message, f.first, f.last, &f.parts, f.epoch); err != nil {
				return err
			}
			if f.message.dropped { // its lane remembers it nevertheless
				d.unwanted(before)
				continue
			}
			if f.settled > 0 {
				d.emit(Event{Kind: Settled, Message: f.message, Settled: f.settled})
			}
		}
		if h.lanes[number] = lane; len(lane) == 0 {
			delete(h.lanes, number)
		}
	}
	if some {
		return d.release()
	}
	return nil
}

// unwanted takes the last event back.
func (d *Decoder) unwanted(at int) {
	Release(d.events[at].Buffer)
	d.events = d.events[:at]
}

// giveUp drops all that waits.
func (d *Decoder) giveUp() (err error) {
	for _, lane := range d.held.lanes {
		for i := range lane {
			m := lane[i].message
			err = errors.Join(err, d.miss(m, &lane[i].parts, lane[i].epoch))
			if !m.dropped {
				m.dropped = true
				d.emit(Event{Kind: Dropped, Message: m})
			}
		}
	}
	d.held = blockedLanes{}
	return err
}

package streamer

import (
	"fmt"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// held keeps the fragments of lanes that wait for a shape, in order (docs/wire-format.md, section 4). The reader's only.
type held struct {
	lanes map[uint64]*fifo[heldParts]
	load  load
}

// heldParts are the parts of a fragment. Those that begin in it are bound to their shapes as soon as these are there: the number may stand for something else later.
type heldParts struct {
	in      *inbound
	parts   frame.Parts
	joins   [2]join
	unpacks [2]begin // with stages
	epoch   uint64
}

func (p heldParts) size() int { return len(p.parts.Head.Segment) + len(p.parts.Body.Segment) }

// begins gives the parts by the places of their joins, and tells which of them begin here.
func (p *heldParts) begins() (parts [2]frame.Part, begins [2]bool) {
	h, b := p.parts.Head, p.parts.Body
	return [2]frame.Part{h, b}, [2]bool{p.parts.HasHead && h.First, p.parts.HasBody && b.First}
}

// pass delivers the parts of a fragment, or holds them.
func (r *receiver) pass(in *inbound, p frame.Parts) error {
	h := heldParts{in: in, parts: p, epoch: r.epoch}
	bound := r.bind(&h)
	lane := r.held.lanes[in.key.Lane]
	if lane == nil && bound {
		return r.deliver(&h)
	}
	if lane == nil {
		if r.held.lanes == nil {
			r.held.lanes = map[uint64]*fifo[heldParts]{}
		}
		lane = &fifo[heldParts]{}
		r.held.lanes[in.key.Lane] = lane
	}
	if r.s.packer != nil {
		own(&h.parts, h.size())
	}
	lane.push(h)
	r.held.load.add(h.size(), segmentWeight+exchangeWeight)
	if most := r.s.cfg.Limits.MaxHeld; r.held.load.octets > most || r.held.load.weight > 2*most+r.s.maxOverhead {
		r.giveUpHeld()
	}
	return nil
}

// waitsFor tells whether anything held waits for the shape behind a number.
func (h *held) waitsFor(number uint64) bool {
	for _, lane := range h.lanes {
		for i := range lane.items[lane.head:] {
			p := &lane.items[lane.head+i]
			parts, begins := p.begins()
			for i, part := range parts {
				if begins[i] && p.joins[i] == nil && part.Shape == number {
					return true
				}
			}
		}
	}
	return false
}

// named calls f with every shape number that a fragment names.
func named(p frame.Parts, f func(number uint64) bool) bool {
	for _, part := range [...]frame.Part{p.Head, p.Body} {
		if part.First && part.Shape != 0 && !f(part.Shape) {
			return false
		}
	}
	return true
}

func (r *receiver) mustBeAnnounced(p frame.Parts) error {
	var missing uint64
	if named(p, func(number uint64) bool {
		_, ok := r.announced[number]
		missing = number
		return ok
	}) {
		return nil
	}
	return fmt.Errorf("shape number %d is not announced", missing)
}

// bind binds the parts that begin to their shapes, and is false if one of these is not there yet.
func (r *receiver) bind(p *heldParts) bool {
	bound := true
	parts, begins := p.begins()
	for i, part := range parts {
		if !begins[i] || p.joins[i] != nil {
			continue
		}
		if known, _ := r.s.coder.Known(part.Shape); part.Shape != 0 && !known {
			bound = false
			continue
		}
		j, err := r.s.coder.NewJoin(part.Shape)
		if err != nil {
			_ = p.in.refuse(frame.Malformed, &Error{Code: Malformed, Err: err})
			return true
		}
		p.joins[i] = j
		if r.s.packer != nil {
			p.unpacks[i] = r.s.packer.NewUnpack(part.Shape)
		}
	}
	return bound
}

// deliver unpacks the fragment, and queues it for the goroutine that reads the message.
func (r *receiver) deliver(p *heldParts) error {
	s, in := r.s, p.in
	if s.packer != nil {
		lost, err := r.unpack(p)
		if err != nil {
			return err
		}
		if lost {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refuseHeldLocked(in)
			return nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, j := range p.joins {
		if j != nil {
			in.joins[i] = j
		}
	}
	s.deliverLocked(in, p.parts)
	s.beginLocked(in)
	return nil
}

// release goes on with lanes whose shapes have come.
func (r *receiver) release() error {
	for number, lane := range r.held.lanes {
		for lane.len() > 0 && r.bind(lane.front()) {
			h := lane.pop()
			r.held.load.sub(h.size(), segmentWeight+exchangeWeight)
			if err := r.deliver(&h); err != nil {
				return err
			}
		}
		if lane.len() == 0 {
			delete(r.held.lanes, number)
		}
	}
	return nil
}

// giveUpHeld cancels all that is held.
func (r *receiver) giveUpHeld() {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, lane := range r.held.lanes {
		for lane.len() > 0 {
			h := lane.pop()
			r.held.load.sub(h.size(), segmentWeight+exchangeWeight)
			if s.packer != nil {
				s.packer.GiveUp(h.in.key.Lane, r.epoch)
			}
			s.refuseHeldLocked(h.in)
		}
	}
	r.held.lanes = nil
}

// refuseHeldLocked says of a message that was held that it was not processed; that is not said of one that somebody reads already.
func (s *Stream) refuseHeldLocked(in *inbound) {
	code := frame.Unprocessed
	if in.started {
		code = frame.Busy
	}
	s.refuseLocked(in, code, &Error{Code: Code(code)})
}

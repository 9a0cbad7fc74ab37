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

type heldParts struct {
	in    *inbound
	parts frame.Parts
	epoch uint64
}

func (p heldParts) size() int { return len(p.parts.Head.Segment) + len(p.parts.Body.Segment) }

// pass delivers the parts of a fragment, or holds them.
func (r *receiver) pass(in *inbound, p frame.Parts) error {
	if err := r.mustBeAnnounced(p); err != nil {
		return err
	}
	lane := r.held.lanes[in.key.Lane]
	if lane == nil && r.here(p) {
		return r.deliver(in, p, r.epoch)
	}
	if lane == nil {
		if r.held.lanes == nil {
			r.held.lanes = map[uint64]*fifo[heldParts]{}
		}
		lane = &fifo[heldParts]{}
		r.held.lanes[in.key.Lane] = lane
	}
	if r.s.packer != nil {
		own(&p, len(p.Head.Segment)+len(p.Body.Segment))
	}
	h := heldParts{in, p, r.epoch}
	lane.push(h)
	r.held.load.add(h.size(), segmentWeight+exchangeWeight)
	if most := r.s.cfg.Limits.MaxHeld; r.held.load.octets > most || r.held.load.weight > 2*most+r.s.maxOverhead {
		r.giveUpHeld()
	}
	return nil
}

// names tells whether anything held names a shape number.
func (h *held) names(number uint64) bool {
	for _, lane := range h.lanes {
		for _, p := range lane.items[lane.head:] {
			if !named(p.parts, func(n uint64) bool { return n != number }) {
				return true
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

// here tells whether all shapes that a fragment names are there.
func (r *receiver) here(p frame.Parts) bool {
	return named(p, func(number uint64) bool {
		known, _ := r.s.coder.Known(number)
		return known
	})
}

// deliver binds the parts that begin to their shapes, and queues the fragment for the goroutine that reads the message.
func (r *receiver) deliver(in *inbound, p frame.Parts, epoch uint64) error {
	s := r.s
	var joins [2]join
	var err error
	if s.packer != nil {
		lost, err := r.unpack(in, &p, epoch)
		if err != nil {
			return err
		}
		if lost {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.refuseLocked(in, frame.Unprocessed, &Error{Code: Unprocessed})
			return nil
		}
	}
	for i, part := range [...]frame.Part{p.Head, p.Body} {
		if begins := part.First && [...]bool{p.HasHead, p.HasBody}[i]; begins && err == nil {
			joins[i], err = s.coder.NewJoin(part.Shape)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.refuseLocked(in, frame.Malformed, &Error{Code: Malformed, Err: err})
		return nil
	}
	for i, j := range joins {
		if j != nil {
			in.joins[i] = j
		}
	}
	s.deliverLocked(in, p)
	s.beginLocked(in)
	return nil
}

// release goes on with lanes whose shapes have come.
func (r *receiver) release() error {
	for number, lane := range r.held.lanes {
		for lane.len() > 0 && r.here(lane.front().parts) {
			h := lane.pop()
			r.held.load.sub(h.size(), segmentWeight+exchangeWeight)
			if err := r.deliver(h.in, h.parts, h.epoch); err != nil {
				return err
			}
		}
		if lane.len() == 0 {
			delete(r.held.lanes, number)
		}
	}
	return nil
}

// giveUpHeld cancels all that is held, as not processed.
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
			s.refuseLocked(h.in, frame.Unprocessed, &Error{Code: Unprocessed})
		}
	}
	r.held.lanes = nil
}

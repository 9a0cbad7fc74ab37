package wsrm

// connected begins with a new carrier: nobody knows what the one before still brought, so whatever is not done is sent again, behind a word on what is done on either side.
func (e *Engine) connected() error {
	if !e.cfg.Carried {
		return fault(Misuse)
	}
	e.forsake(0) // if nobody said that the carrier before is gone
	s := &e.out
	e.live = true
	for position := s.done + 1; position <= s.sent; position++ {
		if u := s.unit(position); u.state == outFlying || u.state == outArrived {
			e.again(position, u)
		}
	}
	e.in.ackAt = e.now
	if s.phase != phaseEnded {
		e.say()
	}
	return nil
}

// disconnected is the end of a carrier, which was handed nothing from a position on, if that is not 0.
func (e *Engine) disconnected(unsent uint64) error {
	if !e.cfg.Carried {
		return fault(Misuse)
	}
	e.live, e.flush = false, false
	e.forsake(unsent)
	return nil
}

// forsake has at-most-once be done with what a carrier left under way: the next packet tells the other end so by its floor. What it was never handed waits for the next one.
func (e *Engine) forsake(unsent uint64) {
	s := &e.out
	if e.cfg.Assurance != AtMostOnce || s.sent == s.done || s.phase >= phaseTerminating {
		return
	}
	if unsent != 0 {
		for to := max(unsent, s.done+1); s.sent >= to; s.sent-- {
			s.takeOut(s.unit(s.sent))
		}
	}
	if s.sent > s.done {
		e.stats.GivenUp += int64(s.sent - s.done)
		e.act(Action{Kind: Lost, Number: s.done + 1, Count: s.sent - s.done})
		e.settle(s.sent)
	}
	e.changed = true
}

// takeOut makes a unit one that was never handed out.
func (s *source) takeOut(u *outUnit) {
	switch u.state {
	case outLost:
		s.lost--
		s.waiting -= len(u.payload)
	case outArrived:
		s.arrived--
	case outQueued, outFlying, outGone:
	}
	u.state = outQueued
	s.waiting += len(u.payload)
}

// carry hands out all that waits; what bounds it is the window.
func (e *Engine) carry() {
	s := &e.out
	if !e.live {
		return
	}
	if s.phase != phaseEnded && s.control {
		e.sendControl()
	}
	if s.phase != phaseEnded && s.pending() {
		p := e.packet()
		for position, ok := s.next(); ok; position, ok = s.next() {
			e.launch(p, position, 0)
		}
		e.stats.Sent++
		e.act(Action{Kind: Transmit, Packet: p})
	}
	if e.in.ackAt <= e.now {
		e.sendAck()
	}
}

// Undone yields what was accepted and is not done, in the order of the numbers, and whether it was ever sent, for as long as the sequence is not over. Only with [Config.Carried]; the messages must not be changed.
func (e *Engine) Undone(yield func(number uint64, message []byte, sent bool) bool) {
	s := &e.out
	if !e.cfg.Carried || s.phase >= phaseTerminating {
		return
	}
	for position := s.done + 1; position <= s.last; position++ {
		if !yield(position, s.unit(position).payload, position <= s.sent) {
			return
		}
	}
}

// Positions tells how far the sequences are: up to where messages were accepted for sending, up to where the other end is done with them, and up to where this end is done with those of the other.
func (e *Engine) Positions() (accepted, done, received uint64) {
	return e.out.last, e.out.done, e.in.done
}

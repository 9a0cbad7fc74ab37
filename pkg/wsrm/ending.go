package wsrm

// closing lets nothing more be sent.
func (e *Engine) closing() error {
	s := &e.out
	if s.phase != phaseOpen {
		return fault(Closed)
	}
	s.phase = phaseClosing
	e.changed = true
	if s.done == s.last || e.cfg.Carried {
		e.say()
	}
	return nil
}

// kept is the phase that outlives a crash. On carriers, whose sequences outlive sessions, one that is closing is open again in its next life as long as something is not done: that life may have more to send, or close it again.
func (s *source) kept() phase {
	if s.cfg.Carried && s.phase == phaseClosing && s.done < s.last {
		return phaseOpen
	}
	return s.phase
}

// ask wants a sign of life.
func (e *Engine) ask() error {
	s := &e.out
	if s.phase == phaseEnded || s.phase != phaseOpen && !e.cfg.Carried {
		return fault(Closed)
	}
	if !s.asked || e.cfg.Carried {
		s.asked = true
		e.say()
	}
	return nil
}

// say has a datagram sent that has no units.
func (e *Engine) say() {
	e.out.control = true
	e.flush = true
}

// sendControl sends one: it asks for an answer.
func (e *Engine) sendControl() {
	s := &e.out
	s.control = false
	p, _ := e.open()
	p.Request = true
	if e.in.ackAt != never {
		e.makeAck(&p.Ack)
		p.HasAck = true
		e.in.acknowledged(e)
	}
	s.armTimer(e.now)
	e.finish(p)
}

// farewell goes on with the end of the sequence, as far as an acknowledgement allows.
func (e *Engine) farewell(a *Ack) {
	s := &e.out
	switch {
	case s.phase == phaseClosing && s.done == s.last && a.Final:
		s.phase = phaseTerminating
		s.reason = Complete
		s.goodbyes, s.backoff = 0, 0
		e.changed = true
		e.say()
		s.restartTimer(e.now)
	case s.phase == phaseClosing && s.done == s.last && s.packet == a.Echo:
		e.say() // the other end has all, and does not know that it is all
	case s.phase == phaseTerminating && a.Terminated:
		e.end(s.reason)
	}
}

// abort reports what is not done, and ends the sequence: at once, or when the other end knows.
func (e *Engine) abort(why Reason) {
	s := &e.out
	if s.phase == phaseEnded {
		return
	}
	if s.phase < phaseTerminating {
		e.report()
		for position := s.done + 1; position <= s.last; position++ {
			*s.unit(position) = outUnit{}
		}
		if s.phase == phaseOpen {
			s.last = s.sent
		}
		s.sent = s.last // what was said to be the last stays so
		s.oldest, s.newest, s.flight, s.held, s.waiting, s.lost, s.arrived = 0, 0, 0, 0, 0, 0, 0
		s.lossAt = never
		s.reason = why
	}
	e.changed = true
	if why != Aborted || !s.spoke {
		e.end(s.reason)
		return
	}
	s.phase = phaseTerminating
	s.goodbyes, s.backoff = 0, 0
	e.say()
	s.restartTimer(e.now)
}

// report tells of the fate of everything above done, in the order of the numbers.
func (e *Engine) report() {
	s := &e.out
	for position := s.done + 1; position <= s.sent; {
		// At-most-once promised nothing, and told of what it gave up.
		gone := s.unit(position).state == outGone
		first := position
		for position <= s.sent && (s.unit(position).state == outGone) == gone {
			position++
		}
		if !gone {
			e.act(Action{Kind: Unknown, Number: first, Count: position - first})
		}
	}
	if s.last > s.sent {
		e.act(Action{Kind: Unsent, Number: s.sent + 1, Count: s.last - s.sent})
	}
}

// end is the end of the source's sequence.
func (e *Engine) end(why Reason) {
	s := &e.out
	s.phase = phaseEnded
	s.rtoAt, s.lossAt = never, never
	s.control = false
	e.changed = true
	e.act(Action{Kind: Ended, Reason: why})
}

// terminate: the other end is done with its sequence.
func (d *destination) terminate(e *Engine) {
	d.terminated = true
	d.ackAt = e.now
	d.end(e, Aborted)
}

// end is the end of the destination's sequence: before its time because of why. What is held will never be whole, or never have its turn.
func (d *destination) end(e *Engine, why Reason) {
	if d.ended {
		return
	}
	d.ended = true
	if d.complete() {
		why = Complete // whatever became of the last farewell
	}
	for position := d.done + 1; position <= d.high; position++ {
		d.drop(position)
		if u := d.unit(position); u.state == inHeld {
			*u = inUnit{}
		}
	}
	d.free, d.spare, d.refused = nil, 0, nil
	e.changed = true
	e.act(Action{Kind: Ended, Remote: true, Reason: why})
}

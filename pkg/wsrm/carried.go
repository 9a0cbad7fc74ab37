package wsrm

// connected begins with a new carrier: nobody knows what the one before still brought, so whatever is not done is sent again, behind a word on what is done on either side.
func (e *Engine) connected() error {
	if !e.cfg.Carried {
		return fault(Misuse)
	}
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

// disconnected is the end of a carrier.
func (e *Engine) disconnected() error {
	if !e.cfg.Carried {
		return fault(Misuse)
	}
	e.live, e.flush = false, false
	return nil
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

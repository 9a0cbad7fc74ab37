package wsrm

// validateAck refuses acknowledgements of what was never sent, before anything changes; its work is bounded by the ranges.
func (e *Engine) validateAck(a *Ack) error {
	s := &e.out
	if a.Done > s.sent || a.Echo > s.packet {
		return fault(Invalid)
	}
	for _, ranges := range [...][]Range{a.Ranges, a.Nacks} {
		before := a.Done
		for i, r := range ranges {
			if r.First <= before || i > 0 && r.First == before+1 || r.Last < r.First || r.Last > s.sent {
				return fault(Invalid)
			}
			before = r.Last
		}
	}
	return nil
}

// acknowledged takes in an acknowledgement.
func (e *Engine) acknowledged(a *Ack) {
	s := &e.out
	if s.phase == phaseEnded || a.Instance < s.instance {
		return
	}
	if a.Instance > s.instance {
		s.instance = a.Instance
		e.takeBack()
	}
	if a.Unknown {
		e.abort(Unrecognized)
		return
	}
	news := a.Echo > s.echo
	if news {
		if s.packet-a.Echo < sentMemory {
			s.measured(s.cfg, e.now-s.sentAt[a.Echo%sentMemory])
		}
		s.echo = a.Echo
		s.asked = false
		s.goodbyes = 0
	}
	if s.phase == phaseTerminating {
		e.farewell(a)
		return
	}
	e.checkTimeout(a)
	flight, done := s.flight, s.done
	e.arrivals(a)
	e.refusals(a)
	if s.flight < flight || s.done > done || news && s.done == s.sent {
		s.backoff = 0 // to be asked while the other end has yet to commit is no progress
	}
	if acked := flight - s.flight; acked > 0 {
		s.grow(acked, flight)
	}
	e.detectLoss()
	s.probed(s.echo, flight)
	if news || s.flight < flight {
		s.restartTimer(e.now)
		s.armTail(e.now)
	}
	e.farewell(a)
}

// arrivals marks what an acknowledgement covers.
func (e *Engine) arrivals(a *Ack) {
	s := &e.out
	for _, r := range a.Ranges {
		for position := max(r.First, s.done+1); position <= r.Last; position++ {
			u := s.unit(position)
			switch u.state {
			case outFlying:
				s.land(u)
			case outLost:
				s.lost--
				s.waiting -= len(u.payload)
			case outQueued, outArrived, outGone:
				continue
			}
			u.state = outArrived
			s.arrived++
		}
	}
	if e.cfg.lossy() {
		for position := s.done + 1; position <= a.Done; position++ {
			if u := s.unit(position); u.state == outFlying {
				s.land(u)
				u.state = outGone
			}
		}
		e.giveUp()
		return
	}
	e.settle(max(a.Done, s.done))
}

// refusals marks what the other end could not keep to be sent again, without a word about congestion.
func (e *Engine) refusals(a *Ack) {
	s := &e.out
	if e.cfg.lossy() {
		return
	}
	for _, r := range a.Nacks {
		for position := max(r.First, s.done+1); position <= r.Last; position++ {
			// One that was sent again since: the nack speaks of the time before.
			if u := s.unit(position); u.packet <= a.Echo {
				e.missing(position, u)
			}
		}
	}
	e.dropped(a)
}

// dropped looks for units that had arrived and of which the ranges tell no more: they made room for others, and the nack that said so got lost. An acknowledgement that is out of date tells nothing of that.
func (e *Engine) dropped(a *Ack) {
	s := &e.out
	told := uint64(0)
	for _, r := range a.Ranges {
		if r.Last > s.done {
			told += r.Last - max(r.First, s.done+1) + 1
		}
	}
	if a.Echo != s.echo || a.Done < s.done || len(a.Ranges) == maxRanges || s.arrived <= told {
		return
	}
	ranges := a.Ranges
	for position := s.done + 1; position <= s.sent; position++ {
		for len(ranges) > 0 && ranges[0].Last < position {
			ranges = ranges[1:]
		}
		if u := s.unit(position); u.state == outArrived && (len(ranges) == 0 || position < ranges[0].First) {
			e.again(position, u)
		}
	}
}

// missing marks a unit that the other end does not have any more.
func (e *Engine) missing(position uint64, u *outUnit) {
	switch u.state {
	case outFlying:
		e.lose(position)
	case outArrived:
		e.again(position, u)
	case outQueued, outLost, outGone:
	}
}

// again has a unit sent again that is not flying.
func (e *Engine) again(position uint64, u *outUnit) {
	s := &e.out
	if u.state == outArrived {
		s.arrived--
	}
	u.state = outLost
	s.lost++
	s.waiting += len(u.payload)
	s.lostAt = min(s.lostAt, position)
}

// takeBack: the other end crashed; what merely arrived there is lost.
func (e *Engine) takeBack() {
	s := &e.out
	if e.cfg.lossy() {
		return
	}
	for position := s.done + 1; position <= s.sent; position++ {
		if u := s.unit(position); u.state == outArrived {
			e.again(position, u)
		}
	}
}

package wsrm

// transmit sends what may be sent now.
func (e *Engine) transmit() {
	if e.cfg.Carried {
		e.carry()
		return
	}
	s := &e.out
	for s.phase != phaseEnded && s.pending() && s.admitted() && s.paceAt <= e.now {
		s.probe = false
		e.sendUnits()
	}
	switch {
	case s.phase == phaseEnded:
	case s.control:
		e.sendControl()
	case e.now >= e.silence.askAt(e):
		s.asked = true
		e.sendControl()
	case !s.asked && !s.pending() && s.last == s.done && s.phase == phaseOpen && e.now >= s.keepAt(e):
		s.asked = true
		e.sendControl()
	}
	if e.in.ackAt <= e.now {
		e.sendAck()
	}
}

// open starts a datagram that is to be acknowledged, and says how much room for units and an acknowledgement is left in it, in octets.
func (e *Engine) open() (p *Packet, room int) {
	s := &e.out
	p = e.packet()
	s.packet++
	p.Number, p.Floor = s.packet, s.done+1
	p.Closing, p.Terminate, p.Last = s.phase >= phaseClosing, s.phase == phaseTerminating, s.last
	sequence, number := e.codec.split(p.Floor)
	room = e.cfg.Datagram - 1 - uvarintLen(p.Number) - uvarintLen(number)
	if sequence > 0 {
		room -= uvarintLen(sequence)
	}
	if p.Closing {
		room -= uvarintLen(p.Last + 1 - p.Floor)
	}
	return p, room
}

// finish hands a datagram out.
func (e *Engine) finish(p *Packet) {
	s := &e.out
	s.sentAt[p.Number%sentMemory] = e.now
	s.spokeAt, s.spoke = e.now, true
	e.stats.Sent++
	e.act(Action{Kind: Transmit, Packet: p})
}

// sendUnits fills one datagram: lost units first, the oldest first.
func (e *Engine) sendUnits() {
	s := &e.out
	idle := s.flight == 0
	p, room := e.open()
	full := room
	if e.in.ackAt != never {
		e.makeAck(&p.Ack)
		// It goes alone if the first unit would not fit beside it.
		first, _ := s.next()
		if size := e.codec.ackLen(&p.Ack); size+unitLen(s.unit(first))+runLen(first, 0, p.Floor) <= room {
			room -= size
			p.HasAck = true
		}
	}
	if idle {
		s.rested(e.now)
	}
	var last uint64
	for room > 0 {
		position, ok := s.next()
		if !ok {
			break
		}
		u := s.unit(position)
		size := unitLen(u)
		if len(p.Units) == 0 || position != last+1 {
			size += runLen(position, last, p.Floor)
		}
		if size > room {
			break
		}
		room -= size
		last = position
		e.launch(p, position, size)
	}
	if p.HasAck {
		e.in.acknowledged(e)
	}
	// What is not payload weighs on the first unit.
	u := s.unit(p.Units[0].Number)
	overhead := e.cfg.Datagram - full + packetOverhead
	u.charge += overhead
	s.flight += overhead
	// Whoever sends all there is hears of it sooner, and sooner hears that it was lost.
	p.Request = !s.pending()
	s.paced(e.now, e.cfg.Datagram-room+packetOverhead)
	s.armTimer(e.now)
	s.armTail(e.now)
	e.finish(p)
}

// unitLen is what a unit takes in a datagram, in octets.
func unitLen(u *outUnit) int {
	n := uvarintLen(uint64(len(u.payload))<<1) + len(u.payload)
	if !u.first || !u.last {
		n++
	}
	return n
}

// runLen is what the head of a run takes at most, in octets.
func runLen(position, last, floor uint64) int {
	if last == 0 {
		last = floor - 1
	}
	return uvarintLen(position-last) + 3
}

// next gives the position of the unit to be sent next.
func (s *source) next() (uint64, bool) {
	if s.lost > 0 {
		for s.lostAt = max(s.lostAt, s.done+1); s.unit(s.lostAt).state != outLost; s.lostAt++ {
		}
		return s.lostAt, true
	}
	return s.sent + 1, s.sent < s.last
}

// launch puts a unit into a datagram.
func (e *Engine) launch(p *Packet, position uint64, size int) {
	s := &e.out
	u := s.unit(position)
	if u.state == outLost {
		s.lost--
		e.stats.Resent++
	} else {
		s.sent = position
	}
	s.waiting -= len(u.payload)
	u.state, u.packet, u.at, u.charge = outFlying, p.Number, e.now, size
	if !e.cfg.Carried { // there is no flight to keep in bounds, and nothing is lost out of it
		s.flight += size
		s.link(position, u)
	}
	p.Units = append(p.Units, Unit{Number: position, First: u.first, Last: u.last, Payload: u.payload})
}

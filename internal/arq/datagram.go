package arq

import "github.com/hhfr/hhfr/internal/window"

// transmit sends what may be sent now.
func (e *Endpoint) transmit() {
	s := &e.out
	for s.phase != phaseEnded && s.Pending() && s.admitted() && s.paceAt <= e.now {
		s.probe = false
		e.sendUnits()
	}
	idle := !s.asked && !s.Pending() && s.Last == s.Done && s.phase == phaseOpen
	switch {
	case s.phase == phaseEnded:
	case s.control:
		e.sendControl()
	case e.now >= e.silence.askAt(e), idle && e.now >= s.keepAt(e):
		s.asked = true
		e.sendControl()
	}
	if e.in.AckAt <= e.now {
		e.sendAck()
	}
}

// open starts a datagram that is to be acknowledged, and gives how many bytes of units and an
// acknowledgement it still takes.
func (e *Endpoint) open() (p *window.Packet, left int) {
	s := &e.out
	p = e.packet()
	s.Packet++
	p.Number, p.Floor = s.Packet, s.Done+1
	p.Closing, p.Terminate, p.Last = s.phase >= phaseClosing, s.phase == phaseTerminating, s.Last
	return p, e.cfg.Datagram - p.HeadLen()
}

// finish hands a datagram out.
func (e *Endpoint) finish(p *window.Packet) {
	s := &e.out
	s.sentAt[p.Number%sentMemory] = e.now
	s.spokeAt, s.spoke = e.now, true
	e.stats.Sent++
	e.act(Instruction{Kind: Transmit, Packet: p})
}

// sendUnits fills one datagram: lost units first, the oldest first.
func (e *Endpoint) sendUnits() {
	s := &e.out
	idle := s.bytes == 0
	p, left := e.open()
	full := left
	if e.in.AckAt != never {
		e.in.FillAck(&p.Ack)
		// It goes alone if the first unit would not fit beside it.
		number, _ := s.Next()
		first := s.Unit(number)
		if size := p.Ack.Len(); size+first.Len()+runLen(number, 0, p.Floor) <= left {
			left -= size
			p.HasAck = true
		}
	}
	if idle {
		s.rested(e.now)
	}
	left = e.fill(p, left)
	if p.HasAck {
		e.acked()
	}
	// What is not payload weighs on the first unit.
	s.charge(p.Units[0].Number, e.cfg.Datagram-full+packetOverhead)
	// Whoever sends all there is hears of it sooner, and sooner hears that it was lost.
	p.Request = !s.Pending()
	s.paced(e.now, e.cfg.Datagram-left+packetOverhead)
	s.armTimer(e.now)
	s.armTail(e.now)
	e.finish(p)
}

// fill puts units into a datagram, as long as they fit, and gives how many bytes are left.
func (e *Endpoint) fill(p *window.Packet, left int) int {
	s := &e.out
	var last uint64
	for left > 0 {
		number, ok := s.Next()
		if !ok {
			break
		}
		u := s.Unit(number)
		size := u.Len()
		if len(p.Units) == 0 || number != last+1 {
			size += runLen(number, last, p.Floor)
		}
		if size > left {
			break
		}
		left -= size
		last = number
		if s.Launch(number, p.Number) {
			e.stats.Resent++
		}
		s.depart(number, e.now)
		s.charge(number, size)
		p.Units = append(p.Units, u)
	}
	return left
}

// runLen is how many bytes the head of a run takes at most.
func runLen(number, last, floor uint64) int {
	if last == 0 {
		last = floor - 1
	}
	return window.UvarintLen(number-last) + 3
}

// sendControl sends a datagram without units, which asks for an answer.
func (e *Endpoint) sendControl() {
	s := &e.out
	s.control = false
	p, _ := e.open()
	p.Request = true
	if e.in.AckAt != never {
		e.in.FillAck(&p.Ack)
		p.HasAck = true
		e.acked()
	}
	s.armTimer(e.now)
	e.finish(p)
}

// sendAck sends an acknowledgement alone.
func (e *Endpoint) sendAck() {
	p := e.packet()
	p.HasAck = true
	e.in.FillAck(&p.Ack)
	// The ranges always fit: there are few, and they are short together.
	for p.Ack.Len()+1 > e.cfg.Datagram {
		p.Ack.Nacks = p.Ack.Nacks[:len(p.Ack.Nacks)/2]
	}
	e.acked()
	e.stats.Sent++
	e.act(Instruction{Kind: Transmit, Packet: p})
}

// acked notes that an acknowledgement is on its way.
func (e *Endpoint) acked() {
	e.stats.AcksSent++
	e.in.Acked()
}

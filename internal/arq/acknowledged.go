package arq

import "github.com/hhfr/hhfr/internal/window"

// acknowledged takes in an acknowledgement.
func (e *Endpoint) acknowledged(a *window.AckPacket) {
	s := &e.out
	if s.phase == phaseEnded || !s.Current(a) {
		return
	}
	if a.Unknown {
		e.end(Unrecognized)
		return
	}
	news := a.Echo > s.Echo
	if news {
		if s.Packet-a.Echo < sentMemory {
			s.measured(e.now - s.sentAt[a.Echo%sentMemory])
		}
		s.Echo = a.Echo
		s.asked = false
		s.goodbyes = 0
	}
	if s.phase == phaseTerminating {
		e.sayEnd(a)
		return
	}
	e.checkTimeout(a)
	flight, done := s.bytes, s.Done
	if s.Acknowledged(a) {
		e.act(Instruction{Kind: Acknowledged, Number: s.Done})
	}
	if s.bytes < flight || s.Done > done || news && s.Done == s.Sent {
		s.backoff = 0 // to be asked while the peer has yet to commit is no progress
	}
	if acked := flight - s.bytes; acked > 0 {
		s.grow(acked, flight)
	}
	e.detectLoss()
	s.probed(s.Echo, flight)
	if news || s.bytes < flight {
		s.restartTimer(e.now)
		s.armTail(e.now)
	}
	e.sayEnd(a)
}

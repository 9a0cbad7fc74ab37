package arq

import "github.com/hhfr/hhfr/internal/window"

// closing lets nothing more be sent.
func (e *Endpoint) closing() error {
	s := &e.out
	if s.phase != phaseOpen {
		return window.Fault(window.Closed)
	}
	s.phase = phaseClosing
	if s.Done == s.Last {
		e.say()
	}
	return nil
}

// ask wants a sign of life.
func (e *Endpoint) ask() error {
	s := &e.out
	if s.phase != phaseOpen {
		return window.Fault(window.Closed)
	}
	if !s.asked {
		s.asked = true
		e.say()
	}
	return nil
}

// say has a datagram sent that has no units.
func (e *Endpoint) say() {
	e.out.control = true
	e.flush = true
}

// sayEnd continues the end of the sequence, as far as an acknowledgement allows.
func (e *Endpoint) sayEnd(a *window.AckPacket) {
	s := &e.out
	switch {
	case s.phase == phaseClosing && s.Done == s.Last && a.Final:
		s.phase = phaseTerminating
		s.goodbyes, s.backoff = 0, 0
		e.say()
		s.restartTimer(e.now)
	case s.phase == phaseClosing && s.Done == s.Last && s.Packet == a.Echo:
		e.say() // the peer has all, and does not know that it is all
	case s.phase == phaseTerminating && a.Terminated:
		e.end(Complete)
	}
}

// end is the end of the sender's sequence; one that was only to be told so was complete. What is
// not done will not be.
func (e *Endpoint) end(why EndReason) {
	s := &e.out
	switch s.phase {
	case phaseEnded:
		return
	case phaseTerminating:
		why = Complete
	case phaseOpen, phaseClosing:
		s.Drop(s.phase == phaseClosing)
		s.clear()
	}
	s.phase = phaseEnded
	s.rtoAt, s.lossAt = never, never
	s.control = false
	e.act(Instruction{Kind: Ended, Reason: why})
}

// endRemote is the end of the peer's sequence: before its time because of why.
func (e *Endpoint) endRemote(why EndReason) {
	if !e.in.End() {
		return
	}
	if e.in.Complete() {
		why = Complete // whatever became of the last message about the end
	}
	e.act(Instruction{Kind: Ended, Remote: true, Reason: why})
}

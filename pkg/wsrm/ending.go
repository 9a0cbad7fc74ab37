package wsrm

import "github.com/hhfr/hhfr/internal/window"

// closing lets nothing more be sent.
func (m *machine) closing() error {
	if m.out.phase != phaseOpen {
		return window.Fault(window.Closed)
	}
	m.out.phase = phaseClosing
	m.changed = true
	m.say()
	return nil
}

// lasting is the phase that outlives a crash. Sequences outlive sessions, so one that is closing is
// open again in its next life as long as something is not done: that life may have more to send, or
// close it again.
func (s *source) lasting() phase {
	if s.phase == phaseClosing && s.Done < s.Last {
		return phaseOpen
	}
	return s.phase
}

// ask wants a sign of life. An end whose own sequence has ended has no question left. While it
// waits for the end of the peer's, it repeats its acknowledgement: the peer may be gone, and some
// transports notice that only when there is something to send.
func (m *machine) ask() error {
	switch {
	case m.Over():
		return window.Fault(window.Closed)
	case m.out.phase == phaseEnded:
		m.in.AckAt = m.now
	default:
		m.say()
	}
	return nil
}

// sayEnd goes on with the end of the sequence, as far as an acknowledgement allows.
func (m *machine) sayEnd(a *window.AckPacket) {
	s := &m.out
	switch {
	case s.phase == phaseClosing && s.Done == s.Last && a.Final:
		s.phase = phaseTerminating
		s.reason = Complete
		m.changed = true
		m.say()
	case s.phase == phaseClosing && s.Done == s.Last && s.Packet == a.Echo:
		m.say() // the peer has all, and does not know that it is all
	case s.phase == phaseTerminating && a.Terminated:
		m.end(s.reason)
	}
}

// abort reports what is not done, and ends the sequence: at once, or when the peer knows.
func (m *machine) abort(why Reason) {
	s := &m.out
	if s.phase == phaseEnded {
		return
	}
	if s.phase < phaseTerminating {
		m.report()
		s.Drop(s.phase == phaseClosing)
		s.reason = why
	}
	m.changed = true
	if why != Aborted || !s.spoke {
		m.end(s.reason)
		return
	}
	s.phase = phaseTerminating
	m.say()
}

// report tells of the fate of everything that is not done, in the order of the numbers.
func (m *machine) report() {
	s := &m.out
	if s.Sent > s.Done {
		m.act(Action{Kind: Unknown, Number: s.Done + 1, Count: s.Sent - s.Done})
	}
	if s.Last > s.Sent {
		m.act(Action{Kind: Unsent, Number: s.Sent + 1, Count: s.Last - s.Sent})
	}
}

// end is the end of the source's sequence.
func (m *machine) end(why Reason) {
	m.out.phase = phaseEnded
	m.out.control = false
	m.changed = true
	m.act(Action{Kind: Ended, Reason: why})
}

// endRemote is the end of the peer's sequence.
func (m *machine) endRemote() {
	if !m.in.End() {
		return
	}
	why := Aborted
	if m.in.Complete() {
		why = Complete
	}
	m.act(Action{Kind: Ended, Remote: true, Reason: why})
}

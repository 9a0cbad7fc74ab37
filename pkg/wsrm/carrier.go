package wsrm

// connected begins with a new carrier: nobody knows what the one before still brought, so whatever
// is not done is sent again, after a word on what is done on either side.
func (m *machine) connected() {
	m.abandon(0) // if nobody said that the carrier before is gone
	m.live = true
	m.out.Replay()
	m.in.AckAt = m.now
	if m.out.phase != phaseEnded {
		m.say()
	}
}

// abandon has at-most-once be done with what a carrier left under way: the next packet tells the
// peer so by its floor. What the carrier was never handed, from unsent on, waits for the next one.
func (m *machine) abandon(unsent uint64) {
	s := &m.out
	if m.cfg.Assurance != AtMostOnce || s.Sent == s.Done || s.phase >= phaseTerminating {
		return
	}
	if unsent != 0 {
		s.Unsend(unsent)
	}
	if s.Sent > s.Done {
		m.givenUp += int64(s.Sent - s.Done)
		m.act(Action{Kind: Lost, Number: s.Done + 1, Count: s.Sent - s.Done})
		s.Advance(s.Sent)
		m.act(Action{Kind: Acknowledged, Number: s.Done})
	}
	m.changed = true
}

package machine

// Event is something that happened to a session.
type Event interface{ step(*Machine) }

// Called: a call is about to be sent, and could ask for a stream.
type Called struct{}

func (Called) step(m *Machine) {
	if s, ok := m.state.(freshState); ok {
		m.state = askingState(s)
		m.do(Task{Do: Ask})
	}
}

// Connected: a stream was opened, by an attempt or a call.
type Connected struct{ Stream int }

func (e Connected) step(m *Machine) {
	if m.Phase() == Closed {
		m.do(Task{Do: Drop})
		return
	}
	m.state = streamingState{e.Stream}
	m.do(Task{Do: Use})
}

// Postponed: the stream is to be had by a call, which asks for it.
type Postponed struct{}

func (Postponed) step(m *Machine) {
	if m.Phase() == Dialing {
		m.state = freshState{}
	}
}

// Answered: the call that asked has an answer, or none will come.
type Answered struct {
	// Invited: the answer names a stream.
	Invited bool
	// Refused: there is a reason why no stream comes; else nobody was there to give one.
	Refused bool
	// Passes: that may be another one next time.
	Passes bool
	// Silent: the call has no answer.
	Silent bool
}

func (e Answered) step(m *Machine) {
	s, ok := m.state.(askingState)
	switch {
	case !ok: // the call has opened a stream
	case e.Invited:
		m.state = joiningState{}
		m.do(Task{Do: Join})
	case !e.Refused:
		m.state = freshState(s)
	case e.Passes, e.Silent && m.met && s.unanswered < MaxUnanswered:
		if e.Silent {
			s.unanswered++
		}
		m.state = freshState(s)
		m.do(Task{Do: Explain})
	default:
		m.settle(false)
	}
}

// Refused: there is no stream, for a reason that the peer gave, or for another one.
type Refused struct {
	// Portal: the reason may come from a portal.
	Portal bool
}

func (e Refused) step(m *Machine) {
	switch m.state.(type) {
	case *dialingState: // who dials reports it
		m.state = plainState{e.Portal}
	case joiningState:
		m.settle(e.Portal)
	}
}

// Missed: an attempt to get a stream failed.
type Missed struct {
	// Passes: a later one may succeed.
	Passes bool
	// Portal: the reason may come from a portal.
	Portal bool
	// Forgets: the reason says nothing of later sessions.
	Forgets bool
}

func (e Missed) step(m *Machine) {
	switch s := m.state.(type) {
	case *dialingState: // where no other follows, who dials says Refused
		m.again(&s.attempts, e.Passes && m.cfg.Sequenced)
	case *replacingState:
		if !m.again(&s.attempts, e.Passes) {
			m.fall(e.Portal, !e.Portal && !e.Forgets)
		}
	}
}

// again makes another attempt after one that failed; false: there is none.
func (m *Machine) again(a *attempts, passes bool) bool {
	next, ok := a.missed(&m.cfg, m.now, passes)
	if ok {
		m.do(next)
	}
	return ok
}

// Carried: the stream carried a message, which justifies another one.
type Carried struct{}

func (Carried) step(m *Machine) { m.failed = 0 }

// Lost: a stream takes no more messages.
type Lost struct {
	Stream int
	// Met: its peer had accepted it.
	Met bool
	// Refused: a server answered, with a refusal or with something that is no stream.
	Refused bool
	// Unconnected: nobody was there.
	Unconnected bool
	// Beyond: something was sent that is beyond a limit of the peer.
	Beyond bool
	// Broken: it ended by an error that another stream would have as well.
	Broken bool
	// Declared: a description had led there.
	Declared bool
	// ByCalls: only calls get a stream there.
	ByCalls bool
	// Progress is that of the sequence.
	Progress int64
}

func (e Lost) step(m *Machine) {
	s, ok := m.state.(streamingState)
	if !ok || s.stream != e.Stream {
		return
	}
	advanced := e.Progress > m.progress
	if m.cfg.Sequenced && advanced {
		m.progress, m.failed = e.Progress, 0
	}
	if m.cfg.Asks && !m.cfg.Sequenced && !e.Met {
		m.unmet(e)
		return
	}
	m.met = true
	m.failed++
	again := m.failed <= MaxFailedStreams
	// What is beyond a limit would be sent again.
	useless := m.cfg.Sequenced && !advanced && e.Met && e.Beyond
	switch {
	case again && e.ByCalls && !m.cfg.Sequenced && m.cfg.Reconnect > 0:
		m.state = freshState{}
		m.do(Task{Do: Leave})
	// Where what was remembered of the peer led nowhere, there are other paths.
	case again && !useless && (m.cfg.Reconnect > 0 || e.Unconnected):
		m.replace(!m.cfg.Sequenced || e.Unconnected) // what is in a sequence has no unknown fate
	default:
		m.fall(false, e.Broken)
	}
}

// unmet takes the end of a stream whose peer never accepted it: what was known of the peer is no
// longer valid.
func (m *Machine) unmet(e Lost) {
	m.undeclared = m.undeclared || e.Declared
	m.do(Task{Do: Undo})
	if !m.cfg.Required && (m.cfg.Reconnect == 0 || e.Refused) {
		m.state = freshState{}
		return
	}
	m.replace(true)
}

// replace begins to look for another stream.
func (m *Machine) replace(careful bool) {
	m.state = &replacingState{m.cfg.attempts(m.now)}
	m.do(Task{Do: Replace, Careful: careful})
}

// Ended: the session ends.
type Ended struct{}

func (Ended) step(m *Machine) { m.state = closedState{} }

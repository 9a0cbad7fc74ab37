// Package machine decides how a session of an initiator speaks: whether its next call asks for a
// stream, whether messages go over one, wait for the next, or travel as plain SOAP, and when which
// attempt is made. It has no lock, clock, socket or goroutine: all that happens to a
// session is an [Event] for [Machine.Step], and all that is to be done a [Task] that Step
// returns.
//
// A session is dialed. Then it has a stream, or speaks plain SOAP, or is fresh: the next call asks,
// and the answer to it names a stream, which is joined, or is one. A stream that ends is replaced,
// or its session is fresh again, or speaks plain SOAP from then on.
package machine

import "time"

// Phase is where a session stands: the kind of its state.
type Phase uint8

// The phases.
const (
	// Dialing: no attempt to get a stream has come to an end. It is the first state.
	Dialing Phase = iota
	// Fresh: there is no stream, and the next call asks for one.
	Fresh
	// Asking: a call asks for a stream. Others travel as plain SOAP.
	Asking
	// Joining: the stream that an answer named is being opened. Calls travel as plain SOAP.
	Joining
	// Streaming: there is a stream.
	Streaming
	// Replacing: the stream has ended, and messages wait for the next one.
	Replacing
	// Plain: plain SOAP from now on.
	Plain
	// Closed: nothing is sent any more. It is the last state.
	Closed
)

// What is known in each state.
type (
	dialingState struct{ attempts }
	freshState   struct{ unanswered int } // calls that asked and had no answer, one after another
	askingState  struct{ unanswered int }
	joiningState struct{}
	// streaming has a stream by its number.
	streamingState struct{ stream int }
	replacingState struct{ attempts }
	plainState     struct{ portal bool } // the reason may come from a portal
	closedState    struct{}
)

// Machine is one session. It is not safe for concurrent use.
type Machine struct {
	cfg   Config
	state any // one of those above

	// What stays, whatever the state.
	met        bool  // there was a stream that the peer had accepted
	undeclared bool  // the stream that a description declares led nowhere
	failed     int   // streams in a row that made no progress
	progress   int64 // of the sequence, when the last stream ended

	now   time.Time
	tasks []Task
}

// New makes the machine of a session that is dialed from now on.
func New(cfg Config, now time.Time) *Machine {
	m := &Machine{cfg: cfg}
	m.state = &dialingState{cfg.attempts(now)}
	return m
}

// Phase returns the kind of the state.
func (m *Machine) Phase() Phase {
	switch m.state.(type) {
	case freshState:
		return Fresh
	case askingState:
		return Asking
	case joiningState:
		return Joining
	case streamingState:
		return Streaming
	case *replacingState:
		return Replacing
	case plainState:
		return Plain
	case closedState:
		return Closed
	}
	return Dialing
}

// Undecided reports whether there may be a stream as soon as a call has asked for one.
func (m *Machine) Undecided() bool {
	p := m.Phase()
	return p >= Fresh && p <= Joining
}

// Met reports whether there was a stream before that the peer had accepted.
func (m *Machine) Met() bool { return m.met }

// Undeclared reports whether the stream that a description declares has led nowhere.
func (m *Machine) Undeclared() bool { return m.undeclared }

// Failing reports whether the last stream made no progress: the next one that carries a message is
// an event.
func (m *Machine) Failing() bool { return m.failed > 0 }

// Portal reports whether plain SOAP is spoken for a reason that may come from a portal.
func (m *Machine) Portal() bool {
	p, ok := m.state.(plainState)
	return ok && p.portal
}

// Step takes an event, and returns what is to be done, in this order. The tasks are valid until
// the next step. An event that does not belong to the state, since it comes late or twice, changes
// nothing.
func (m *Machine) Step(now time.Time, e Event) []Task {
	m.now, m.tasks = now, m.tasks[:0]
	e.step(m)
	return m.tasks
}

func (m *Machine) do(a Task) { m.tasks = append(m.tasks, a) }

// settle turns a session to plain SOAP that had no stream for it.
func (m *Machine) settle(portal bool) {
	m.state = plainState{portal}
	m.do(Task{Do: Settle, Remember: true})
}

// fall turns a session to plain SOAP whose stream was lost.
func (m *Machine) fall(portal, remember bool) {
	m.state = plainState{portal}
	if m.cfg.Sequenced {
		m.do(Task{Do: EndSequence})
		return
	}
	m.do(Task{Do: Fall, Remember: remember})
}

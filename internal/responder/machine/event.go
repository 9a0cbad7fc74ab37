package machine

import (
	"slices"
	"time"
)

// Event is something that happened to the sessions of a responder.
type Event interface{ step(*Machine) }

// Negotiated: a peer is about to get a session, which it may join.
type Negotiated struct {
	Session ID
	Peer    string // see accept.Peer; empty: of a peer without a limit
}

func (e Negotiated) step(m *Machine) {
	if p := m.enter(e.Peer); p != nil {
		m.count++
		m.waiting[e.Session] = &waiting{peer: p, until: m.now.Add(m.cfg.JoinWithin), number: m.count}
	}
}

// Recorded: the record of a session that was negotiated is in the store.
type Recorded struct {
	Session  ID
	Revision uint64
}

func (e Recorded) step(m *Machine) {
	switch w := m.waiting[e.Session]; {
	case w != nil:
		w.revision = e.Revision
	case m.joined[e.Session] == nil: // it went for another one meanwhile
		m.do(Task{Do: Forget, Session: e.Session, Revision: e.Revision})
		m.do(Task{Do: TurnAway})
	}
}

// Joined: a stream is about to belong to a session, which may have been negotiated elsewhere, or
// have ended here.
type Joined struct {
	Session ID
	Peer    string
}

func (e Joined) step(m *Machine) {
	w, j := m.waiting[e.Session], m.joined[e.Session]
	switch {
	case w != nil:
		delete(m.waiting, e.Session)
		j = &joined{peer: w.peer}
	case j == nil:
		p := m.enter(e.Peer)
		if p == nil {
			return
		}
		j = &joined{peer: p}
	}
	j.streams++
	m.joined[e.Session] = j
	if i := slices.IndexFunc(m.ended, func(o ended) bool { return o.id == e.Session }); i >= 0 {
		m.weight -= m.ended[i].weight
		m.ended = slices.Delete(m.ended, i, i+1)
	}
}

// Lasting: the record of a joined session lasts for its lifetime from now on.
type Lasting struct {
	Session  ID
	Lifetime time.Duration
}

func (e Lasting) step(m *Machine) {
	if j := m.joined[e.Session]; j != nil {
		j.lifetime, j.due = e.Lifetime, m.now.Add(e.Lifetime/2)
		m.wakeBy(j.due)
	}
}

// Woken: a task wanted that.
type Woken struct{}

// step extends the records that are due. Those that will be due soon are among them, lest all are
// looked at for each.
func (Woken) step(m *Machine) {
	m.next = time.Time{}
	next := time.Time{}
	for id, j := range m.joined {
		if j.due.IsZero() {
			continue
		}
		if !j.due.After(m.now.Add(j.lifetime / 8)) {
			j.due = m.now.Add(j.lifetime / 2)
			m.do(Task{Do: Extend, Session: id, Lifetime: j.lifetime})
		}
		if next.IsZero() || j.due.Before(next) {
			next = j.due
		}
	}
	if !next.IsZero() {
		m.wakeBy(next)
	}
}

// Withdrawn: a session was not stored, or its peer got no answer.
type Withdrawn struct{ Session ID }

func (e Withdrawn) step(m *Machine) { m.part(e.Session) }

// Left: a stream of a session has ended, or will not come. After the last of them its record stays,
// for a peer that joins the session again and for reading what was recorded.
type Left struct {
	Session ID
	Weight  int // of the record
}

func (e Left) step(m *Machine) {
	if !m.part(e.Session) || m.cfg.Kept == 0 {
		return
	}
	m.ended = append(m.ended, ended{e.Session, e.Weight})
	m.weight += e.Weight
	for len(m.ended) > 1 && m.weight > m.cfg.Kept {
		m.do(Task{Do: Forget, Session: m.ended[0].id})
		m.weight -= m.ended[0].weight
		m.ended = m.ended[1:]
	}
}

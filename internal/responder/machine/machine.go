// Package machine decides which sessions a responder has: who gets one, which of those that nobody
// has joined go for others, when the record of one is extended, and which records of ended ones
// stay. It has no lock, clock, socket, store or goroutine: all that happens is an [Event] for
// [Machine.Step], and all that is to be done a [Task] that Step returns.
//
// A session is negotiated and waits, is joined by streams, and has ended after the last of them. It
// may be joined by its token alone, too, whoever negotiated it, and again after its end.
package machine

import (
	"time"

	"github.com/hhfr/hhfr/internal/accept"
)

// ID is the name of a session.
type ID [16]byte

// Config is what a responder may have. It does not change.
type Config struct {
	// Max is how many sessions there may be, waiting or joined, and PerPeer how many of one peer,
	// at least 1.
	Max, PerPeer int
	// JoinWithin is how long a session waits at least to be joined.
	JoinWithin time.Duration
	// Kept is the maximum weight of the records of ended sessions; 0: they are not counted.
	Kept int
}

// What is known of a session in each state.
type (
	// waiting: nobody has joined it.
	waiting struct {
		peer     *peer
		until    time.Time // after that it goes for any other
		number   int64     // in the order of negotiation
		revision uint64    // of its record; 0: it has none yet
	}
	// joined: it has streams. Once its record lasts, that is due to be extended.
	joined struct {
		peer     *peer
		streams  int
		lifetime time.Duration
		due      time.Time
	}
	// ended: it had some.
	ended struct {
		id     ID
		weight int
	}
)

// peer is who sessions count for, with their number.
type peer struct {
	name     string // empty: of a peer without a limit
	sessions int
}

// Machine are the sessions of one responder. It is not safe for concurrent use.
type Machine struct {
	cfg     Config
	waiting map[ID]*waiting
	joined  map[ID]*joined
	ended   []ended // oldest first
	peers   map[string]*peer

	count  int64     // sessions that were negotiated
	weight int       // of those that have ended
	next   time.Time // no record is due before; zero: none is

	now   time.Time
	tasks []Task
}

// New makes the machine of a responder without sessions.
func New(cfg Config) *Machine {
	return &Machine{cfg: cfg, waiting: map[ID]*waiting{}, joined: map[ID]*joined{}, peers: map[string]*peer{}}
}

// len is how many sessions there are, waiting or joined.
func (m *Machine) len() int { return len(m.waiting) + len(m.joined) }

// Step takes an event, and returns what is to be done, in this order. The tasks are valid until
// the next step. An event about a session that is not there, since it comes late or twice, changes
// nothing.
func (m *Machine) Step(now time.Time, e Event) []Task {
	m.now, m.tasks = now, m.tasks[:0]
	e.step(m)
	return m.tasks
}

func (m *Machine) do(t Task) { m.tasks = append(m.tasks, t) }

// enter counts a session for a peer, and has others go for it; nil: there is no slot.
func (m *Machine) enter(name string) *peer {
	if !m.makeRoom(name) {
		m.do(Task{Do: TurnAway})
		return nil
	}
	p := m.peers[name]
	if p == nil {
		p = &peer{name: name}
		m.peers[name] = p
	}
	p.sessions++
	return p
}

// makeRoom has sessions that wait go for one of a peer: those that have waited for too long, then
// those of the peer that has most of them.
func (m *Machine) makeRoom(name string) bool {
	if p := m.peers[name]; m.len() < m.cfg.Max && (name == "" || p == nil || p.sessions < m.cfg.PerPeer) {
		return true
	}
	all := make([]accept.Thing[ID], 0, m.len())
	for id, w := range m.waiting {
		if m.now.After(w.until) {
			m.drop(id, w)
			continue
		}
		all = append(all, accept.Thing[ID]{Key: id, Peer: w.peer.name, Spare: true, Rank: w.number})
	}
	for id, j := range m.joined {
		all = append(all, accept.Thing[ID]{Key: id, Peer: j.peer.name})
	}
	gone, full := accept.MakeRoom(name, m.cfg.Max, m.cfg.PerPeer, all)
	for _, id := range gone {
		m.drop(id, m.waiting[id])
	}
	return !full
}

// drop has a session that waits go, with its record if there is one.
func (m *Machine) drop(id ID, w *waiting) {
	if w.revision != 0 {
		m.do(Task{Do: Forget, Session: id, Revision: w.revision})
	}
	delete(m.waiting, id)
	m.leave(w.peer)
}

// part records that a stream of a session has ended, or that there will be none; last: there is no
// other.
func (m *Machine) part(id ID) (last bool) {
	if w := m.waiting[id]; w != nil {
		delete(m.waiting, id)
		m.leave(w.peer)
		return true
	}
	j := m.joined[id]
	if j == nil {
		return false
	}
	if j.streams--; j.streams > 0 {
		return false
	}
	delete(m.joined, id)
	m.leave(j.peer)
	return true
}

// leave counts a session no longer.
func (m *Machine) leave(p *peer) {
	if p.sessions--; p.sessions == 0 {
		delete(m.peers, p.name)
	}
}

// wakeBy has the machine woken when a record is due, unless it is woken before.
func (m *Machine) wakeBy(due time.Time) {
	if m.next.IsZero() || due.Before(m.next) {
		m.next = due
		m.do(Task{Do: Wake, At: due})
	}
}

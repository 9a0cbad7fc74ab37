package responder

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// registry holds the sessions of a responder. Those that were negotiated and not joined are dropped
// for others when the limit is reached: first one of the same peer, then one of the peer that has
// most of them, the oldest first.
type registry struct {
	max, perPeer int
	joinWithin   time.Duration
	clock        clock.Clock

	mu       sync.Mutex
	sessions map[negotiate.SessionID]*registered
	peers    map[string]*registeredPeer
	count    uint64    // number of sessions ever registered
	next     time.Time // no session is due before; zero: none is
}

// registeredPeer is a peer with the number of its sessions.
type registeredPeer struct {
	name     string // see accept.Peer; empty: of a peer without a limit
	sessions int
}

type registered struct {
	peer    *registeredPeer
	streams int // number of streams; 0: not joined

	// Not joined, it waits: until then, with its rank in the order of registration, and the
	// revision of its context; 0: not stored yet. Joined, its context is to be kept for another
	// lifetime then; zero: it is not.
	until    time.Time
	number   uint64
	revision uint64
	lifetime time.Duration
}

// dropped is a session that was dropped for another, with the revision of its context; 0 if that
// was not stored.
type dropped struct {
	id       negotiate.SessionID
	revision uint64
}

func newRegistry(cfg *Config) *registry {
	return &registry{
		max: cfg.MaxSessions, perPeer: cfg.MaxPerPeer, joinWithin: cfg.JoinWithin, clock: cfg.Clock,
		sessions: map[negotiate.SessionID]*registered{}, peers: map[string]*registeredPeer{},
	}
}

// add registers a session that waits to be joined; false: there is no slot.
func (g *registry) add(id negotiate.SessionID, peer string) (gone []dropped, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addLocked(id, peer, registered{until: g.clock.Now().Add(g.joinWithin)})
}

func (g *registry) addLocked(id negotiate.SessionID, peer string, s registered) (gone []dropped, ok bool) {
	for {
		p := g.peers[peer]
		peerFull := peer != "" && p != nil && p.sessions >= g.perPeer
		if !peerFull && len(g.sessions) < g.max {
			if p == nil {
				p = &registeredPeer{name: peer}
				g.peers[peer] = p
			}
			p.sessions++
			g.count++
			s.peer, s.number = p, g.count
			g.sessions[id] = &s
			return gone, true
		}
		victim, found := g.victim(peer, peerFull)
		if !found {
			return gone, false
		}
		gone = append(gone, dropped{victim, g.sessions[victim].revision})
		g.removeLocked(victim)
	}
}

// victim finds the waiting session to drop: one that has expired; else the oldest of the peer that
// has most of them. With ofPeer, it is one of that peer.
func (g *registry) victim(peer string, ofPeer bool) (id negotiate.SessionID, found bool) {
	now := g.clock.Now()
	oldest, waiting := map[string]negotiate.SessionID{}, map[string]int{}
	for id, s := range g.sessions {
		if s.streams > 0 || ofPeer && s.peer.name != peer {
			continue
		}
		if now.After(s.until) {
			return id, true
		}
		waiting[s.peer.name]++
		if o, ok := oldest[s.peer.name]; !ok || s.number < g.sessions[o].number {
			oldest[s.peer.name] = id
		}
	}
	for peer, candidate := range oldest {
		most := g.sessions[id]
		if most == nil || waiting[peer] > waiting[most.peer.name] ||
			waiting[peer] == waiting[most.peer.name] && g.sessions[candidate].number < most.number {
			id, found = candidate, true
		}
	}
	return id, found
}

// stored records the revision of a session's context; false: the session was dropped meanwhile.
func (g *registry) stored(id negotiate.SessionID, revision uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[id]
	if s != nil {
		s.revision = revision
	}
	return s != nil
}

// join records that a session is joined. The session may have been negotiated by another process on
// the same store; false: then there is no slot for it.
func (g *registry) join(id negotiate.SessionID, peer string) (gone []dropped, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[id]; s != nil {
		if s.streams++; s.streams == 1 {
			s.until = time.Time{} // it waited
		}
		return nil, true
	}
	return g.addLocked(id, peer, registered{streams: 1})
}

// last records that a joined session was kept for its lifetime just now, and is to be kept again
// halfway. sooner: that is before any other is due.
func (g *registry) last(id negotiate.SessionID, lifetime time.Duration) (sooner bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.sessions[id]
	if s == nil {
		return false
	}
	s.lifetime, s.until = lifetime, g.clock.Now().Add(lifetime/2)
	if sooner = g.next.IsZero() || s.until.Before(g.next); sooner {
		g.next = s.until
	}
	return sooner
}

// nextDue is when the next session is due, unless that has ended by then; zero: none is.
func (g *registry) nextDue() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next
}

// due returns the sessions that are to be kept for another lifetime. Those that will be due soon
// are among them, lest all are looked at for each.
func (g *registry) due() map[negotiate.SessionID]time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, due := g.clock.Now(), map[negotiate.SessionID]time.Duration{}
	g.next = time.Time{}
	for id, s := range g.sessions {
		if s.streams == 0 || s.until.IsZero() {
			continue
		}
		if !s.until.After(now.Add(s.lifetime / 8)) {
			due[id] = s.lifetime
			s.until = now.Add(s.lifetime / 2)
		}
		if g.next.IsZero() || s.until.Before(g.next) {
			g.next = s.until
		}
	}
	return due
}

// remove records that a stream of a session has ended, or that there will be none; gone: the
// session has no other.
func (g *registry) remove(id negotiate.SessionID) (gone bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.sessions[id]; s != nil && s.streams > 1 {
		s.streams--
		return false
	}
	g.removeLocked(id)
	return true
}

func (g *registry) removeLocked(id negotiate.SessionID) {
	s := g.sessions[id]
	if s == nil {
		return
	}
	delete(g.sessions, id)
	if s.peer.sessions--; s.peer.sessions == 0 {
		delete(g.peers, s.peer.name)
	}
}

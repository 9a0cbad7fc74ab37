package proxy

import (
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

// plainWay forwards requests to a server without a stream.
type plainWay struct {
	*server
	mayRefer   bool // a partner there may be asked for references
	references plainSession
}

// close ends its session.
func (u *plainWay) close() { u.references.close() }

// observed returns what counts the calls of a connection that is forwarded without a stream; why is
// the reason in a word.
func (u *plainWay) observed(why string, in *sock.Source) *observer {
	count := u.near.Plain(why)
	count.Connection()
	begun := func(now time.Time) { u.hasNoPartner(why, now) }
	return &observer{count: count, clock: u.p.cfg.Clock, from: in.Conn.RemoteAddr(), begun: begun}
}

// plainSession is the session by which requests that go plainly to an upstream have references.
type plainSession struct {
	mu      sync.Mutex
	session *session.Session // nil: there is none
	asked   time.Time
}

// close ends the session.
func (s *plainSession) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session != nil {
		_ = s.session.Close()
		s.session = nil
	}
}

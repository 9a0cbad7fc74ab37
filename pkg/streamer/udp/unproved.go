package udp

import (
	"bytes"
	"fmt"
	"io"
	"net"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/clock"
)

// unproved is what holds for a session that an early datagram has opened, until an open or data
// datagram with its id shows that the address receives: no more than three times what came from
// there goes there. The rest waits.
type unproved struct {
	budget int      // bytes that may still be sent
	unsent [][]byte // datagrams
	late   clock.Timer
}

// send sends a datagram, or keeps it until it may be sent. The caller has mu.
func (c *conn) send(b []byte) {
	if u := c.unproved; u != nil {
		if len(b) > u.budget {
			if len(u.unsent) < maxUnsent { // what is beyond is as good as lost
				u.unsent = append(u.unsent, bytes.Clone(b))
			}
			return
		}
		u.budget -= len(b)
	}
	c.write(b, c.remote)
}

// credit notes that so many bytes came from the peer's address. The caller has mu.
func (c *conn) credit(n int) {
	u := c.unproved
	if u == nil {
		return
	}
	u.budget += 3 * n
	for len(u.unsent) > 0 && len(u.unsent[0]) <= u.budget {
		u.budget -= len(u.unsent[0])
		c.write(u.unsent[0], c.remote)
		u.unsent = u.unsent[1:]
	}
}

// prove notes that somebody at an address knows the session id. The caller has mu.
func (c *conn) prove(at net.Addr) {
	u := c.unproved
	if u == nil || !same(at, c.remote) {
		return
	}
	c.unproved = nil
	u.late.Stop()
	c.proven()
	for _, b := range u.unsent {
		c.write(b, c.remote)
	}
}

// disprove gives up a connection whose peer's address has not shown in time that it receives.
func (c *conn) disprove() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unproved != nil {
		c.fail(errUnproved)
	}
}

var errUnproved = fmt.Errorf("the peer's address has not shown that it receives: %w", io.ErrUnexpectedEOF)

// tally counts by peer.
type tally struct {
	all int
	of  map[string]int
}

func newTally() tally { return tally{of: map[string]int{}} }

func (t *tally) add(peer string) {
	t.all++
	t.of[peer]++
}

func (t *tally) drop(peer string) {
	t.all--
	if t.of[peer]--; t.of[peer] == 0 {
		delete(t.of, peer)
	}
}

// takeEarly takes in an early datagram. Where there is no session and no capacity to spare for one,
// it is an ask.
func (l *listener) takeEarly(g datagram.Datagram, from net.Addr) {
	var p window.Packet
	if g.Nonce == 0 || p.Parse(g.Packet) != nil || len(p.Units) == 0 {
		return
	}
	l.mu.Lock()
	l.rotLocked()
	id := l.nameLocked(from, g.Nonce)
	c := l.sessions[id]
	_, ended := l.tombs[id]
	if c == nil && !ended && l.sparesLocked(accept.Peer(from.String())) {
		c = l.openEarlyLocked(id, g.Nonce, from)
	}
	closed := l.closed
	l.mu.Unlock()
	switch {
	case c != nil:
		c.receive(g, from)
	case ended:
		l.refuse(datagram.Append(nil, datagram.Answer, g.Nonce, id), g, from)
	case !closed:
		l.say(from, datagram.Answer, g.Nonce, id)
	}
}

// nameLocked is the id of the session that an address opens with a nonce: also when the period of
// its cookie ended since it was opened.
func (l *listener) nameLocked(from net.Addr, nonce uint64) uint64 {
	before := l.cookie(lastPeriod, datagram.Answer, from, nonce)
	_, ended := l.tombs[before]
	if ended || l.sessions[before] != nil {
		return before
	}
	return l.cookie(thisPeriod, datagram.Answer, from, nonce)
}

// sparesLocked reports whether there is capacity for a session of a peer whose address may be made
// up, and enough beside it for those who show that theirs are not.
func (l *listener) sparesLocked(peer string) bool {
	return !l.closed && len(l.sessions) < maxSessions/2 && len(l.tombs) < maxTombs/2 && len(l.waiting) < backlog/2 &&
		l.silentLocked(maxHalfOpen/2) < maxHalfOpen/2 && l.early.all < maxEarly && l.early.of[peer] < peerEarly &&
		l.graves.of[peer] < peerTombs
}

// openEarlyLocked opens a session for an address that has not shown that it receives; nil if that
// cannot be.
func (l *listener) openEarlyLocked(id, nonce uint64, from net.Addr) *conn {
	c := l.openLocked(datagram.Answer, id, nonce, from)
	if c == nil {
		return nil
	}
	c.unproved = &unproved{late: l.cfg.Clock.AfterFunc(earlyLife, c.disprove)}
	c.proven = func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.early.drop(c.peer)
		l.halfOpen = append(l.halfOpen, c) // whatever it has said: that is looked at when there are many
	}
	l.early.add(c.peer)
	return c
}

package udp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/internal/arq"
	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
)

// Listen waits for connections at a socket, which is the listener's, and that of its connections,
// from then on.
func Listen(socket net.PacketConn, cfg Config) (net.Listener, error) {
	cfg = cfg.withDefaults()
	if _, err := arq.New(cfg.sequences(0)); err != nil {
		_ = socket.Close()
		return nil, err
	}
	l := &listener{socket: socket, cfg: cfg, sessions: map[uint64]*conn{}, tombs: map[uint64]struct{}{},
		graves: newTally(), early: newTally(), arrived: make(chan struct{}, 1), done: make(chan struct{})}
	l.shut = sync.OnceFunc(func() { _ = socket.Close() })
	_, _ = rand.Read(l.secret[:]) // never fails
	l.wait.Go(l.read)
	return l, nil
}

type listener struct {
	socket  net.PacketConn
	cfg     Config
	secret  [32]byte
	arrived chan struct{} // holds one when somebody waits to be accepted
	done    chan struct{} // closed by Close
	shut    func()        // closes the socket
	wait    sync.WaitGroup
	usage   usage

	mu       sync.Mutex
	closed   bool
	sessions map[uint64]*conn
	waiting  []*conn // to be accepted
	halfOpen []*conn // those of which nothing came when it was last looked at, oldest first
	tombs    map[uint64]struct{}
	buried   []tomb // those of tombs, oldest first
	graves   tally
	early    tally // those of sessions and buried whose address never showed that it receives
}

// tomb is an ended session, and until when its opening could come again.
type tomb struct {
	id    uint64
	until time.Time
	peer  string
	early bool // it counts as one that an early datagram opened
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	for {
		select {
		case <-l.done:
			return nil, &net.OpError{Op: "accept", Net: "udp", Addr: l.socket.LocalAddr(), Err: net.ErrClosed}
		default:
		}
		if c := l.next(); c != nil {
			return c, nil
		}
		select {
		case <-l.arrived:
		case <-l.done:
		}
	}
}

// next takes the connection that waits longest, nil if there is none.
func (l *listener) next() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil
	}
	c := l.waiting[0]
	l.waiting = slices.Delete(l.waiting, 0, 1)
	if len(l.waiting) > 0 {
		l.wakeLocked()
	}
	return c
}

// wakeLocked tells one that waits in Accept.
func (l *listener) wakeLocked() {
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Close implements [net.Listener]. Connections that were accepted go on; the socket is closed
// behind the last of them.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &net.OpError{Op: "close", Net: "udp", Addr: l.socket.LocalAddr(), Err: net.ErrClosed}
	}
	l.closed = true
	close(l.done)
	nobodys := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, c := range nobodys {
		c.drop()
	}
	l.release(0)
	return nil
}

// release forgets a session, and closes the socket if it was the last.
func (l *listener) release(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.sessions[id]; ok {
		delete(l.sessions, id)
		l.tombs[id] = struct{}{}
		l.buried = append(l.buried, tomb{id, l.cfg.Clock.Now().Add(tombLife), c.peer, c.unproved != nil})
		l.graves.add(c.peer)
		l.waiting = slices.DeleteFunc(l.waiting, func(w *conn) bool { return w == c })
	}
	if l.closed && len(l.sessions) == 0 {
		l.shut()
	}
}

// read takes datagrams to where they belong, until the socket is closed.
func (l *listener) read() {
	readFrom(l.socket, func(error) {}, l.take)
}

// readFrom reads datagrams, until the socket is closed, or fails too often in a row.
func readFrom(socket net.PacketConn, failed func(error), take func(datagram.Datagram, net.Addr)) {
	buf := make([]byte, 65536)
	for broken := 0; broken < maxBroken; {
		n, from, err := socket.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			broken++
			failed(err)
			continue
		}
		broken = 0
		if g, ok := datagram.Parse(buf[:n]); ok {
			take(g, from)
		}
	}
}

func (l *listener) take(g datagram.Datagram, from net.Addr) {
	switch g.Kind {
	case datagram.Ask:
		l.mu.Lock()
		closed, id := l.closed, l.nameLocked(from, g.Nonce)
		l.mu.Unlock()
		if !closed && g.Nonce != 0 { // which no honest ask has
			l.say(from, datagram.Answer, g.Nonce, id)
		}
	case datagram.Early:
		l.takeEarly(g, from)
	case datagram.Open, datagram.Data:
		c, instead := l.session(g, from)
		if instead != nil {
			instead.drop()
		}
		if c != nil && c.receive(g, from) {
			// 17 bytes, for a datagram of 14 at least: less than three times as many.
			l.say(from, datagram.Challenge, c.id, l.cookie(thisPeriod, datagram.Challenge, from, c.id))
		}
	case datagram.Proof:
		l.mu.Lock()
		c := l.sessions[g.Session]
		l.mu.Unlock()
		if c != nil && l.made(g.Nonce, datagram.Challenge, from, g.Session) {
			c.move(from)
		}
	case datagram.Answer, datagram.Challenge:
	}
}

// say sends a datagram of numbers alone.
func (l *listener) say(to net.Addr, k datagram.Kind, numbers ...uint64) {
	_, _ = l.socket.WriteTo(datagram.Append(nil, k, numbers...), to) // what is not sent is as good as lost
}

// session finds or opens that of a datagram, and names one that is to be dropped instead.
func (l *listener) session(g datagram.Datagram, from net.Addr) (c, instead *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.sessions[g.Session]; ok {
		return c, nil
	}
	l.rotLocked()
	_, ended := l.tombs[g.Session]
	valid := g.Kind == datagram.Open && l.made(g.Session, datagram.Answer, from, g.Nonce)
	if ended || !valid || l.closed || len(l.sessions) >= maxSessions || len(l.tombs) >= maxTombs {
		if ended || !valid {
			// An answer may have been too old when it was used, or come from a process before this
			// one: a peer that asks again gets another.
			l.refuse(datagram.Append(nil, datagram.Data, g.Session), g, from)
		}
		return nil, nil
	}
	if l.graves.of[accept.Peer(from.String())] >= peerTombs {
		return nil, nil // it has opened and ended more than anybody needs to
	}
	if instead, ok := l.roomLocked(); !ok {
		return nil, nil // asked again when there is room
	} else if c = l.openLocked(datagram.Data, g.Session, g.Nonce, from); c == nil {
		return nil, nil
	} else {
		l.halfOpen = append(l.halfOpen, c)
		return c, instead
	}
}

// openLocked opens a session whose packets go in datagrams of a form at first; nil if that cannot
// be.
func (l *listener) openLocked(form datagram.Kind, id, nonce uint64, from net.Addr) *conn {
	cfg := l.cfg
	cfg.Unanswered += cfg.Inactivity / 3 // see there
	c, err := newConn(cfg, from, form, id, nonce, 0)
	if err != nil {
		return nil
	}
	c.local, c.usage, c.peer = l.socket.LocalAddr(), &l.usage, accept.Peer(from.String())
	c.write = func(b []byte, to net.Addr) { _, _ = l.socket.WriteTo(b, to) } // what is not sent is as good as lost
	c.gone = func() { l.release(c.id) }
	l.sessions[c.id] = c
	l.waiting = append(l.waiting, c)
	l.wakeLocked()
	return c
}

// roomLocked reports whether one more connection can be opened, and which one is to be dropped for
// it: the oldest of which nothing came. Others are never dropped.
func (l *listener) roomLocked() (instead *conn, ok bool) {
	switch {
	case len(l.waiting) >= backlog:
		i := slices.IndexFunc(l.waiting, func(c *conn) bool { return c.fresh.Load() })
		if i < 0 {
			return nil, false
		}
		instead = l.waiting[i]
	case l.silentLocked(maxHalfOpen) >= maxHalfOpen:
		instead = l.halfOpen[0]
	default:
		return nil, true
	}
	same := func(c *conn) bool { return c == instead }
	l.halfOpen, l.waiting = slices.DeleteFunc(l.halfOpen, same), slices.DeleteFunc(l.waiting, same)
	return instead, true
}

// silentLocked is of how many sessions nothing came yet, if there may be so many; else at least as
// many.
func (l *listener) silentLocked(many int) int {
	if len(l.halfOpen) >= many {
		l.halfOpen = slices.DeleteFunc(l.halfOpen, func(c *conn) bool { return !c.fresh.Load() })
	}
	return len(l.halfOpen)
}

// rotLocked forgets ended sessions that nothing could open any more.
func (l *listener) rotLocked() {
	at := l.cfg.Clock.Now()
	n := 0
	for n < len(l.buried) && at.After(l.buried[n].until) {
		delete(l.tombs, l.buried[n].id)
		l.graves.drop(l.buried[n].peer)
		if l.buried[n].early {
			l.early.drop(l.buried[n].peer)
		}
		n++
	}
	l.buried = slices.Delete(l.buried, 0, n)
}

// refuse tells, after a header, that there is no such session, in at most three times the bytes
// that came, and to nobody that only says so himself: no two ends can keep each other busy.
func (l *listener) refuse(header []byte, g datagram.Datagram, from net.Addr) {
	var p window.Packet
	if p.Parse(g.Packet) != nil || p.Number == 0 {
		return
	}
	if b := unknown(header); len(b) <= 3*(datagram.DataHeader+len(g.Packet)) {
		_, _ = l.socket.WriteTo(b, from)
	}
}

// thisPeriod and lastPeriod are those of cookies.
const thisPeriod, lastPeriod = 0, -1

// cookie is what only who receives at an address can know: a session id, made of his nonce for an
// answer; a token, made of the session id for a challenge.
func (l *listener) cookie(period int64, k datagram.Kind, from net.Addr, number uint64) uint64 {
	mac := hmac.New(sha256.New, l.secret[:])
	var b [17]byte
	binary.BigEndian.PutUint64(b[:], uint64(l.cfg.Clock.Now().UnixNano()/int64(cookieLife)+period))
	binary.BigEndian.PutUint64(b[8:], number)
	b[16] = byte(k)
	mac.Write(b[:])
	mac.Write([]byte(from.String()))
	return binary.BigEndian.Uint64(mac.Sum(nil))
}

// made reports whether a cookie was made here not long ago.
func (l *listener) made(cookie uint64, k datagram.Kind, from net.Addr, number uint64) bool {
	return cookie == l.cookie(thisPeriod, k, from, number) || cookie == l.cookie(lastPeriod, k, from, number)
}

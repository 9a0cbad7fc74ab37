package udp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Listen waits for connections at a socket, which is the listener's, and that of its connections, from then on.
func Listen(socket net.PacketConn, cfg Config) (net.Listener, error) {
	cfg = cfg.withDefaults()
	if _, err := wsrm.New(cfg.sequences(0)); err != nil {
		_ = socket.Close()
		return nil, err
	}
	l := &listener{socket: socket, cfg: cfg, sessions: map[uint64]*conn{}, tombs: map[uint64]time.Time{}, accept: make(chan *conn, backlog), done: make(chan struct{})}
	_, _ = rand.Read(l.secret[:]) // never fails
	l.wait.Go(l.read)
	return l, nil
}

type listener struct {
	socket net.PacketConn
	cfg    Config
	secret [32]byte
	accept chan *conn
	done   chan struct{} // closed by Close
	wait   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions map[uint64]*conn
	tombs    map[uint64]time.Time // ended sessions, and until when they are remembered
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
	default:
		select {
		case c := <-l.accept:
			return c, nil
		case <-l.done:
		}
	}
	return nil, &net.OpError{Op: "accept", Net: "udp", Addr: l.socket.LocalAddr(), Err: net.ErrClosed}
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return l.socket.LocalAddr() }

// Close implements [net.Listener]. Connections that were accepted go on; the socket is closed behind the last of them.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &net.OpError{Op: "close", Net: "udp", Addr: l.socket.LocalAddr(), Err: net.ErrClosed}
	}
	l.closed = true
	close(l.done)
	l.mu.Unlock()
	for {
		select {
		case c := <-l.accept: // nobody will take it
			c.mu.Lock()
			c.leave()
			c.mu.Unlock()
			continue
		default:
		}
		break
	}
	l.release(0)
	return nil
}

// release forgets a session, and closes the socket if it was the last.
func (l *listener) release(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.sessions[id]; ok {
		delete(l.sessions, id)
		l.tombs[id] = l.cfg.Clock.Now().Add(tombLife)
	}
	if l.closed && len(l.sessions) == 0 {
		_ = l.socket.Close()
	}
}

// read takes datagrams to where they belong, until the socket is closed.
func (l *listener) read() {
	buf := make([]byte, 65536)
	for broken := 0; broken < maxBroken; {
		n, from, err := l.socket.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			broken++
			continue
		}
		broken = 0
		if g, ok := Parse(buf[:n]); ok {
			l.take(g, from)
		}
	}
}

func (l *listener) take(g Datagram, from net.Addr) {
	switch g.Kind {
	case Ask:
		l.mu.Lock()
		closed := l.closed
		l.mu.Unlock()
		if !closed {
			_, _ = l.socket.WriteTo(appendNumbers(nil, Answer, g.Nonce, l.cookie(0, from, g.Nonce)), from)
		}
	case Open, Data:
		if c := l.session(g, from); c != nil && c.remote.String() == from.String() {
			c.receive(g.Packet)
		}
	case Answer:
	}
}

// session finds or opens that of a datagram.
func (l *listener) session(g Datagram, from net.Addr) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.sessions[g.Session]; ok {
		return c
	}
	now := l.cfg.Clock.Now()
	for id, until := range l.tombs {
		if now.After(until) {
			delete(l.tombs, id)
		}
	}
	_, ended := l.tombs[g.Session]
	valid := g.Kind == Open && (g.Session == l.cookie(0, from, g.Nonce) || g.Session == l.cookie(-1, from, g.Nonce))
	if ended || !valid || l.closed || len(l.sessions) >= maxSessions || len(l.tombs) >= maxSessions {
		if ended || g.Kind == Data {
			l.refuse(g, from)
		}
		return nil
	}
	c, err := newConn(l.cfg, g.Session, 0, 0)
	if err != nil {
		return nil
	}
	c.local, c.remote = l.socket.LocalAddr(), from
	c.write = func(b []byte) { _, _ = l.socket.WriteTo(b, from) } // what is not sent is as good as lost
	c.gone = func() { l.release(c.id) }
	select {
	case l.accept <- c:
		l.sessions[g.Session] = c
		return c
	default:
		return nil // asked again when there is room
	}
}

// refuse tells that there is no such session, in no more octets than were sent, and to nobody that only says so himself: no two ends can keep each other busy.
func (l *listener) refuse(g Datagram, from net.Addr) {
	var p wsrm.Packet
	if Codec.Parse(g.Packet, &p) != nil || p.Number == 0 {
		return
	}
	if b := unknown(appendNumbers(nil, Data, g.Session)); len(b) <= 3*(dataHeader+len(g.Packet)) {
		_, _ = l.socket.WriteTo(b, from)
	}
}

// cookie is the session id that an address with a nonce can open, in the period of now, or the one before (-1).
func (l *listener) cookie(period int64, from net.Addr, nonce uint64) uint64 {
	mac := hmac.New(sha256.New, l.secret[:])
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(l.cfg.Clock.Now().UnixNano()/int64(cookieLife)+period))
	binary.BigEndian.PutUint64(b[8:], nonce)
	mac.Write(b[:])
	mac.Write([]byte(from.String()))
	return binary.BigEndian.Uint64(mac.Sum(nil))
}

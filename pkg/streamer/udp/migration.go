package udp

import (
	"errors"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// roaming is a socket that speaks to one peer: nobody else is heard, and that nobody listens
// there is learned. When this machine changes networks, and can send nothing from the address that
// the socket has, it goes on with another socket, at the address that the machine then has.
type roaming struct {
	dial func() (net.Conn, error)

	mu     sync.Mutex
	conn   net.Conn
	closed bool
	tried  time.Time // when another socket was wanted last
}

// roamAgain is how long the next attempt waits that follows one for nothing: there may be no
// network for a while.
const roamAgain = time.Second

func (r *roaming) current() net.Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn
}

// WriteTo implements [net.PacketConn]; there is only one address.
func (r *roaming) WriteTo(b []byte, _ net.Addr) (int, error) {
	c := r.current()
	n, err := c.Write(b)
	if err == nil || !r.replace(c, err) {
		return n, err
	}
	return r.current().Write(b)
}

// otherwise are reasons for which another socket is no help: nobody listens there, the datagram is
// too long, sending is forbidden, or too much waits to be sent.
var otherwise = []error{syscall.ECONNREFUSED, syscall.EMSGSIZE, syscall.EPERM, syscall.EACCES, syscall.ENOBUFS,
	syscall.ENOMEM, syscall.EAGAIN}

// replace takes another socket instead of one that cannot send any more; false: it stays. Another
// goroutine may have done so before.
func (r *roaming) replace(broken net.Conn, why error) bool {
	if slices.ContainsFunc(otherwise, func(e error) bool { return errors.Is(why, e) }) ||
		errors.Is(why, net.ErrClosed) && !r.left(broken) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	if r.conn != broken {
		return true
	}
	if time.Since(r.tried) < roamAgain {
		return false
	}
	r.tried = time.Now()
	c, err := r.dial()
	if err != nil {
		return false
	}
	_ = r.conn.Close() // a caller that reads there goes on here
	r.conn = c
	return true
}

// left reports whether a socket is no longer the one in use.
func (r *roaming) left(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.conn != c
}

// ReadFrom implements [net.PacketConn].
func (r *roaming) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		c := r.current()
		n, err := c.Read(p)
		if err != nil && r.left(c) {
			continue
		}
		return n, c.RemoteAddr(), err
	}
}

// Close implements [net.PacketConn].
func (r *roaming) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	return r.conn.Close()
}

// LocalAddr implements [net.PacketConn].
func (r *roaming) LocalAddr() net.Addr { return r.current().LocalAddr() }

// SetDeadline implements [net.PacketConn], for the socket in use.
func (r *roaming) SetDeadline(t time.Time) error { return r.current().SetDeadline(t) }

// SetReadDeadline implements [net.PacketConn], likewise.
func (r *roaming) SetReadDeadline(t time.Time) error { return r.current().SetReadDeadline(t) }

// SetWriteDeadline implements [net.PacketConn], likewise.
func (r *roaming) SetWriteDeadline(t time.Time) error { return r.current().SetWriteDeadline(t) }

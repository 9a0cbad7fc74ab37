// Package netconn finds what connections can do beside what every [net.Conn] can, also where they
// are wrapped. A wrapper says what it wraps by a method NetConn() net.Conn, as a *tls.Conn does,
// and what it can do itself by having the method for it. One that says nothing, such as a struct
// that embeds a net.Conn, hides what is below it: who called the code that wrapped the connection
// joins the two by [Wrap]. It also reads and writes for less than package net does.
package netconn

import (
	"errors"
	"net"
	"reflect"
)

// Conn is a connection with all that a stream asks of one; [Of] makes it of any connection.
type Conn interface {
	net.Conn
	// CloseWrite ends this end's direction. Where the connection cannot do that alone, it is
	// [errors.ErrUnsupported].
	CloseWrite() error
	// Await is told when replies are awaited, and when none is any more, so that the connection can
	// look after a silent peer meanwhile. Most have no use for that.
	Await(reply bool)
	// TryWrite writes what the connection takes without waiting, and returns how much that is. What
	// is left is for Write, which says why it was.
	TryWrite(b []byte) (n int)
}

// Aborter is a connection that can end at once, without an end in order.
type Aborter interface{ Abort() error }

type (
	halfCloser interface{ CloseWrite() error }
	awaiter    interface{ Await(reply bool) }
	tryWriter  interface{ TryWrite(b []byte) (n int) }
	lingerer   interface {
		net.Conn
		SetLinger(sec int) error
	}
	wrapper interface{ NetConn() net.Conn }
)

// Of gives a connection that can do what c, or what it wraps, can do.
func Of(c net.Conn) Conn {
	f := &full{Conn: c}
	f.await, _ = As[awaiter](c)
	return f
}

// full is a connection, and what of its chain is asked often.
type full struct {
	net.Conn
	await awaiter
}

// NetConn is the connection as it was given.
func (f *full) NetConn() net.Conn { return f.Conn }

// CloseWrite implements [Conn].
func (f *full) CloseWrite() error { return CloseWrite(f.Conn) }

// Await implements [Conn].
func (f *full) Await(reply bool) {
	if f.await != nil {
		f.await.Await(reply)
	}
}

// Read implements [net.Conn].
func (f *full) Read(b []byte) (int, error) { return Read(f.Conn, b) }

// Write implements [net.Conn].
func (f *full) Write(b []byte) (int, error) { return Write(f.Conn, b) }

// TryWrite implements [Conn].
func (f *full) TryWrite(b []byte) int { return TryWrite(f.Conn, b) }

// TryWrite writes what a connection takes without waiting, as [Conn] does. A wrapper says that it
// can by a method of that name, as what it does to all that is written is not known here.
func TryWrite(c net.Conn, b []byte) (n int) {
	switch c := c.(type) {
	case tryWriter:
		return c.TryWrite(b)
	case *net.TCPConn:
		return tryTCP(c, b)
	}
	return 0
}

// Read reads from a connection, as its own method does. Over TCP it costs less, where nothing wraps
// the connection.
func Read(c net.Conn, b []byte) (n int, err error) {
	if c, ok := c.(*net.TCPConn); ok {
		return readTCP(c, b)
	}
	return c.Read(b)
}

// Write writes to a connection, as its own method does, and costs less like [Read].
func Write(c net.Conn, b []byte) (n int, err error) {
	if c, ok := c.(*net.TCPConn); ok {
		if n = tryTCP(c, b); n == len(b) && n > 0 {
			return n, nil
		}
		rest, err := c.Write(b[n:])
		return n + rest, err
	}
	return c.Write(b)
}

// As finds the first T among c, what c wraps, and so on.
func As[T any](c net.Conn) (found T, ok bool) {
	for c != nil {
		if found, ok = c.(T); ok {
			return found, true
		}
		if j, both := c.(*joinedConn); both {
			if found, ok = As[T](j.Conn); ok {
				return found, true
			}
			c = j.inner
			continue
		}
		w, wraps := c.(wrapper)
		if !wraps {
			break
		}
		c = w.NetConn()
	}
	return found, false
}

// joinedConn is a connection that wraps another one without saying so.
type joinedConn struct {
	net.Conn
	inner net.Conn
}

// NetConn is the wrapper.
func (j *joinedConn) NetConn() net.Conn { return j.Conn }

// Wrap gives outer, which wraps inner, such that what inner can do is found where outer says
// nothing of it: outer itself, if it names what it wraps. What outer holds back of what was written
// is its own business: then it has a CloseWrite.
func Wrap(outer, inner net.Conn) net.Conn {
	for c := outer; c != nil; {
		if same(c, inner) {
			return outer
		}
		w, wraps := c.(wrapper)
		if !wraps {
			break
		}
		c = w.NetConn()
	}
	return &joinedConn{outer, inner}
}

// same reports whether two connections are one. A wrapper may be of a type that cannot be compared.
func same(a, b net.Conn) bool {
	return reflect.ValueOf(a).Comparable() && reflect.ValueOf(b).Comparable() && a == b
}

// CloseWrite ends this end's direction of a connection, as [Conn] does.
func CloseWrite(c net.Conn) error {
	half, ok := As[halfCloser](c)
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Abort ends a connection so that the peer does not take it for an end in order, where that is
// possible; over TCP by RST, also below TLS, whose own end would be one in order. It waits for
// nobody.
func Abort(c net.Conn) error {
	if a, ok := c.(Aborter); ok {
		return a.Abort()
	}
	if a, ok := As[Aborter](c); ok {
		err := a.Abort()
		_ = c.Close() // what wraps it is over, too
		return err
	}
	if l, ok := As[lingerer](c); ok {
		_ = l.SetLinger(0) // Close reports what matters
		if err := l.Close(); err != nil {
			return err
		}
		_ = c.Close()
		return nil
	}
	return c.Close()
}

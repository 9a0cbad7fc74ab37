package netconn_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/netconn"
)

// able is a connection with all abilities, and notes what it is asked.
type able struct {
	net.Conn
	asked []string
}

func (a *able) note(what string)  { a.asked = append(a.asked, what) }
func (a *able) CloseWrite() error { a.note("close write"); return nil }
func (a *able) Abort() error      { a.note("abort"); return nil }
func (a *able) Close() error      { a.note("close"); return nil }
func (a *able) Await(reply bool) {
	if reply {
		a.note("await")
	}
}

type (
	// hiding is a wrapper that says nothing of what it wraps; values of it cannot be compared.
	hiding struct {
		net.Conn
		_ []int
	}
	// telling is one that does.
	telling struct{ net.Conn }
	// closing is one that does, and ends its direction in its own way.
	closing struct {
		telling
		own *bool
	}
)

func (t telling) NetConn() net.Conn { return t.Conn }

func (c closing) CloseWrite() error { *c.own = true; return nil }

func TestAbilitiesBelowWrappers(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"not wrapped": func(c net.Conn) net.Conn { return c },
		"telling":     func(c net.Conn) net.Conn { return telling{c} },
		"hiding":      func(c net.Conn) net.Conn { return hiding{Conn: c} },
		"telling of what hides": func(c net.Conn) net.Conn {
			return telling{netconn.Wrap(hiding{Conn: c}, c)}
		},
		"hiding what tells":   func(c net.Conn) net.Conn { return hiding{Conn: telling{c}} },
		"made ready before":   func(c net.Conn) net.Conn { return netconn.Of(c) },
		"hiding it and ready": func(c net.Conn) net.Conn { return hiding{Conn: netconn.Of(c)} },
	} {
		t.Run(name, func(t *testing.T) {
			below := &able{}
			c := netconn.Of(netconn.Wrap(wrap(below), below))
			require.NoError(t, c.CloseWrite())
			c.Await(true)
			assert.Equal(t, []string{"close write", "await"}, below.asked)
			require.NoError(t, netconn.Abort(c))
			assert.Equal(t, "abort", below.asked[2])
			found, ok := netconn.As[*able](c)
			assert.True(t, ok)
			assert.Same(t, below, found)
		})
	}
}

// TestTryWrite: a socket takes what it has room for, and who writes does not wait; nobody writes
// past a wrapper that does not say that it can.
func TestTryWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	here, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer here.Close()
	there, err := l.Accept()
	require.NoError(t, err)
	defer there.Close()

	c := netconn.Of(here)
	text := bytes.Repeat([]byte("text"), 1<<16)
	if c.TryWrite(text[:4]) == 0 {
		t.Skip("sockets are written to by the system here")
	}
	sent := 4
	for {
		n := c.TryWrite(text)
		if n == 0 {
			break
		}
		sent += n
	}
	assert.Zero(t, c.TryWrite(text), "a full socket")
	n, err := io.CopyN(io.Discard, there, int64(sent))
	require.NoError(t, err)
	assert.EqualValues(t, sent, n)

	for _, c := range []net.Conn{telling{here}, hiding{Conn: here}, netconn.Wrap(telling{here}, here), &able{}} {
		assert.Zero(t, netconn.Of(c).TryWrite(text))
	}
	assert.Equal(t, 4, netconn.Of(netconn.Of(here)).TryWrite(text[:4]))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.TryWrite(text[:1]) }))
	require.NoError(t, there.Close())
	require.NoError(t, here.Close())
	assert.Zero(t, c.TryWrite(text))
	_, err = c.Write(text)
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestReadAndWrite: they do what the methods of a connection do, with its errors, and without
// anything allocated; also with more than goes at once.
func TestReadAndWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	pair := func() (here, there net.Conn) {
		here, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		there, err = l.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _, _ = here.Close(), there.Close() })
		return here, there
	}
	here, there := pair()
	space := make([]byte, 100)
	n, err := netconn.Read(here, nil)
	assert.Zero(t, n)
	require.NoError(t, err)
	_, err = netconn.Write(there, nil)
	require.NoError(t, err)

	long := bytes.Repeat([]byte("text"), 1<<20)
	var all sync.WaitGroup
	all.Go(func() {
		for _, part := range [][]byte{long[:1], long[1:1000], long[1000:]} {
			n, err := netconn.Write(netconn.Of(there), part)
			assert.NoError(t, err)
			assert.Len(t, part, n)
		}
		assert.NoError(t, netconn.CloseWrite(there))
	})
	got, err := io.ReadAll(netconn.Of(here))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(long, got))
	all.Wait()

	require.NoError(t, there.SetReadDeadline(time.Unix(1, 0)))
	for _, end := range []struct {
		name string
		how  func(c net.Conn)
	}{
		{"deadline", func(c net.Conn) { require.NoError(t, c.SetDeadline(time.Unix(1, 0))) }},
		{"closed", func(c net.Conn) { require.NoError(t, c.Close()) }},
	} {
		here, _ := pair()
		end.how(here)
		_, want := here.Read(space)
		_, err = netconn.Read(here, space)
		assert.Equal(t, want, err, end.name)
		_, want = here.Write(space)
		_, err = netconn.Write(here, space)
		assert.Equal(t, want, err, end.name)
	}
	var said [2]error
	for i, read := range []func(net.Conn) (int, error){
		func(c net.Conn) (int, error) { return c.Read(space) },
		func(c net.Conn) (int, error) { return netconn.Read(c, space) },
	} {
		here, there := pair()
		require.NoError(t, netconn.Abort(there))
		_, said[i] = read(here)
		require.ErrorIs(t, said[i], syscall.ECONNRESET)
		var op *net.OpError
		require.ErrorAs(t, said[i], &op)
		op.Source, op.Addr = nil, nil
	}
	assert.Equal(t, said[0], said[1])

	here, there = pair()
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = netconn.Write(there, space[:1])
		_, _ = netconn.Read(here, space)
	}))
	for _, c := range []net.Conn{telling{here}, hiding{Conn: here}} {
		_, err := netconn.Write(there, space[:4])
		require.NoError(t, err)
		n, err := netconn.Read(c, space)
		require.NoError(t, err)
		assert.Equal(t, 4, n)
	}
}

// What a wrapper does itself is asked of it, and of nobody below.
func TestOutermostCounts(t *testing.T) {
	below, own := &able{}, false
	c := closing{telling{below}, &own}
	assert.Equal(t, c, netconn.Wrap(c, below), "it tells what it wraps")
	require.NoError(t, netconn.CloseWrite(c))
	assert.True(t, own)
	assert.Empty(t, below.asked)
}

func TestNothingIsMadeUp(t *testing.T) {
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	c := netconn.Of(hiding{Conn: a})
	require.ErrorIs(t, c.CloseWrite(), errors.ErrUnsupported)
	require.ErrorIs(t, netconn.CloseWrite(a), errors.ErrUnsupported)
	c.Await(true)
	_, ok := netconn.As[netconn.Aborter](telling{nil})
	assert.False(t, ok)
}

// An abort is a reset of TCP, whatever wraps the connection, also TLS, and what wraps it is over.
func TestAbortResets(t *testing.T) {
	for name, wrap := range map[string]func(net.Conn) net.Conn{
		"TCP":     func(c net.Conn) net.Conn { return c },
		"telling": func(c net.Conn) net.Conn { return telling{c} },
		"TLS":     func(c net.Conn) net.Conn { return tls.Client(c, &tls.Config{ServerName: "x"}) },
		"hiding":  func(c net.Conn) net.Conn { return netconn.Wrap(hiding{Conn: c}, c) },
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { _ = l.Close() }()
			c, err := net.Dial("tcp", l.Addr().String())
			require.NoError(t, err)
			peer, err := l.Accept()
			require.NoError(t, err)
			defer func() { _ = peer.Close() }()
			require.NoError(t, netconn.Abort(wrap(c)))
			_, err = io.ReadAll(peer)
			require.ErrorIs(t, err, syscall.ECONNRESET)
			_, err = c.Write([]byte("x"))
			require.ErrorIs(t, err, net.ErrClosed)
		})
	}
}

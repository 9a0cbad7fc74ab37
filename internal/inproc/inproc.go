// Package inproc has connections in memory, with buffers, deadlines and half close: for a proxy
// that is the next hop of its own route, for calls whose bytes are only counted, and for tests.
package inproc

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"syscall"
)

// Transport connects who listens and who dials at the same name in it. The zero value is ready; it
// must not be copied.
type Transport struct {
	// Buffer is how many bytes each direction of a connection takes before a write waits; 0 means
	// 64 KiB.
	Buffer int

	mu     sync.Mutex
	at     map[string]*pipeListener
	unique int
}

// Dial connects to the listener at addr. It waits until that accepts.
func (t *Transport) Dial(ctx context.Context, addr string) (net.Conn, error) {
	t.mu.Lock()
	l := t.at[addr]
	t.mu.Unlock()
	refused := &net.OpError{Op: "dial", Net: network, Addr: Addr(addr), Err: syscall.ECONNREFUSED}
	if l == nil {
		return nil, refused
	}
	here, there := pipe(t.Buffer, Addr(addr))
	select {
	case l.pending <- there:
		return here, nil
	case <-l.closed:
		return nil, refused
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Addr: Addr(addr), Err: ctx.Err()}
	}
}

// Listen waits for connections at addr, any name; an empty one, or one that ends in ":0", is
// replaced by a free one.
func (t *Transport) Listen(_ context.Context, addr string) (net.Listener, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = map[string]*pipeListener{}
	}
	if n := len(addr); n == 0 || n >= 2 && addr[n-2:] == ":0" {
		t.unique++
		addr = addr[:max(n-1, 0)] + strconv.Itoa(t.unique)
	}
	if t.at[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: Addr(addr), Err: syscall.EADDRINUSE}
	}
	l := &pipeListener{t: t, addr: Addr(addr), pending: make(chan net.Conn), closed: make(chan struct{})}
	t.at[addr] = l
	return l, nil
}

const network = "inproc"

// Addr is the name of a listener, and of both ends of its connections.
type Addr string

// Network is "inproc".
func (Addr) Network() string { return network }

// String is the name.
func (a Addr) String() string { return string(a) }

type pipeListener struct {
	t       *Transport
	addr    Addr
	pending chan net.Conn
	once    sync.Once
	closed  chan struct{}
}

func (l *pipeListener) Addr() net.Addr { return l.addr }

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.pending:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: network, Addr: l.addr, Err: net.ErrClosed}
	}
}

func (l *pipeListener) Close() error {
	err := fmt.Errorf("close %s: %w", l.addr, net.ErrClosed)
	l.once.Do(func() {
		err = nil
		close(l.closed)
		l.t.mu.Lock()
		defer l.t.mu.Unlock()
		delete(l.t.at, string(l.addr))
	})
	return err
}

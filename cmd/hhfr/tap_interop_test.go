//go:build interop

package main

import (
	"crypto/sha256"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tap forwards connections, and notes what went each way.
type tap struct {
	listen net.Listener
	wait   sync.WaitGroup

	mu     sync.Mutex
	passed []string // a line for each connection that carried anything
	octets int64
}

// direction is what went one way of a connection.
type direction struct {
	octets int64
	sum    []byte
	begins string
}

func (d *direction) String() string {
	line, _, _ := strings.Cut(d.begins, "\r\n")
	return fmt.Sprintf("%d bytes from %q, SHA-256 %x", d.octets, line, d.sum)
}

func startTap(t *testing.T, to string) *tap {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &tap{listen: l}
	p.wait.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.forward(t, in, to) })
		}
	})
	t.Cleanup(func() { _ = l.Close() })
	return p
}

func (p *tap) forward(t *testing.T, in net.Conn, to string) {
	out, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
	if !assert.NoError(t, err) {
		_ = in.Close()
		return
	}
	var up, down direction
	var both sync.WaitGroup
	both.Go(func() { up.copy(out, in) })
	both.Go(func() { down.copy(in, out) })
	both.Wait()
	_ = in.Close()
	_ = out.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	if up.octets+down.octets > 0 {
		p.passed = append(p.passed, fmt.Sprintf("%s; %s", &up, &down))
		p.octets += up.octets + down.octets
	}
}

func (d *direction) copy(to, from net.Conn) {
	hash, some := sha256.New(), make([]byte, 64<<10)
	for {
		n, err := from.Read(some)
		_, _ = hash.Write(some[:n])
		if d.octets == 0 {
			d.begins = string(some[:min(n, 100)])
		}
		d.octets += int64(n)
		if _, failed := to.Write(some[:n]); err != nil || failed != nil {
			break
		}
	}
	d.sum = hash.Sum(nil)
	_ = to.(*net.TCPConn).CloseWrite()
}

func (p *tap) host() string { return p.listen.Addr().String() }

// all returns what was passed, once every connection has ended.
func (p *tap) all() []string {
	_ = p.listen.Close()
	p.wait.Wait()
	return p.passed
}

//go:build interop

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"net"
	"regexp"
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

// direction is what went one way of a connection, but for offers of h2c: a near proxy takes those
// out (docs/proxy.md, section 1).
type direction struct {
	octets int64
	hash   hash.Hash
	begins string
	line   []byte // of which the end is missing
}

// offerOfH2C is a line of such an offer, as Java's client writes them.
var offerOfH2C = regexp.MustCompile(`^(Connection: Upgrade, HTTP2-Settings|Upgrade: h2c|HTTP2-Settings: .*)\r\n$`)

func (d *direction) String() string {
	line, _, _ := strings.Cut(d.begins, "\r\n")
	return fmt.Sprintf("%d bytes from %q, SHA-256 %x", d.octets, line, d.hash.Sum(nil))
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
	d.hash = sha256.New()
	some := make([]byte, 64<<10)
	for {
		n, err := from.Read(some)
		d.note(some[:n])
		if _, failed := to.Write(some[:n]); err != nil || failed != nil {
			break
		}
	}
	d.count(d.line)
	_ = to.(*net.TCPConn).CloseWrite()
}

// note counts the lines that are whole.
func (d *direction) note(b []byte) {
	end := bytes.LastIndexByte(b, '\n') + 1
	lines := b[:end]
	if end > 0 {
		lines, d.line = append(d.line, lines...), nil
	}
	for line := range bytes.Lines(lines) {
		if len(line) > 200 || !offerOfH2C.Match(line) {
			d.count(line)
		}
	}
	d.line = append(d.line, b[end:]...)
}

func (d *direction) count(b []byte) {
	if d.octets == 0 {
		d.begins = string(b[:min(len(b), 100)])
	}
	d.octets += int64(len(b))
	_, _ = d.hash.Write(b)
}

func (p *tap) host() string { return p.listen.Addr().String() }

// all returns what was passed, once every connection has ended.
func (p *tap) all() []string {
	_ = p.listen.Close()
	p.wait.Wait()
	return p.passed
}

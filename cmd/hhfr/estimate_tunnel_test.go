//go:build unix

package main

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/estimate"
)

// flushingWriter compresses.
type flushingWriter interface {
	io.Writer
	Flush() error
}

// tunnelEnd is one end of a tunnel such as people have: one connection, which is compressed each
// way, with a frame of four bytes before what came on one of many.
type tunnelEnd struct {
	mu    sync.Mutex
	out   flushingWriter
	link  *bufio.Writer
	conns map[uint16]net.Conn
	open  func(channel uint16) net.Conn // a connection that the peer began
	wait  sync.WaitGroup
}

func (e *tunnelEnd) send(channel uint16, data []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, _ = e.out.Write(append(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, channel),
		uint16(len(data))), data...))
	_ = e.out.Flush()
	return e.link.Flush()
}

// carry sends what comes on a connection.
func (e *tunnelEnd) carry(channel uint16, c net.Conn) {
	e.mu.Lock()
	e.conns[channel] = c
	e.mu.Unlock()
	e.wait.Go(func() {
		b := make([]byte, 32<<10)
		for {
			n, err := c.Read(b)
			if n > 0 {
				_ = e.send(channel, b[:n])
			}
			if err != nil {
				break
			}
		}
		if e.forget(channel) {
			_ = e.send(channel, nil)
		}
		_ = c.Close()
	})
}

// forget reports whether a connection was still there.
func (e *tunnelEnd) forget(channel uint16) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	_, was := e.conns[channel]
	delete(e.conns, channel)
	return was
}

// receive passes on what the peer sends.
func (e *tunnelEnd) receive(in io.Reader) {
	var head [4]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		channel, data := binary.BigEndian.Uint16(head[:]), make([]byte, binary.BigEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(in, data); err != nil {
			return
		}
		e.mu.Lock()
		c := e.conns[channel]
		e.mu.Unlock()
		switch {
		case len(data) == 0 && c != nil:
			e.forget(channel)
			_ = c.Close()
		case len(data) == 0:
		case c == nil && e.open != nil:
			c = e.open(channel)
			e.carry(channel, c)
			fallthrough
		case c != nil:
			_, _ = c.Write(data)
		}
	}
}

// run carries what both ends say over a connection until it ends.
func (e *tunnelEnd) run(p *player, link net.Conn, w estimate.Way) {
	e.conns, e.link = map[uint16]net.Conn{}, bufio.NewWriterSize(link, 64<<10)
	if w == estimate.Zlib {
		e.out, _ = zlib.NewWriterLevel(e.link, 6)
	} else {
		e.out, _ = zstd.NewWriter(e.link, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	}
	e.wait.Go(func() {
		var in io.Reader
		var err error
		if w == estimate.Zlib {
			in, err = zlib.NewReader(bufio.NewReader(link))
		} else {
			in, err = zstd.NewReader(link, zstd.WithDecoderConcurrency(1))
		}
		if err == nil {
			e.receive(in)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, c := range e.conns { // their ends did not come in time
			_ = c.Close()
		}
	})
}

// throughTunnel plays connections through a tunnel.
func (p *player) throughTunnel(conns []*recordedConn, w estimate.Way) (octets, packets int64) {
	there := listenLoopback(p.t)
	l := newMeteredLink(p.t, there.Addr().String())
	dial := func(to string) net.Conn {
		c, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", to)
		assert.NoError(p.t, err)
		return c
	}
	near, far := &tunnelEnd{}, &tunnelEnd{open: func(uint16) net.Conn { return dial(p.server.Addr().String()) }}
	out := dial(l.listen.Addr().String())
	in, err := there.Accept()
	require.NoError(p.t, err)
	near.run(p, out, w)
	far.run(p, in, w)
	entry := listenLoopback(p.t)
	near.wait.Go(func() {
		for channel := uint16(1); ; channel++ {
			c, err := entry.Accept()
			if err != nil {
				return
			}
			near.carry(channel, c)
		}
	})
	p.run(conns, entry.Addr().String(), nil)
	octets, packets = l.total(200 * time.Millisecond)
	for _, c := range []io.Closer{entry, there, out, in} {
		_ = c.Close()
	}
	near.wait.Wait()
	far.wait.Wait()
	return octets, packets
}

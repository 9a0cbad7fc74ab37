package network

import (
	"net"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/sock"
)

// TrafficReport counts the bytes of connections, except those of streams that these became.
type TrafficReport struct {
	sent, received atomic.Int64

	mu      sync.Mutex
	streams []carrier
}

// carrier is a connection that was upgraded.
type carrier interface {
	Carried() (sent, received int64)
}

// Count counts the bytes of a connection.
func (t *TrafficReport) Count(c net.Conn) net.Conn { return &counted{Conn: c, wire: t} }

// Drop stops counting a connection, and subtracts what was counted: it is a stream's alone.
func (t *TrafficReport) Drop(c net.Conn) {
	if c, ok := c.(*counted); ok {
		c.dropped.Store(true)
		t.sent.Add(-c.sent.Load())
		t.received.Add(-c.received.Load())
	}
}

// Leave notes that a stream has taken over the rest of a connection, if it has.
func (t *TrafficReport) Leave(c net.Conn) {
	if c, ok := c.(carrier); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.streams = append(t.streams, c)
	}
}

// Total is the sum of what was counted.
func (t *TrafficReport) Total() Octets {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := Octets{t.sent.Load(), t.received.Load()}
	for _, c := range t.streams {
		sent, received := c.Carried()
		o.Sent -= sent
		o.Received -= received
	}
	return o
}

type counted struct {
	net.Conn
	wire           *TrafficReport
	dropped        atomic.Bool
	sent, received atomic.Int64
}

// Read implements [net.Conn].
func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.add(&c.wire.received, &c.received, n)
	return n, err
}

// Write implements [net.Conn].
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.add(&c.wire.sent, &c.sent, n)
	return n, err
}

// CloseWrite ends the direction.
func (c *counted) CloseWrite() error { return sock.CloseWrite(c.Conn) }

func (c *counted) add(all, own *atomic.Int64, n int) {
	if !c.dropped.Load() {
		all.Add(int64(n))
		own.Add(int64(n))
	}
}

// Octets are numbers of bytes, by direction.
type Octets struct {
	Sent     int64 `json:"sent"`     // bytes sent
	Received int64 `json:"received"` // bytes received
}

// Sum is that of both directions.
func (o Octets) Sum() int64 { return o.Sent + o.Received }

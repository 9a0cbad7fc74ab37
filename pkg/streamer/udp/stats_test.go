package udp_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// counting is a socket that counts by itself what a connection tells.
type counting struct {
	net.PacketConn
	mu                              sync.Mutex
	sent, received, acksOut, acksIn int64
	resent, duplicates              int64
	unitsOut, unitsIn               map[uint64]bool
}

func (s *counting) look(b []byte, count, acks, again *int64, units map[uint64]bool) {
	d, ok := datagram.Parse(b)
	var p window.Packet
	if !ok || d.Packet == nil || p.Parse(d.Packet) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*count++
	if p.HasAck {
		*acks++
	}
	for _, u := range p.Units {
		if units[u.Number] {
			*again++
		}
		units[u.Number] = true
	}
}

func (s *counting) WriteTo(b []byte, to net.Addr) (int, error) {
	s.look(b, &s.sent, &s.acksOut, &s.resent, s.unitsOut)
	return s.PacketConn.WriteTo(b, to)
}

func (s *counting) ReadFrom(b []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(b)
	if err == nil {
		s.look(b[:n], &s.received, &s.acksIn, &s.duplicates, s.unitsIn)
	}
	return n, from, err
}

// What a connection tells of itself is what its datagrams show.
func TestStats(t *testing.T) {
	for _, profile := range []string{"lte", "edge,loss=8%,reorder=5%,dup=5%,seed=3"} {
		synctest.Test(t, func(t *testing.T) {
			near := &counting{unitsOut: map[uint64]bool{}, unitsIn: map[uint64]bool{}}
			a, b, l := connect(t, profile, udp.Config{Linger: time.Hour}, func(n, far net.PacketConn) (net.PacketConn,
				net.PacketConn) {
				near.PacketConn = n
				return near, far
			})
			var both sync.WaitGroup
			for i, ends := range [][2]net.Conn{{a, b}, {b, a}} {
				both.Go(func() {
					_, err := ends[0].Write(octets(60_000, i))
					assert.NoError(t, err)
				})
				both.Go(func() {
					_, err := io.ReadFull(ends[1], make([]byte, 60_000))
					assert.NoError(t, err)
				})
			}
			both.Wait()
			time.Sleep(10 * time.Second) // for what is under way
			synctest.Wait()
			s := a.(interface{ Stats() udp.Stats }).Stats()
			near.mu.Lock()
			assert.Equal(t, near.sent, s.Sent)
			assert.Equal(t, near.received, s.Received)
			assert.Equal(t, near.acksOut, s.AcksSent)
			assert.Equal(t, near.acksIn, s.AcksReceived)
			assert.Equal(t, near.resent, s.Resent)
			assert.Equal(t, near.duplicates, s.Duplicates)
			assert.Zero(t, s.Refused)
			near.mu.Unlock()
			if profile == "lte" {
				assert.Zero(t, s.Resent+s.Duplicates+s.Timeouts)
				assert.InDelta(t, 50*time.Millisecond, s.RTT, float64(50*time.Millisecond))
			} else {
				assert.Positive(t, s.Resent)
				assert.Positive(t, s.Duplicates)
				assert.Greater(t, s.RTT, 400*time.Millisecond)
			}
			both.Go(func() { assert.NoError(t, a.Close()) })
			both.Go(func() { assert.NoError(t, b.Close()) })
			both.Wait()
			end := a.(interface{ Stats() udp.Stats }).Stats()
			assert.Greater(t, end.Sent, s.Sent, "they are there when it is closed, too")
			require.NoError(t, l.Close())
		})
	}
}

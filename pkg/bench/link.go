package bench

import (
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/clock"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// lines is the link of one session: one for connections, and one for each socket of datagrams. They are never busy at the same time.
type lines struct {
	*link.Link
	clock   clock.Clock
	session *session

	mu      sync.Mutex
	sockets []*link.Datagrams
}

func (s *session) open(ticks clock.Clock) (*lines, error) {
	l, err := link.Relay(ticks, s.profile.Reliable())
	return &lines{Link: l, clock: ticks, session: s}, err
}

// streams is the transport of the session's streams.
func (l *lines) streams() streamer.Transport {
	if l.session.transport == "udp" {
		return udp.Transport{Config: udp.Config{Clock: l.clock}, Through: l.through}
	}
	return l.Over(tcp.Transport{})
}

func (l *lines) through(socket net.PacketConn, remote net.Addr) (net.PacketConn, error) {
	d, err := link.Through(l.clock, l.session.profile, socket, remote)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sockets = append(l.sockets, d)
	return d, nil
}

// directions are what the lines carried.
type directions struct{ up, down link.Direction }

func (l *lines) stats() directions {
	st := l.Stats()
	sum := directions{st.Up, st.Down}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.sockets {
		up, down := d.Stats()
		for _, one := range []struct {
			to   *link.Direction
			path link.PathStats
		}{{&sum.up, up}, {&sum.down, down}} {
			one.to.Wire += one.path.Wire
			one.to.Octets += one.path.Wire
			one.to.Busy += l.session.profile.Busy(one.path)
		}
	}
	return sum
}

package bench

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
	streamertls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// sessionLinks is the link of one session: one for connections, and one for each socket of
// datagrams. They are never busy at the same time.
type sessionLinks struct {
	*link.Link
	clock clock.Clock
	trial *trial
	ends  *sockets

	mu        sync.Mutex
	datagrams []*link.Datagrams
}

func (s *trial) open(ticks clock.Clock, ends *sockets) (*sessionLinks, error) {
	l, err := link.Relay(ticks, s.profile.Reliable())
	return &sessionLinks{Link: l, clock: ticks, trial: s, ends: ends}, err
}

// connect connects through the link.
func (l *sessionLinks) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := l.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return l.ends.beyond.Dial(ctx, addr) })
	if err != nil {
		return nil, err
	}
	return l.ends.over(c), nil
}

// streams is the transport of the session's streams; secure is the configuration of streams in TLS.
func (l *sessionLinks) streams(secure *tls.Config) streamer.Transport {
	switch l.trial.streams() {
	case "tls":
		return streamertls.New(secure, near{l})
	case "udp":
		return udp.Transport{Config: udp.Config{Clock: l.clock}, Through: l.through}
	}
	return near{l}
}

// near is the transport at the near end of the link.
type near struct{ lines *sessionLinks }

// Dial connects through the link.
func (n near) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return n.lines.connect(ctx, addr)
}

// Listen lets those connect that dial beyond the link.
func (n near) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return n.lines.ends.listen(ctx, addr)
}

func (l *sessionLinks) through(socket net.PacketConn, remote net.Addr) (net.PacketConn, error) {
	d, err := link.Through(l.clock, l.trial.profile, socket, remote)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.datagrams = append(l.datagrams, d)
	return d, nil
}

func (l *sessionLinks) stats() directions {
	st := l.Stats()
	sum := directions{st.Up, st.Down}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range l.datagrams {
		up, down := d.Stats()
		for _, one := range []struct {
			to   *link.Direction
			path link.PathStats
		}{{&sum.up, up}, {&sum.down, down}} {
			one.to.Wire += one.path.Wire
			one.to.Octets += one.path.Wire
			one.to.Busy += l.trial.profile.Busy(one.path)
		}
	}
	return sum
}

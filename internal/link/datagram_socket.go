package link

import (
	"errors"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
)

// Datagrams is a socket that communicates with one peer through an emulated link: what it sends
// enters the real network when the link says so, and what arrives from there likewise.
type Datagrams struct {
	net.PacketConn // the near end of the link
	far            *socket
	real           net.PacketConn
	remote         net.Addr
	wait           sync.WaitGroup
}

// Through puts a link between a socket, which is the link's from then on, and the peer at remote.
// It waits on c; nil means the machine's clock. Errors: BadProfile; the socket is then left as it
// is.
func Through(c clock.Clock, p Profile, real net.PacketConn, remote net.Addr) (*Datagrams, error) {
	near, far, err := Packets(c, p)
	if err != nil {
		return nil, err
	}
	d := &Datagrams{PacketConn: near, far: far.(*socket), real: real, remote: remote}
	d.wait.Go(func() { d.pump(far, real, remote) })
	d.wait.Go(func() { d.pump(real, far, nil) })
	return d, nil
}

// maxRefused is how many consecutive reads of a socket may fail: some systems report there that a
// datagram was refused.
const maxRefused = 1000

func (d *Datagrams) pump(from, to net.PacketConn, addr net.Addr) {
	buf := make([]byte, 65536)
	for broken := 0; broken < maxRefused; broken++ {
		n, _, err := from.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			broken = -1
			_, _ = to.WriteTo(buf[:n], addr) // a datagram that is not sent counts as lost
		}
	}
}

// ReadFrom implements [net.PacketConn].
func (d *Datagrams) ReadFrom(p []byte) (int, net.Addr, error) {
	n, _, err := d.PacketConn.ReadFrom(p)
	if err != nil {
		return n, nil, err
	}
	return n, d.remote, nil
}

// LocalAddr implements [net.PacketConn]: it is that of the real socket.
func (d *Datagrams) LocalAddr() net.Addr { return d.real.LocalAddr() }

// Close implements [net.PacketConn], and waits for what the link runs. What is in progress is lost.
func (d *Datagrams) Close() error {
	err := d.PacketConn.Close()
	_ = d.far.Close()
	if closed := d.real.Close(); err == nil {
		err = closed
	}
	d.wait.Wait()
	return err
}

// Stats returns the counters of datagrams: up for those that this side sent, down for those sent to
// it.
func (d *Datagrams) Stats() (up, down PathStats) {
	return d.PacketConn.(*socket).stats(), d.far.stats()
}

func (s *socket) stats() PathStats {
	s.sending.Lock()
	defer s.sending.Unlock()
	return s.path.Stats()
}

// Busy is the time that the line took for what it sent.
func (p Profile) Busy(s PathStats) time.Duration { return p.sending(s.Wire) }

// Reliable is the profile without the impairments for datagrams only: loss, and the rest of
// [Impairment].
func (p Profile) Reliable() Profile {
	p.Loss, p.Impairment = 0, Impairment{}
	return p
}

package udp_test

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// translated is the socket of a listener behind which an address translator sits: who dialled comes
// from one address, and later from another; what is sent to one that is not his any more is lost.
type translated struct {
	net.PacketConn
	mu     sync.Mutex
	number int
	stale  int // datagrams sent to an address before
}

func (s *translated) address() net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("203.0.113.7"), uint16(1000+s.number)))
}

func (s *translated) rebind() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.number++
}

func (s *translated) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := s.PacketConn.ReadFrom(p)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		from = s.address()
	}
	return n, from, err
}

func (s *translated) WriteTo(p []byte, to net.Addr) (int, error) {
	s.mu.Lock()
	other := to.String() != s.address().String()
	if other {
		s.stale++
	}
	s.mu.Unlock()
	if other {
		return len(p), nil
	}
	return s.PacketConn.WriteTo(p, to)
}

// Who dialled changes networks, in the middle of traffic both ways and more than once: the session
// goes on from the new address, nothing is lost or twice.
func TestNewAddress(t *testing.T) {
	for _, profile := range []string{"lte", "edge,loss=5%,seed=3", "14k4,loss=5%,reorder=5%,seed=4"} {
		t.Run(profile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var nat *translated
				a, b, l := connect(t, profile, udp.Config{Linger: time.Hour}, func(near,
					far net.PacketConn) (net.PacketConn, net.PacketConn) {
					nat = &translated{PacketConn: far}
					return near, nat
				})
				first := b.RemoteAddr().String()
				const pieces, size = 6, 2000
				var both sync.WaitGroup
				for i, ends := range [][2]net.Conn{{a, b}, {b, a}} {
					both.Go(func() {
						for piece := range pieces {
							_, err := ends[0].Write(octets(size, i+piece))
							assert.NoError(t, err)
							time.Sleep(time.Second)
							if i == 0 && piece%2 == 0 {
								nat.rebind()
							}
						}
						assert.NoError(t, ends[0].(interface{ CloseWrite() error }).CloseWrite())
					})
					both.Go(func() {
						got, err := io.ReadAll(ends[1])
						assert.NoError(t, err)
						var want []byte
						for piece := range pieces {
							want = append(want, octets(size, i+piece)...)
						}
						assert.True(t, bytes.Equal(want, got))
					})
				}
				began := time.Now()
				both.Wait()
				assert.Less(t, time.Since(began), time.Minute)
				assert.Positive(t, nat.stale, "nothing was sent to an address before: the test shows nothing")
				assert.NotEqual(t, first, b.RemoteAddr().String())
				both.Go(func() { assert.NoError(t, a.Close()) })
				both.Go(func() { assert.NoError(t, b.Close()) })
				both.Wait()
				require.NoError(t, l.Close())
			})
		})
	}
}

// Who was silent while its address changed speaks: it takes about two round trips until it hears
// what was sent to it meanwhile.
func TestNewAddressAfterSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nat *translated
		a, b, l := connect(t, "gprs", udp.Config{}, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			nat = &translated{PacketConn: far}
			return near, nat
		})
		nat.rebind()
		_, err := b.Write([]byte("to nobody"))
		require.NoError(t, err)
		time.Sleep(3 * time.Minute)
		began := time.Now()
		_, err = a.Write([]byte("here"))
		require.NoError(t, err)
		got := make([]byte, 9)
		_, err = io.ReadFull(a, got)
		require.NoError(t, err)
		assert.Equal(t, "to nobody", string(got))
		assert.Less(t, time.Since(began), 4*600*time.Millisecond, "the timer had backed off far beyond")
		_, err = io.ReadFull(b, got[:4])
		require.NoError(t, err)
		assert.Equal(t, "here", string(got[:4]))
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}

package udp_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// anything has a seed decide on the link, the traffic, and when the address of who dialled changes;
// both directions carry all bytes in order, and then end.
func anything(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 3))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	profile := pick("14k4", "gprs", "edge", "3g", "lte", "geo") + fmt.Sprintf(",loss=%d%%,seed=%d", r.IntN(21),
		seed) + pick("", ",burst=3") + pick("", ",reorder=10%") + pick("", ",dup=10%") +
		pick("", ",jitter=100ms") + pick("", ",outage=3s/30s")
	synctest.Test(t, func(t *testing.T) {
		p, err := link.ParseProfile(profile)
		require.NoError(t, err)
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		nat := &translated{PacketConn: far}
		cfg := udp.Config{Linger: 2 * time.Hour, Inactivity: time.Hour, Unanswered: time.Hour, Datagram: []int{0, 300,
			1472}[r.IntN(3)]}
		l, err := udp.Listen(nat, cfg)
		require.NoError(t, err)
		a, err := udp.Dial(t.Context(), near, far.LocalAddr(), cfg)
		if err != nil {
			assert.ErrorIs(t, err, os.ErrDeadlineExceeded, "half a minute on a link like that may be too short")
			require.NoError(t, l.Close())
			return
		}
		late := time.AfterFunc(2*time.Minute, func() { _ = l.Close() })
		b, err := l.Accept()
		if !late.Stop() || err != nil {
			require.NoError(t, a.Close()) // all that would open the session was lost, until it was too late
			return
		}
		moves := make([]time.Duration, r.IntN(4))
		for i := range moves {
			moves[i] = time.Duration(r.Int64N(int64(20 * time.Second)))
		}
		var both sync.WaitGroup
		both.Go(func() {
			for _, wait := range moves {
				time.Sleep(wait)
				nat.rebind()
			}
		})
		heard := make(chan struct{}) // who dialled has all
		for i, ends := range [][2]net.Conn{{a, b}, {b, a}} {
			var sizes []int
			for range 1 + r.IntN(20) {
				sizes = append(sizes, 1+r.IntN([]int{20, 200, 5000}[r.IntN(3)]))
			}
			pause := time.Duration(r.IntN(3)) * time.Second
			both.Go(func() {
				for n, size := range sizes {
					_, err := ends[0].Write(octets(size, i+n))
					assert.NoError(t, err)
					time.Sleep(pause)
				}
				if i == 0 {
					<-heard // whose sequence is over says nothing of its own, and would not be found at a new address
				}
				assert.NoError(t, ends[0].(interface{ CloseWrite() error }).CloseWrite())
			})
			both.Go(func() {
				got, err := io.ReadAll(ends[1])
				assert.NoError(t, err, profile)
				if i == 1 {
					close(heard)
				}
				var want []byte
				for n, size := range sizes {
					want = append(want, octets(size, i+n)...)
				}
				assert.True(t, bytes.Equal(want, got), profile)
			})
		}
		both.Wait()
		both.Go(func() { assert.NoError(t, a.Close()) })
		both.Go(func() { assert.NoError(t, b.Close()) })
		both.Wait()
		require.NoError(t, l.Close())
	})
}

func TestAnything(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { anything(t, seed) })
	}
}

// The last close frame of an end never comes: who has all that was said, and that it was all, reads
// the end all the same.
func TestEndIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int32
		a, b, l := connect(t, "lte", udp.Config{}, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			return near, filter{far, func(b []byte) bool {
				d, _ := datagram.Parse(b)
				var p window.Packet
				if d.Packet != nil && p.Parse(d.Packet) == nil && p.Terminate {
					lost.Add(1)
					return false
				}
				return true
			}}
		})
		_, err := b.Write([]byte("all"))
		require.NoError(t, err)
		require.NoError(t, b.(interface{ CloseWrite() error }).CloseWrite())
		began := time.Now()
		got, err := io.ReadAll(a)
		require.NoError(t, err)
		assert.Equal(t, "all", string(got))
		assert.Less(t, time.Since(began), time.Second)
		time.Sleep(10 * time.Minute)
		assert.Positive(t, lost.Load())
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		require.NoError(t, l.Close())
	})
}

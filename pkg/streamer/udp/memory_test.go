package udp_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// join opens one more session, which says a word that is read.
func (s *stage) join(t *testing.T, l net.Listener, n int) (net.Conn, uint64) {
	t.Helper()
	id := s.ask(t, host(n), 4)
	s.say(host(n), opening(id, 4, text(1, 1, "hello")))
	c, err := l.Accept()
	require.NoError(t, err)
	requireRead(t, c, "hello")
	return c, id
}

// Many sessions of one address have no more in memory than a listener keeps, and a share each; who
// comes then is served, and they go on themselves in turn.
func TestKeptInAll(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		const sessions, most = 20, 200_000
		const bound = most + 3*sessions*udp.Share
		kept := udp.KeepAtMost(l, most)
		part := bytes.Repeat([]byte("x"), 1000)
		flood := map[net.Conn]uint64{}
		for n := range sessions {
			c, id := s.join(t, l, n+2)
			flood[c] = id
			for k := range uint64(500) {
				u := window.Unit{Number: 3 + k, First: true, Last: true, Payload: part} // 2 is missing
				if n%2 == 1 {
					u.Number-- // all in turn, and not read
				}
				s.came <- parcel{host(n + 2), data(id, window.Packet{Number: 2 + k, Floor: 1, Units: []window.Unit{u}})}
			}
		}
		synctest.Wait()
		assert.Greater(t, kept(), int64(most), "the flood reached the bound")
		assert.Less(t, kept(), int64(bound))

		honest, id := s.join(t, l, 1000)
		s.say(host(1000), data(id, text(2, 3, "second")), data(id, text(3, 2, "first ")))
		requireRead(t, honest, "first second")

		for c, id := range flood {
			whole := make(chan error, 1)
			go func() {
				_, err := io.ReadFull(c, make([]byte, 500*len(part)))
				whole <- err
			}()
			synctest.Wait()
			for k := range uint64(500) { // what was not kept is sent again
				s.say(c.RemoteAddr(), data(id, window.Packet{Number: 1000 + k, Floor: 1,
					Units: []window.Unit{{Number: 2 + k, First: true, Last: true, Payload: part}}}))
			}
			require.Len(t, whole, 1)
			require.NoError(t, <-whole)
		}
		for c := range flood {
			require.NoError(t, c.Close())
		}
		require.NoError(t, honest.Close())
		assert.Zero(t, kept(), "all is given back")
	})
}

// With nothing to spare, all arrives.
func TestNothingToSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, l := connect(t, "lte,loss=5%,seed=3", udp.Config{}, nil)
		kept := udp.KeepAtMost(l, -1)
		want := octets(1<<20, 1)
		go func() {
			_, err := a.Write(want)
			assert.NoError(t, err)
			assert.NoError(t, a.(interface{ CloseWrite() error }).CloseWrite())
		}()
		time.Sleep(time.Minute) // nobody reads
		got, err := io.ReadAll(b)
		assert.NoError(t, err)
		assert.True(t, bytes.Equal(want, got))
		var both sync.WaitGroup
		for _, c := range []net.Conn{a, b} {
			both.Go(func() { assert.NoError(t, c.Close()) })
		}
		both.Wait()
		assert.Zero(t, kept())
		assert.NoError(t, l.Close())
	})
}

// A listener has so many sessions and no more; when one ends there is room.
func TestMostSessions(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		var all []net.Conn
		for n := range udp.MaxSessions - 1 {
			c, _ := s.join(t, l, n+2)
			all = append(all, c)
		}
		beyond := host(udp.MaxSessions + 2)
		id := s.ask(t, beyond, 4)
		accepted := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			assert.NoError(t, err)
			accepted <- c
		}()
		assert.Empty(t, s.say(beyond, opening(id, 4, text(1, 1, "hello"))))
		assert.Empty(t, accepted)
		require.NoError(t, all[0].Close())
		s.say(beyond, opening(id, 4, text(1, 1, "hello")))
		require.Len(t, accepted, 1)
		for _, c := range append(all[1:], <-accepted) {
			go func() { _ = c.Close() }()
		}
		time.Sleep(time.Minute)
	})
}

// A listener remembers so many ended sessions of one peer, and so many in all; then nothing of that
// one opens, and nothing at all, until they are forgotten.
func TestMostTombs(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		const backlog, first = 128, 1000 // who waits to be accepted, and is dropped for the next
		bury := func(peer, sessions int) {
			for n := range sessions {
				id := s.ask(t, host(peer), uint64(n)+1)
				s.came <- parcel{host(peer), opening(id, uint64(n)+1,
					window.Packet{Number: 1, Floor: 1, Request: true})}
				if n%1000 == 0 {
					s.say(host(peer))
				}
			}
			s.say(host(peer))
		}
		opens := func(peer int) bool {
			id := s.ask(t, host(peer), 1<<40)
			return len(s.say(host(peer), opening(id, 1<<40, window.Packet{Number: 1, Floor: 1, Request: true}))) > 0
		}
		bury(first, udp.PeerTombs+backlog)
		assert.False(t, opens(first))
		assert.True(t, opens(first-1), "others go on")
		for peer := range udp.MaxTombs / udp.PeerTombs {
			bury(first+1+peer, udp.PeerTombs)
		}
		assert.False(t, opens(first-2))
		time.Sleep(91 * time.Second)
		assert.True(t, opens(first-2))
		assert.True(t, opens(first))
		for range backlog {
			c, err := l.Accept()
			require.NoError(t, err)
			go func() { _ = c.Close() }()
		}
		time.Sleep(time.Minute)
	})
}

// heap is what is allocated and reachable.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

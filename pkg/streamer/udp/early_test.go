package udp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"syscall"
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

// answering accepts one connection, and sends back what it reads, up to its end.
func answering(t *testing.T, l net.Listener) (done chan struct{}) {
	done = make(chan struct{})
	go func() {
		defer close(done)
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = io.Copy(c, c)
		_ = c.Close()
	}()
	return done
}

// early has a text echoed over a connection that is dialed early, and gives how long that took.
func early(t *testing.T, near, far net.PacketConn) (took time.Duration) {
	l, err := udp.Listen(far, udp.Config{})
	require.NoError(t, err)
	done := answering(t, l)
	began := time.Now()
	c, err := udp.DialEarly(t.Context(), near, far.LocalAddr(), udp.Config{})
	require.NoError(t, err)
	assert.Zero(t, time.Since(began), "it waits for nobody")
	for _, part := range []string{"hello", ", ", "message"} {
		_, err := c.Write([]byte(part))
		require.NoError(t, err)
	}
	requireRead(t, c, "hello, message")
	took = time.Since(began)
	require.NoError(t, c.(interface{ CloseWrite() error }).CloseWrite())
	rest, err := io.ReadAll(c)
	require.NoError(t, err)
	assert.Empty(t, rest, "nothing is delivered twice")
	require.NoError(t, c.Close())
	<-done
	require.NoError(t, l.Close())
	return took
}

// nth drops the nth datagram, from 0, of a kind that a socket sends.
func nth(n int, kind datagram.Kind) func([]byte) bool {
	return func(b []byte) bool {
		if datagram.Kind(b[0]) == kind {
			n--
			return n != -1
		}
		return true
	}
}

// older is a listener's socket whose process knows no early datagrams, or takes all of them for
// asks.
type older struct {
	net.PacketConn
	asks bool
}

func (o older) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := o.PacketConn.ReadFrom(p)
		g, ok := datagram.Parse(p[:n])
		switch {
		case err != nil || !ok || g.Kind != datagram.Early:
			return n, from, err
		case o.asks:
			return copy(p, append(numbers(datagram.Ask, g.Nonce), make([]byte, 23)...)), from, nil
		}
	}
}

// What is written to a connection that is dialed early takes one round trip there and back; one
// more where the listener has no capacity to spare, or where a datagram of the first flight is
// lost, and its timer.
func TestEarlyDialInRoundTrips(t *testing.T) {
	const rtt = 600 * time.Millisecond
	const timer = time.Second
	through := func(pass func([]byte) bool) func(net.PacketConn) net.PacketConn {
		return func(s net.PacketConn) net.PacketConn { return filter{s, pass} }
	}
	same := func(s net.PacketConn) net.PacketConn { return s }
	for name, tc := range map[string]struct {
		near, far func(net.PacketConn) net.PacketConn
		most      time.Duration
	}{
		"at once":     {same, same, rtt},
		"no capacity": {same, func(s net.PacketConn) net.PacketConn { return older{s, true} }, 2 * rtt},
		"an older listener": {same, func(s net.PacketConn) net.PacketConn { return older{s, false} },
			timer + 2*rtt},
		"the first is lost":  {through(nth(0, datagram.Early)), same, timer + rtt},
		"the second is lost": {through(nth(1, datagram.Early)), same, 3 * rtt},
		"the answer is lost": {same, through(nth(0, datagram.Answer)), rtt + 50*time.Millisecond},
		"the echo is lost":   {same, through(nth(1, datagram.Answer)), timer + rtt},
		"the first open is too": {through(nth(0, datagram.Open)), func(s net.PacketConn) net.PacketConn {
			return older{s,
				true}
		}, 4 * rtt},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, err := link.ParseProfile("geo")
				require.NoError(t, err)
				near, far, err := link.Packets(nil, p)
				require.NoError(t, err)
				assert.Less(t, early(t, tc.near(near), tc.far(far)), tc.most+rtt/10)
			})
		})
	}
}

// Whatever the link does: what is written arrives once, in order, and so does the reply; or the
// connection says that it ended.
func TestEarlyDialOverBadLinks(t *testing.T) {
	echoed := 0
	const seeds = 60
	for seed := range uint64(seeds) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			pick := func(of ...string) string { return of[r.IntN(len(of))] }
			profile := pick("14k4", "gprs", "3g", "lte", "geo") + fmt.Sprintf(",loss=%d%%,seed=%d", r.IntN(21), seed) +
				pick("", ",burst=3") + pick("", ",reorder=20%") + pick("", ",dup=20%") + pick("", ",jitter=300ms")
			p, err := link.ParseProfile(profile)
			require.NoError(t, err)
			near, far, err := link.Packets(nil, p)
			require.NoError(t, err)
			wrapped := far
			if r.IntN(3) == 0 {
				wrapped = older{far, r.IntN(2) == 0}
			}
			l, err := udp.Listen(wrapped, udp.Config{})
			require.NoError(t, err)
			done := answering(t, l)
			c, err := udp.DialEarly(t.Context(), near, far.LocalAddr(), udp.Config{})
			require.NoError(t, err)
			var want []byte
			for n := range 1 + r.IntN(5) {
				want = append(want, octets(1+r.IntN(3000), n)...)
			}
			go func() {
				for b := range slices.Chunk(want, 1+r.IntN(4000)) {
					_, _ = c.Write(b)
				}
				_ = c.(interface{ CloseWrite() error }).CloseWrite()
			}()
			got, err := io.ReadAll(c)
			if err == nil {
				echoed++
				assert.True(t, bytes.Equal(want, got), profile)
			} else {
				assert.True(t, bytes.HasPrefix(want, got), profile)
			}
			require.NoError(t, c.Close())
			require.NoError(t, l.Close())
			<-done
		})
	}
	assert.Greater(t, echoed, seeds*9/10)
}

// Where nobody answers, the connection ends with the error that a dial would have: at the deadline,
// or after half a minute. What bounds the dial is not the end of its context behind it.
func TestEarlyDialGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := link.ParseProfile("lte,loss=100%")
		require.NoError(t, err)
		for _, limit := range []time.Duration{3 * time.Second, time.Hour} {
			near, far, err := link.Packets(nil, p)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			began := time.Now()
			c, err := udp.DialEarly(ctx, near, far.LocalAddr(), udp.Config{})
			require.NoError(t, err)
			cancel()
			_, err = c.Read(make([]byte, 1))
			var op *net.OpError
			require.ErrorAs(t, err, &op)
			assert.Equal(t, "dial", op.Op)
			assert.True(t, op.Timeout())
			assert.Equal(t, min(limit, 31*time.Second), time.Since(began))
			_, err = c.Write([]byte("x"))
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, c.Close())
			_, err = near.WriteTo(nil, nil)
			assert.ErrorIs(t, err, net.ErrClosed, "the socket is closed")
		}
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = udp.DialEarly(ctx, near, far.LocalAddr(), udp.Config{})
		assert.ErrorIs(t, err, context.Canceled)
		near, far, err = link.Packets(nil, p)
		require.NoError(t, err)
		c, err := udp.DialEarly(t.Context(), near, far.LocalAddr(), udp.Config{})
		require.NoError(t, err)
		_, err = c.Write([]byte("never acknowledged"))
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, c.Close())
		assert.Equal(t, 5*time.Second, time.Since(began), "closing waits no longer than ever")
	})
}

// That nobody listens is learned from the system, by who reads and by who writes.
func TestEarlyDialToNobody(t *testing.T) {
	gone, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	addr := gone.LocalAddr().String()
	require.NoError(t, gone.Close())
	for range 20 {
		c, err := udp.Transport{}.DialEarly(t.Context(), addr)
		require.NoError(t, err)
		_, _ = c.Write([]byte("hello"))
		_, _ = c.Write([]byte("message"))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
		_, err = c.Read(make([]byte, 1))
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
		require.NoError(t, c.Close())
	}
}

// An early connection over sockets of the system, on which the listener speaks first; and one that
// both ends close.
func TestEarlyDialOverSockets(t *testing.T) {
	l, err := udp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	done := answering(t, l)
	c, err := udp.Transport{}.DialEarly(t.Context(), l.Addr().String())
	require.NoError(t, err)
	_, err = c.Write([]byte("hello"))
	require.NoError(t, err)
	requireRead(t, c, "hello")
	require.NoError(t, c.Close())
	<-done
	require.NoError(t, l.Close())
}

// greeting is an early datagram; it wants to be acknowledged at once.
func greeting(nonce uint64, p window.Packet) []byte {
	p.Request = true
	return p.Append(numbers(datagram.Early, nonce))
}

// answers are the packets of answers, by which a session speaks to an address that has not shown
// that it receives.
func answers(t *testing.T, datagrams [][]byte) (id uint64, packets []window.Packet) {
	t.Helper()
	for _, b := range datagrams {
		g, ok := datagram.Parse(b)
		require.True(t, ok)
		require.Equal(t, datagram.Answer, g.Kind)
		id = g.Session
		if len(g.Packet) > 0 {
			var p window.Packet
			require.NoError(t, p.Parse(g.Packet))
			packets = append(packets, p)
		}
	}
	return id, packets
}

// An address that somebody made up is sent no more than three times what came in its name, whatever
// the session has to say, how often somebody speaks in its name, and how the session ends; and the
// session ends soon.
func TestEarlyFromSpoofedAddresses(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		for n, end := range []func(net.Conn) error{
			func(net.Conn) error { return nil }, net.Conn.Close,
			func(c net.Conn) error { return c.(interface{ Abort() error }).Abort() },
		} {
			from := host(n + 2)
			came := greeting(7, text(1, 1, "hello"))
			limit := 3 * len(came)
			sent := sum(s.say(from, came))
			assert.Positive(t, sent)
			c, err := l.Accept()
			require.NoError(t, err)
			requireRead(t, c, "hello")
			_, err = c.Write(octets(50_000, 1))
			require.NoError(t, err)
			ended := make(chan error, 1)
			go func() { ended <- end(c) }()
			for k := range uint64(20) {
				time.Sleep(time.Second)
				sent += sum(s.say(from))
				assert.LessOrEqual(t, sent, limit)
				if k < 3 {
					came = greeting(7, text(2+k, 1, "hello"))
					limit += 3 * len(came)
					sent += sum(s.say(from, came))
				}
			}
			require.NoError(t, <-ended)
			_, err = c.Read(make([]byte, 1))
			assert.Error(t, err, "what nobody vouches for does not stay")
			_ = c.Close() // maybe again
		}
	})
}

// What did not fit the budget of an address comes when it has shown that it receives: by the
// session id.
func TestEarlyBudgetEndsWithProof(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		first := s.say(host(2), greeting(7, text(1, 1, "hello")))
		c, err := l.Accept()
		require.NoError(t, err)
		_, err = c.Write(octets(3000, 1))
		require.NoError(t, err)
		id, packets := answers(t, append(first, s.say(host(2))...))
		require.Len(t, packets, 1, "the acknowledgement; what was written is too long")
		s.say(host(3), data(id, text(2, 2, "x"))) // from elsewhere: it is not that address that received
		assert.Empty(t, s.say(host(2)))
		got := s.say(host(2), data(id, text(3, 2, "x")))
		assert.Greater(t, sum(got), 2400)
		s.say(host(2), data(id, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}))
		require.NoError(t, c.Close())
	})
}

// An early datagram that comes again, soon or late, in whatever state the session is then, is
// handled once. When all is forgotten, it opens another session: what it says in there its reader
// must not take twice, and nobody is deceived about who says it for longer than some seconds.
func TestEarlyReplayed(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		accepted := make(chan net.Conn, 10)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- c
			}
		}()
		replayed := greeting(7, text(1, 1, "once"))
		id, _ := answers(t, s.say(host(2), replayed))
		c := <-accepted
		requireRead(t, c, "once")
		again, _ := answers(t, s.say(host(2), replayed))
		assert.Equal(t, id, again)
		s.say(host(2), data(id, text(2, 2, " and again")))
		time.Sleep(35 * time.Second) // another period
		s.say(host(2), replayed)
		asked := s.ask(t, host(2), 7)
		assert.Equal(t, id, asked, "the session of that nonce, while it can be known")
		requireRead(t, c, " and again")
		s.say(host(2), data(id, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}))
		require.NoError(t, c.Close())
		s.say(host(2))
		got := s.say(host(2), replayed)
		require.Len(t, got, 1)
		assert.LessOrEqual(t, len(got[0]), 3*len(replayed))
		_, packets := answers(t, got)
		require.Len(t, packets, 1)
		assert.True(t, packets[0].Ack.Unknown, "it ended")
		assert.Empty(t, accepted)

		time.Sleep(2 * time.Minute)
		sent := sum(s.say(host(2), replayed))
		c = <-accepted
		requireRead(t, c, "once")
		began := time.Now()
		_, err := c.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.LessOrEqual(t, sent+sum(s.say(host(2))), 3*len(replayed))
		require.NoError(t, c.Close())
	})
}

// Whoever makes up a hundred thousand addresses gets a few sessions and a little memory; who is
// there gets in, by one round trip more. One address gets less.
func TestEarlyFlood(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, c net.Conn, id uint64) {
		opened := map[uint64]bool{}
		look := func() {
			synctest.Wait()
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.sent, host(1).String())
			for _, datagrams := range s.sent {
				maps.Copy(opened, sessionsOf(t, datagrams))
			}
			clear(s.sent)
		}
		for k := range uint64(100) {
			s.came <- parcel{host(2), greeting(k+1, text(1, 1, "of one peer"))}
		}
		look()
		assert.Len(t, opened, udp.PeerEarly)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const all = 100_000
		for k := range all {
			from := net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(k >> 16),
				byte(k >> 8), byte(k)}), 4000))
			s.came <- parcel{from, greeting(1, text(1, 1, "of many"))}
			if k%(all/80) == 0 { // over less than what an ended session is remembered for
				time.Sleep(time.Second)
				look()
			}
		}
		look()
		assert.Len(t, opened, udp.MaxEarly)
		runtime.GC()
		runtime.ReadMemStats(&after)
		assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(8<<20))
		s.say(host(1), data(id, text(2, 2, "still here")))
		requireRead(t, c, "still here")

		honest := greeting(5, text(1, 1, "honest"))
		name, packets := answers(t, s.say(host(3), honest))
		assert.Empty(t, packets)
		s.say(host(3), opening(name, 5, text(1, 1, "honest")))
		got, err := l.Accept()
		require.NoError(t, err)
		requireRead(t, got, "honest")
		s.say(host(3), data(name, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}))
		require.NoError(t, got.Close())

		time.Sleep(2 * time.Minute) // and it is forgotten
		_, packets = answers(t, s.say(host(4), honest))
		assert.Len(t, packets, 1)
		got, err = l.Accept()
		require.NoError(t, err)
		requireRead(t, got, "honest")
		require.NoError(t, got.(interface{ Abort() error }).Abort())
	})
}

// sessionsOf are the sessions that answers are of which have a packet.
func sessionsOf(t *testing.T, datagrams [][]byte) map[uint64]bool {
	ids := map[uint64]bool{}
	for i := range datagrams {
		if id, packets := answers(t, datagrams[i:i+1]); len(packets) > 0 {
			ids[id] = true
		}
	}
	return ids
}

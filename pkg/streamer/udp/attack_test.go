package udp_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/datagram"
	"github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// stage is the socket of a listener, on which a test plays everybody else. It runs within a
// synctest bubble.
type stage struct {
	tape
	came chan parcel
	sent map[string][][]byte // by address; tape's mu guards it
}

type parcel struct {
	from   net.Addr
	octets []byte
}

func newStage() *stage {
	return &stage{tape: tape{closed: make(chan struct{})}, came: make(chan parcel), sent: map[string][][]byte{}}
}

func (s *stage) ReadFrom(p []byte) (int, net.Addr, error) {
	select {
	case b := <-s.came:
		return copy(p, b.octets), b.from, nil
	case <-s.closed:
		return 0, nil, net.ErrClosed
	}
}

func (s *stage) WriteTo(p []byte, to net.Addr) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[to.String()] = append(s.sent[to.String()], slices.Clone(p))
	return len(p), nil
}

// say sends datagrams from an address, and gives what is sent there until all is quiet.
func (s *stage) say(from net.Addr, datagrams ...[]byte) [][]byte {
	for _, b := range datagrams {
		s.came <- parcel{from, b}
	}
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := s.sent[from.String()]
	delete(s.sent, from.String())
	return got
}

func host(n int) net.Addr {
	return net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{198, 51, byte(n >> 8), byte(n)}), 4000))
}

// numbers is a datagram of them, or what stands before its packet.
func numbers(k datagram.Kind, ns ...uint64) []byte {
	b := []byte{byte(k)}
	for _, n := range ns {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	return b
}

// ask gets a session id.
func (s *stage) ask(t *testing.T, from net.Addr, nonce uint64) uint64 {
	t.Helper()
	got := s.say(from, append(numbers(datagram.Ask, nonce), make([]byte, 23)...))
	require.NotEmpty(t, got)
	d, ok := datagram.Parse(got[len(got)-1])
	require.True(t, ok && d.Kind == datagram.Answer && d.Nonce == nonce)
	return d.Session
}

func opening(id, nonce uint64, p window.Packet) []byte {
	return p.Append(numbers(datagram.Open, id, nonce))
}

func data(id uint64, p window.Packet) []byte { return p.Append(numbers(datagram.Data, id)) }

// text is a packet with whole messages, the first of a number.
func text(number, first uint64, texts ...string) window.Packet {
	p := window.Packet{Number: number, Floor: 1}
	for i, s := range texts {
		p.Units = append(p.Units, window.Unit{Number: first + uint64(i), First: true, Last: true, Payload: []byte(s)})
	}
	return p
}

func sum(datagrams [][]byte) (n int) {
	for _, b := range datagrams {
		n += len(b)
	}
	return n
}

// onStage plays with a listener that has one honest session.
func onStage(t *testing.T, play func(t *testing.T, s *stage, l net.Listener, c net.Conn, id uint64)) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		l, err := udp.Listen(s, udp.Config{Linger: time.Second})
		require.NoError(t, err)
		id := s.ask(t, host(1), 11)
		s.say(host(1), opening(id, 11, text(1, 1, "hello")))
		c, err := l.Accept()
		require.NoError(t, err)
		requireRead(t, c, "hello")
		play(t, s, l, c, id)
		require.NoError(t, c.Close())
		require.NoError(t, l.Close())
	})
}

func requireRead(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	_, err := io.ReadFull(c, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// Nobody is sent more than three times what came in his name, whatever is said; and what others say
// opens nothing.
func TestSpoofedAddresses(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, c net.Conn, id uint64) {
		_, err := c.Write(octets(20_000, 1)) // there is much to be sent
		require.NoError(t, err)
		other := s.ask(t, host(2), 12)
		for n, datagrams := range [][][]byte{
			{append(numbers(datagram.Ask, 1), make([]byte, 23)...), append(numbers(datagram.Ask, 2), make([]byte,
				23)...)},
			{opening(other, 12, text(1, 1, "with the id of another address"))},
			{opening(id, 11, text(2, 2, "x")), data(id, text(3, 2, "x"))},
			{data(id, window.Packet{HasAck: true, Ack: window.AckPacket{Echo: 1}}), data(id, window.Packet{HasAck: true,
				Ack: window.AckPacket{Echo: 1}})},
			{data(12345, text(1, 1, "x")), data(12345, window.Packet{HasAck: true})},
			{numbers(datagram.Challenge, id, 5), numbers(datagram.Proof, id, 5), numbers(datagram.Answer, 5, id)},
			{data(id, text(4, 2, "x"))[:12], {4}, {}},
		} {
			for k := range 50 { // each from an address that never answers
				from := host(100 + 100*n + k)
				got := s.say(from, datagrams...)
				assert.LessOrEqual(t, sum(got), 3*sum(datagrams), "case %d: %x", n, got)
				time.Sleep(2 * time.Second)
				assert.Empty(t, s.say(from), "case %d: said later, without being asked", n)
			}
		}
		assert.Equal(t, host(1).String(), c.RemoteAddr().String())
		assert.NotEmpty(t, s.say(host(1)), "the honest address is sent what is there")
		accepted := make(chan error, 1)
		go func() { _, err := l.Accept(); accepted <- err }()
		synctest.Wait()
		assert.Empty(t, accepted, "somebody else opened a session")
		requireRead(t, c, "x")
		// The session knows that all arrived, and ends.
		s.say(host(1), data(id, window.Packet{HasAck: true, Ack: window.AckPacket{Unknown: true}}))
	})
}

// An ask with the nonce 0, which no honest one has, is not answered; the next one is.
func TestAskWithoutNonce(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, _ net.Listener, _ net.Conn, _ uint64) {
		assert.Empty(t, s.say(host(2), append(numbers(datagram.Ask, 0), make([]byte, 23)...)))
		s.ask(t, host(2), 1)
	})
}

// An answer that is used too late opens nothing, and who used it learns that.
func TestOpeningTooLate(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		id := s.ask(t, host(2), 5)
		time.Sleep(61 * time.Second)
		got := s.say(host(2), opening(id, 5, text(1, 1, "late")))
		require.Len(t, got, 1)
		d, ok := datagram.Parse(got[0])
		require.True(t, ok)
		var p window.Packet
		require.NoError(t, p.Parse(d.Packet))
		assert.True(t, p.Ack.Unknown)
		id = s.ask(t, host(2), 5)
		s.say(host(2), opening(id, 5, text(1, 1, "again")))
		c, err := l.Accept()
		require.NoError(t, err)
		requireRead(t, c, "again")
		require.NoError(t, c.Close())
	})
}

// Replayed, the opening of a session that lives opens no other, and what was delivered stays
// delivered once.
func TestReplayedHandshake(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, c net.Conn, id uint64) {
		for range 3 {
			s.ask(t, host(1), 11)
			s.say(host(1), opening(id, 11, text(1, 1, "hello")), opening(id, 11, text(2, 1, "hello")))
			s.say(host(7), opening(id, 11, text(1, 1, "hello")))
			time.Sleep(40 * time.Second)
		}
		accepted := make(chan error, 1)
		go func() { _, err := l.Accept(); accepted <- err }()
		synctest.Wait()
		assert.Empty(t, accepted)
		s.say(host(1), data(id, text(3, 2, " again")))
		requireRead(t, c, " again")
		assert.Equal(t, host(1).String(), c.RemoteAddr().String())
	})
}

// Acknowledgements of billions, numbers up to the last there is: dropped, at no cost, and the
// session goes on.
func TestNumbersOfAnAttacker(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, _ net.Listener, c net.Conn, id uint64) {
		_, err := c.Write([]byte("there is something to acknowledge"))
		require.NoError(t, err)
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range uint64(1000) {
			for _, p := range []window.Packet{
				{HasAck: true, Ack: window.AckPacket{
					Echo: 1, Ranges: []window.Range{{First: 2, Last: 1_000_000_000 + i}},
				}},
				{HasAck: true, Ack: window.AckPacket{Done: math.MaxInt64, Echo: math.MaxUint64}},
				{HasAck: true, Ack: window.AckPacket{Echo: 1, Nacks: []window.Range{{First: 1, Last: 1 << 60}}}},
				{Number: math.MaxUint64, Floor: math.MaxInt64, Units: []window.Unit{{Number: math.MaxInt64,
					First: true, Last: true}}},
				{Number: 5 + i, Floor: 1, Units: []window.Unit{{Number: math.MaxInt64 - i, First: true, Last: true}}},
				{Number: 5 + i, Floor: 1, Closing: true, Last: math.MaxInt64, Units: []window.Unit{{Number: 1 << 40,
					Last: true}}},
				{Number: 5 + i, Floor: 1 << 50, Terminate: true},
			} {
				s.came <- parcel{host(1), data(id, p)}
			}
		}
		synctest.Wait()
		runtime.ReadMemStats(&after)
		assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
		s.say(host(1), data(id, text(2, 2, "go on")))
		requireRead(t, c, "go on")
		s.say(host(1), data(id, window.Packet{HasAck: true, Ack: window.AckPacket{Done: 1, Echo: 1}}))
	})
}

// Ten thousand sessions that are opened and never go on: memory is bounded, the oldest make room,
// those that said something stay, and who comes honestly gets in.
func TestHalfOpenSessions(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, c net.Conn, id uint64) {
		var accepted []net.Conn
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		const all = 10_000
		for n := range all {
			nonce := uint64(n) + 1
			half := s.ask(t, host(300+n), nonce)
			s.say(host(300+n), opening(half, nonce, window.Packet{Number: 1, Floor: 1, Request: true}))
			if n < 2000 { // then nobody accepts any more
				got, err := l.Accept()
				require.NoError(t, err)
				accepted = append(accepted, got)
			}
			if n%1000 == 0 {
				s.mu.Lock()
				clear(s.sent)
				s.mu.Unlock()
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		assert.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(40<<20), "octets for %d sessions", all)
		_, err := accepted[0].Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF, "the oldest was dropped")
		s.say(host(1), data(id, text(2, 2, "still here")))
		requireRead(t, c, "still here")
		honest := s.ask(t, host(2), 3)
		s.say(host(2), opening(honest, 3, text(1, 1, "honest")))
		for found := false; !found; {
			got, err := l.Accept()
			require.NoError(t, err)
			if found = got.RemoteAddr().String() == host(2).String(); found {
				requireRead(t, got, "honest")
			}
			accepted = append(accepted, got)
		}
		assert.Less(t, len(accepted), 2000+200)
		for _, c := range accepted {
			go func() { _ = c.Close() }()
		}
		time.Sleep(time.Minute)
	})
}

// A connection that is turned away waits for nobody, and leaves no place taken; who opened it
// learns that.
func TestAbortWaitsForNobody(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		id := s.ask(t, host(2), 3)
		s.say(host(2), opening(id, 3, text(1, 1, "half a hello")))
		c, err := l.Accept()
		require.NoError(t, err)
		_, err = c.Write([]byte("never acknowledged"))
		require.NoError(t, err)
		before := time.Now()
		require.NoError(t, c.(interface{ Abort() error }).Abort())
		assert.Equal(t, before, time.Now())
		_, err = c.Write([]byte("more"))
		require.Error(t, err)
		s.mu.Lock()
		all := slices.Clone(s.sent[host(2).String()])
		s.mu.Unlock()
		var last window.Packet
		g, ok := datagram.Parse(all[len(all)-1])
		require.True(t, ok)
		require.NoError(t, last.Parse(g.Packet))
		assert.True(t, last.Ack.Unknown)
		require.NoError(t, c.Close(), "once more")
	})
}

// Parts of messages that never become whole, in many sessions at once, keep what a session may
// keep, and end with the silence.
func TestMessagesNeverWhole(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage, l net.Listener, _ net.Conn, _ uint64) {
		part := make([]byte, 5000) // a window of them is more than may be kept
		var all []net.Conn
		before := heap()
		for n := range 5 {
			id := s.ask(t, host(n+2), 4)
			s.say(host(n+2), opening(id, 4, window.Packet{Number: 1, Floor: 1}))
			c, err := l.Accept()
			require.NoError(t, err)
			all = append(all, c)
			for k := range uint64(3000) {
				s.came <- parcel{host(n + 2), data(id, window.Packet{Number: 2 + k, Floor: 1,
					Units: []window.Unit{{Number: 2 + k%1000, Payload: part}}})}
			}
		}
		synctest.Wait()
		assert.Less(t, heap()-before, int64(len(all))*(3<<19), "what a session may keep, and half of it for its state")
		began := time.Now()
		for i, c := range all {
			_, err := c.Read(make([]byte, 1))
			assert.ErrorIs(t, err, io.ErrUnexpectedEOF, fmt.Sprint(i))
			require.NoError(t, c.Close())
		}
		assert.Less(t, time.Since(began), 20*time.Minute)
	})
}

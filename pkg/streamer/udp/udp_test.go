package udp_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// connect gives both ends of a connection over an emulated link, with its listener.
func connect(t *testing.T, profile string, cfg udp.Config, wrap func(near, far net.PacketConn) (net.PacketConn,
	net.PacketConn)) (dialled, accepted net.Conn, l net.Listener) {
	t.Helper()
	p, err := link.ParseProfile(profile)
	require.NoError(t, err)
	near, far, err := link.Packets(nil, p)
	require.NoError(t, err)
	if wrap != nil {
		near, far = wrap(near, far)
	}
	l, err = udp.Listen(far, cfg)
	require.NoError(t, err)
	dialled, err = udp.Dial(t.Context(), near, far.LocalAddr(), cfg)
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	return dialled, accepted, l
}

func octets(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// Whatever the link does, both directions carry all bytes in order, and then end.
func TestOverBadLinks(t *testing.T) {
	for _, profile := range []string{
		"lte", "14k4,loss=5%,seed=1", "gprs,loss=10%,burst=3,seed=2",
		"geo,loss=20%,reorder=10%,dup=5%,jitter=100ms,seed=3", "3g,loss=2%,outage=5s/20s,seed=4",
		"wifi,loss=30%,mtu=1228,seed=5",
	} {
		t.Run(profile, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, l := connect(t, profile, udp.Config{Linger: time.Hour}, nil)
				require.NoError(t, l.Close(), "connections outlive their listener")
				size := 30_000
				if profile == "lte" {
					size = 3_000_000 // more than may be held
				}
				var both sync.WaitGroup
				for i, ends := range [][2]net.Conn{{a, b}, {b, a}} {
					both.Go(func() {
						n, err := ends[0].Write(octets(size, i))
						assert.NoError(t, err)
						assert.Equal(t, size, n)
						assert.NoError(t, ends[0].(interface{ CloseWrite() error }).CloseWrite())
					})
					both.Go(func() {
						got, err := io.ReadAll(ends[1])
						assert.NoError(t, err)
						assert.True(t, bytes.Equal(octets(size, i), got))
					})
				}
				both.Wait()
				both.Go(func() { assert.NoError(t, a.Close()) })
				both.Go(func() { assert.NoError(t, b.Close()) })
				both.Wait()
				assert.ErrorIs(t, a.Close(), net.ErrClosed)
			})
		})
	}
}

// Who does not read stops who writes, and memory is bounded.
func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, l := connect(t, "wifi", udp.Config{}, nil)
		require.NoError(t, a.SetWriteDeadline(time.Now().Add(time.Minute)))
		n, err := a.Write(make([]byte, 20<<20))
		assert.ErrorContains(t, err, "timeout")
		assert.Less(t, n, 4<<20)
		require.NoError(t, a.SetWriteDeadline(time.Time{}))
		got := make([]byte, n)
		_, err = io.ReadFull(b, got)
		require.NoError(t, err)
		require.NoError(t, a.Close())
		_, err = b.Read(got)
		assert.ErrorIs(t, err, io.EOF)
		require.NoError(t, b.Close())
		require.NoError(t, l.Close())
	})
}

// The peer is gone without a word: reading and writing end after the inactivity time, closing
// after the linger time.
func TestOtherEndIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mute atomic.Bool
		a, b, l := connect(t, "lte", udp.Config{Inactivity: time.Minute}, func(near,
			far net.PacketConn) (net.PacketConn, net.PacketConn) {
			drop := func([]byte) bool { return !mute.Load() }
			return filter{near, drop}, filter{far, drop}
		})
		mute.Store(true)
		began := time.Now()
		_, err := a.Read(make([]byte, 1))
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Less(t, time.Since(began), 2*time.Minute)
		_, err = a.Write([]byte("x"))
		assert.ErrorIs(t, err, io.ErrClosedPipe)
		require.NoError(t, a.Close())
		began = time.Now()
		require.NoError(t, b.Close())
		assert.LessOrEqual(t, time.Since(began), 5*time.Second)
		require.NoError(t, l.Close())
	})
}

// filter passes on what it likes.
type filter struct {
	net.PacketConn
	pass func(b []byte) bool
}

func (f filter) WriteTo(b []byte, to net.Addr) (int, error) {
	if !f.pass(b) {
		return len(b), nil
	}
	return f.PacketConn.WriteTo(b, to)
}

// A session that ended is not opened again by the datagrams that opened it.
func TestReplayedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard [][]byte
		var socket net.PacketConn
		a, b, l := connect(t, "lte", udp.Config{}, func(near, far net.PacketConn) (net.PacketConn, net.PacketConn) {
			socket = near
			return filter{keep{near}, func(b []byte) bool {
				heard = append(heard, append([]byte(nil), b...))
				return true
			}}, far
		})
		_, err := a.Write([]byte("once"))
		require.NoError(t, err)
		require.NoError(t, a.(interface{ CloseWrite() error }).CloseWrite())
		got, err := io.ReadAll(b)
		require.NoError(t, err)
		assert.Equal(t, "once", string(got))
		require.NoError(t, b.Close())
		require.NoError(t, a.Close())
		again := make(chan net.Conn, 1)
		go func() {
			c, err := l.Accept()
			assert.True(t, (c == nil) == (err != nil))
			again <- c
		}()
		require.NotEmpty(t, heard)
		for range 3 {
			for _, datagram := range heard {
				_, err := socket.WriteTo(datagram, nil)
				require.NoError(t, err)
			}
			time.Sleep(50 * time.Second)
		}
		synctest.Wait()
		select {
		case c := <-again:
			assert.Nil(t, c, "it was opened again")
		default:
		}
		require.NoError(t, l.Close())
		assert.Nil(t, <-again)
		require.NoError(t, socket.Close())
	})
}

// keep leaves its socket open, for who replays; reading ends.
type keep struct{ net.PacketConn }

func (k keep) Close() error { return k.SetReadDeadline(time.Unix(1, 0)) }

// Who has not shown that it receives gets at most three times the bytes that it sent, and no
// session.
func TestNoAmplification(t *testing.T) {
	l, err := udp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	c, err := net.Dial("udp", l.Addr().String())
	require.NoError(t, err)
	id := binary.BigEndian.AppendUint64(nil, 0x1234567890abcdef)
	packet := []byte{1, 1, 1, 0, 1, 2, 'x'} // a message of one byte
	answers := 0
	for name, datagram := range map[string][]byte{
		"nothing":          {},
		"short ask":        append([]byte{1}, make([]byte, 30)...),
		"ask":              append([]byte{1, 1}, make([]byte, 30)...),
		"ask with nonce 0": append([]byte{1}, make([]byte, 31)...),
		"answer":           append([]byte{2}, make([]byte, 16)...),
		"open":             append(append(append([]byte{3}, id...), id...), packet...),
		"data":             append(append([]byte{4}, id...), packet...),
		"acknowledgement":  append(append([]byte{4}, id...), 0x10, 0, 0, 0, 0),
		"another protocol": []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		_, err := c.Write(datagram)
		require.NoError(t, err)
		// What comes after is answered: so all before it was looked at.
		probe := append([]byte{1}, make([]byte, 31)...)
		copy(probe[1:], name+"--------")
		_, err = c.Write(probe)
		require.NoError(t, err)
		got := make([]byte, 2000)
		for sum := 0; ; {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(time.Minute)))
			n, err := c.Read(got)
			require.NoError(t, err, name)
			if n == 17 && bytes.Equal(got[1:9], probe[1:9]) {
				break
			}
			answers++
			sum += n
			assert.LessOrEqual(t, sum, 3*len(datagram), name)
		}
	}
	assert.Equal(t, 3, answers, "to the ask, and to opening and data of a session that is not there")
	require.NoError(t, c.Close())
	require.NoError(t, l.Close())
}

func TestDialGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := link.ParseProfile("lte,loss=100%")
		require.NoError(t, err)
		near, far, err := link.Packets(nil, p)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err = udp.Dial(ctx, near, far.LocalAddr(), udp.Config{})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 3*time.Second, time.Since(began))
		_, err = near.WriteTo(nil, nil)
		assert.ErrorIs(t, err, net.ErrClosed, "the socket is closed")
		near, _, err = link.Packets(nil, p)
		require.NoError(t, err)
		_, err = udp.Dial(t.Context(), near, far.LocalAddr(), udp.Config{})
		var timeout net.Error
		require.True(t, errors.As(err, &timeout) && timeout.Timeout(), "%v", err)
		near, _, err = link.Packets(nil, p)
		require.NoError(t, err)
		_, err = udp.Listen(near, udp.Config{Datagram: 10})
		assert.Error(t, err)
	})
}

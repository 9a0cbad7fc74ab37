package udp

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stranded is a socket whose address the machine loses.
type stranded struct {
	net.Conn
	gone atomic.Bool
}

func (s *stranded) Write(b []byte) (int, error) {
	if s.gone.Load() {
		return 0, &net.OpError{Op: "write", Err: syscall.EINVAL}
	}
	return s.Conn.Write(b)
}

// The machine changes networks: its socket can send nothing any more, and for a moment there is no
// other. Then the connection goes on, from another address, and nothing is lost.
func TestRoaming(t *testing.T) {
	l, err := Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	var network atomic.Bool
	network.Store(true)
	sockets := 0
	dial := func() (net.Conn, error) {
		if !network.Load() {
			return nil, syscall.ENETUNREACH
		}
		sockets++
		return net.Dial("udp", l.Addr().String())
	}
	first, err := dial()
	require.NoError(t, err)
	home := &stranded{Conn: first}
	socket := &roaming{conn: home, dial: dial}
	c, err := Dial(t.Context(), socket, l.Addr(), Config{})
	require.NoError(t, err)
	there, err := l.Accept()
	require.NoError(t, err)
	before := there.RemoteAddr().String()
	talk := func(text string) {
		t.Helper()
		for _, ends := range [][2]net.Conn{{c, there}, {there, c}} {
			_, err := ends[0].Write([]byte(text))
			require.NoError(t, err)
			got := make([]byte, len(text))
			require.NoError(t, ends[1].SetReadDeadline(time.Now().Add(30*time.Second)))
			_, err = io.ReadFull(ends[1], got)
			require.NoError(t, err)
			assert.Equal(t, text, string(got))
		}
	}
	talk("at home")
	network.Store(false)
	home.gone.Store(true)
	_, err = socket.WriteTo([]byte("x"), nil)
	assert.ErrorIs(t, err, syscall.EINVAL, "nothing else can be had")
	network.Store(true)
	talk("on the road")
	assert.Equal(t, 2, sockets)
	assert.NotEqual(t, before, there.RemoteAddr().String())
	assert.NotEqual(t, first.LocalAddr(), socket.LocalAddr())
	require.NoError(t, socket.SetDeadline(time.Time{}))
	require.NoError(t, c.Close())
	require.NoError(t, there.Close())
	require.NoError(t, l.Close())
	_, err = socket.WriteTo([]byte("x"), nil)
	assert.ErrorIs(t, err, net.ErrClosed)
	assert.Equal(t, 2, sockets, "who closed it wants no other")
}

// That nobody listens there is no reason to move.
func TestRoamingStays(t *testing.T) {
	r := &roaming{conn: &stranded{}, dial: func() (net.Conn, error) { return nil, errors.New("asked for another") }}
	for _, why := range append([]error{net.ErrClosed}, otherwise...) {
		assert.False(t, r.replace(r.conn, &net.OpError{Err: why}))
		assert.Zero(t, r.tried)
	}
	_, err := Transport{Through: func(net.PacketConn, net.Addr) (net.PacketConn, error) {
		return nil,
			errors.New("no link")
	}}.Dial(context.Background(), "127.0.0.1:9")
	assert.ErrorContains(t, err, "no link")
}

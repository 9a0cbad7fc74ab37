package tcp_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// option reads a number that the system keeps of a connection.
func option(t *testing.T, conn net.Conn, level, name int) (value int) {
	t.Helper()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	require.NoError(t, err)
	var bad error
	require.NoError(t, raw.Control(func(fd uintptr) { value, bad = syscall.GetsockoptInt(int(fd), level, name) }))
	require.NoError(t, bad)
	return value
}

// TestSilentEndsAreFoundOut: what the system is told to find out about an end that is gone, at both
// ends of a connection.
func TestSilentEndsAreFoundOut(t *testing.T) {
	const userTimeout = 18 // of linux/tcp.h
	l, err := tcp.Transport{}.Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	dialled, err := tcp.Transport{}.Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	for name, conn := range map[string]net.Conn{"dialled": dialled, "accepted": accepted} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, 1, option(t, conn, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE))
			assert.Equal(t, 30, option(t, conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE))
			assert.Equal(t, 15, option(t, conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL))
			assert.Equal(t, 6, option(t, conn, syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT))
			assert.Equal(t, 120_000, option(t, conn, syscall.IPPROTO_TCP, userTimeout))
			require.NoError(t, conn.Close())
		})
	}
	require.NoError(t, l.Close())
}

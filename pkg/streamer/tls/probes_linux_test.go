package tls_test

import (
	"crypto/tls"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// What TCP below does about silent ends, at both of them.
func TestProbesOfTCPBelow(t *testing.T) {
	const userTimeout = 18 // of linux/tcp.h
	a := shared.NewAuthority(t)
	l, err := streamtls.New(&tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}},
		nil).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	dialled, err := streamtls.New(&tls.Config{RootCAs: a.Pool()}, nil).Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	accepted, err := l.Accept()
	require.NoError(t, err)
	for _, conn := range []net.Conn{dialled, accepted} {
		below := conn
		for {
			inner, ok := below.(interface{ NetConn() net.Conn })
			if !ok {
				break
			}
			below = inner.NetConn()
		}
		raw, err := below.(*net.TCPConn).SyscallConn()
		require.NoError(t, err)
		require.NoError(t, raw.Control(func(fd uintptr) {
			for name, want := range map[int]int{syscall.TCP_KEEPIDLE: 30, userTimeout: 120_000} {
				got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name)
				assert.NoError(t, err)
				assert.Equal(t, want, got)
			}
		}))
		require.NoError(t, conn.Close())
	}
	require.NoError(t, l.Close())
}

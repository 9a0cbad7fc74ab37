package streamer_test

import (
	"context"
	cryptotls "crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// transports are all there are, with an address each to listen at.
var transports = map[string]struct {
	make   func(t *testing.T) streamer.Transport
	listen string
}{
	"tcp":    {func(*testing.T) streamer.Transport { return tcp.Transport{} }, "127.0.0.1:0"},
	"tls":    {secure, "127.0.0.1:0"},
	"udp":    {func(*testing.T) streamer.Transport { return udp.Transport{} }, "127.0.0.1:0"},
	"inproc": {func(*testing.T) streamer.Transport { return &inproc.Transport{Buffer: 1000} }, "here:0"},
}

// secure is TLS between ends that trust each other.
func secure(t *testing.T) streamer.Transport {
	a := shared.NewAuthority(t)
	return tls.New(&cryptotls.Config{Certificates: []cryptotls.Certificate{a.Issue(time.Hour, "127.0.0.1")},
		RootCAs: a.Pool()}, nil)
}

// join is a connection between a dialler and a listener.
func join(t *testing.T, tr streamer.Transport, listen string) (dialled, accepted net.Conn) {
	t.Helper()
	l, err := tr.Listen(t.Context(), listen)
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	got := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		assert.NoError(t, err)
		got <- c
	}()
	dialled, err = tr.Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	accepted = <-got
	t.Cleanup(func() {
		_ = dialled.Close()
		_ = accepted.Close()
	})
	return dialled, accepted
}

func TestTransports(t *testing.T) {
	require.NotEmpty(t, transports)
	for name, tr := range transports {
		t.Run(name, func(t *testing.T) {
			t.Run("carries a stream", func(t *testing.T) {
				here, there := join(t, tr.make(t), tr.listen)
				p := connectOver(t, pairing{handlerb: echo}, here, there)
				r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, make([]byte, 100000)))
				require.NoError(t, err)
				assert.Len(t, body(t, r), 100000)
				require.NoError(t, p.a.Close())
				require.NoError(t, p.b.Close())
			})
			t.Run("ends half", func(t *testing.T) {
				a, b := join(t, tr.make(t), tr.listen)
				_, err := a.Write([]byte("first"))
				require.NoError(t, err)
				require.NoError(t, a.(interface{ CloseWrite() error }).CloseWrite())
				got, err := io.ReadAll(b)
				require.NoError(t, err)
				assert.Equal(t, "first", string(got))
				_, err = b.Write([]byte("back"))
				require.NoError(t, err)
				require.NoError(t, b.Close())
				got, err = io.ReadAll(a)
				require.NoError(t, err)
				assert.Equal(t, "back", string(got))
			})
			t.Run("has deadlines", func(t *testing.T) {
				a, b := join(t, tr.make(t), tr.listen)
				require.NoError(t, a.SetReadDeadline(time.Now().Add(time.Millisecond)))
				_, err := a.Read(make([]byte, 1))
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
				require.NoError(t, a.SetReadDeadline(time.Time{}))
				_, err = b.Write([]byte("x"))
				require.NoError(t, err)
				_, err = a.Read(make([]byte, 1))
				require.NoError(t, err)
				require.NoError(t, a.SetWriteDeadline(time.Now().Add(-time.Second)))
				_, err = a.Write([]byte("x"))
				assert.ErrorIs(t, err, os.ErrDeadlineExceeded)
			})
			t.Run("a deadline ends what waits", func(t *testing.T) {
				a, _ := join(t, tr.make(t), tr.listen)
				errs := make(chan error, 1)
				go func() {
					_, err := a.Read(make([]byte, 1))
					errs <- err
				}()
				require.NoError(t, a.SetDeadline(time.Unix(1, 0)))
				assert.ErrorIs(t, <-errs, os.ErrDeadlineExceeded)
			})
			t.Run("close ends what waits", func(t *testing.T) {
				a, _ := join(t, tr.make(t), tr.listen)
				errs := make(chan error, 1)
				go func() {
					_, err := a.Read(make([]byte, 1))
					errs <- err
				}()
				require.NoError(t, a.Close())
				assert.Error(t, <-errs)
			})
			t.Run("nobody listens", func(t *testing.T) {
				tr := tr.make(t)
				l, err := tr.Listen(t.Context(), addrOf(t, tr))
				require.NoError(t, err)
				_, err = tr.Listen(t.Context(), l.Addr().String())
				assert.Error(t, err, "the address is taken")
				addr := l.Addr().String()
				require.NoError(t, l.Close())
				_, err = l.Accept()
				assert.ErrorIs(t, err, net.ErrClosed)
				_, err = tr.Dial(t.Context(), addr)
				assert.Error(t, err)
			})
			t.Run("context ends the dialling", func(t *testing.T) {
				tr := tr.make(t)
				l, err := tr.Listen(t.Context(), addrOf(t, tr))
				require.NoError(t, err)
				defer func() { _ = l.Close() }()
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				_, err = tr.Dial(ctx, l.Addr().String())
				assert.True(t, errors.Is(err, context.Canceled) || err != nil && err.Error() != "", "%v", err)
			})
		})
	}
}

// addrOf is an address the transport takes a free one for.
func addrOf(t *testing.T, tr streamer.Transport) string {
	t.Helper()
	switch tr.(type) {
	case tcp.Transport, *tls.Transport:
		return "127.0.0.1:0"
	}
	return ":0"
}

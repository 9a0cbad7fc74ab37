package tls_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/shared"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo listens and gives back what comes.
func echo(t *testing.T, cfg *tls.Config) string {
	t.Helper()
	l, err := streamtls.New(cfg, nil).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(conn, conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-done
	})
	return l.Addr().String()
}

func exchange(t *testing.T, conn net.Conn) *tls.Conn {
	t.Helper()
	_, err := conn.Write([]byte("words"))
	require.NoError(t, err)
	secure := conn.(*tls.Conn)
	require.NoError(t, secure.CloseWrite())
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	assert.Equal(t, "words", string(got))
	require.NoError(t, conn.Close())
	return secure
}

// A stream that is opened anew by the same transport resumes the session, with TLS 1.3 and the ALPN
// name each time.
func TestResumption(t *testing.T) {
	a := shared.NewAuthority(t)
	addr := echo(t, &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}})
	client := streamtls.New(&tls.Config{RootCAs: a.Pool()}, nil)
	for times := range 3 {
		conn, err := client.Dial(t.Context(), addr)
		require.NoError(t, err)
		state := exchange(t, conn).ConnectionState()
		assert.Equal(t, times > 0, state.DidResume)
		assert.EqualValues(t, tls.VersionTLS13, state.Version)
		assert.Equal(t, "hhfr/1", state.NegotiatedProtocol)
	}
}

// Certificates are checked at both ends, and the error says what is wrong.
func TestCertificates(t *testing.T) {
	a, other := shared.NewAuthority(t), shared.NewAuthority(t)
	client := a.Issue(time.Hour)
	good := a.Issue(time.Hour, "127.0.0.1")
	for name, tc := range map[string]struct {
		server tls.Certificate
		client *tls.Config
		want   any
	}{
		"unknown authority": {other.Issue(time.Hour, "127.0.0.1"), &tls.Config{RootCAs: a.Pool()},
			new(x509.UnknownAuthorityError)},
		"expired": {a.Issue(-time.Hour, "127.0.0.1"), &tls.Config{RootCAs: a.Pool()},
			new(x509.CertificateInvalidError)},
		"wrong host": {a.Issue(time.Hour, "far.example"), &tls.Config{RootCAs: a.Pool()},
			new(x509.HostnameError)},
		"named host": {a.Issue(time.Hour, "far.example"), &tls.Config{RootCAs: a.Pool(),
			ServerName: "far.example"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			addr := echo(t, &tls.Config{Certificates: []tls.Certificate{tc.server}})
			conn, err := streamtls.New(tc.client, nil).Dial(t.Context(), addr)
			if tc.want == nil {
				require.NoError(t, err)
				exchange(t, conn)
				return
			}
			require.ErrorAs(t, err, tc.want)
		})
	}
	t.Run("mutual", func(t *testing.T) {
		addr := echo(t, &tls.Config{Certificates: []tls.Certificate{good}, ClientCAs: a.Pool(),
			ClientAuth: tls.RequireAndVerifyClientCert})
		conn, err := streamtls.New(&tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{client}},
			nil).Dial(t.Context(), addr)
		require.NoError(t, err)
		exchange(t, conn)
		conn, err = streamtls.New(&tls.Config{RootCAs: a.Pool()}, nil).Dial(t.Context(), addr)
		require.NoError(t, err, "TLS 1.3 tells with the first byte")
		_, err = io.ReadAll(conn)
		require.ErrorContains(t, err, "certificate required")
		require.NoError(t, conn.Close())
	})
}

// A server that speaks TLS and nothing of streams, or no TLS 1.3, gets none.
func TestOtherServers(t *testing.T) {
	a := shared.NewAuthority(t)
	for name, tc := range map[string]struct {
		server *tls.Config
		want   string
	}{
		"no ALPN":    {&tls.Config{}, "takes no streams"},
		"other ALPN": {&tls.Config{NextProtos: []string{"h2", "http/1.1"}}, "no application protocol"},
		"TLS 1.2": {&tls.Config{MaxVersion: tls.VersionTLS12, NextProtos: []string{"hhfr/1"}},
			"protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.server.Certificates = []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}
			l, err := tls.Listen("tcp", "127.0.0.1:0", tc.server)
			require.NoError(t, err)
			done := make(chan struct{})
			go func() {
				defer close(done)
				if conn, err := l.Accept(); err == nil {
					_, _ = io.Copy(io.Discard, conn)
					_ = conn.Close()
				}
			}()
			_, err = streamtls.New(&tls.Config{RootCAs: a.Pool()}, nil).Dial(t.Context(), l.Addr().String())
			require.ErrorContains(t, err, tc.want)
			require.NoError(t, l.Close())
			<-done
		})
	}
	_, err := streamtls.New(nil, nil).Dial(t.Context(), "no port")
	require.Error(t, err)
}

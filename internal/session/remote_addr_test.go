package session_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// witness is a service that records the senders of its requests.
type witness struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (s *witness) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.mu.Unlock()
	repeat(w, r)
}

func (s *witness) all() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// A request over a stream comes from the address of the stream's connection, like a plain one: in
// the first call, in later ones, and where the session is met again; in TLS with the state of the
// connection.
func TestRequestsAreFromTheirConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("secure ", secure), func(t *testing.T) {
			w := &witness{}
			d := open(t, w, secure, nil)
			cfg := d.config(negotiate.Auto)
			for range 2 {
				s := dial(t, d.url, cfg)
				say(t, s, "first")
				say(t, s, "second")
				require.NoError(t, s.Close())
				cfg.Mode = negotiate.Met
			}
			require.Len(t, w.all(), 4)
			for i, r := range w.all() {
				from(t, r, secure, i)
			}
		})
	}
}

// The same over a listener of its own, where a stream begins without a request.
func TestRequestsOfAnOfferAreFromTheirConnection(t *testing.T) {
	authority := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour, "127.0.0.1")}}
	l, err := streamtls.New(own, nil).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	w := &witness{}
	h, err := responder.NewHandler(w, responder.Config{Addresses: map[string]string{"tls": l.Addr().String()}})
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- h.ServeStreams(context.Background(), l) }()
	server := httptest.NewUnstartedServer(h)
	server.TLS = own
	server.StartTLS()
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, h.Close())
		require.NoError(t, <-done)
	})
	cfg := trusting(t, authority)
	s := dial(t, server.URL, cfg)
	say(t, s, "call")
	require.True(t, s.Agreed().HHFR, s.Agreed().Why)
	require.NoError(t, s.Close())
	require.Len(t, w.all(), 1)
	from(t, w.all()[0], true, 0)
}

// A request of a sequence may have come over several connections, and has the address and TLS of
// none.
func TestRequestsOfASequenceAreFromNoConnection(t *testing.T) {
	for _, secure := range []bool{false, true} {
		w := &witness{}
		d := open(t, w, secure, nil)
		cfg := d.config(negotiate.Auto)
		cfg.Assurance = wsrm.AtLeastOnce
		for range 2 {
			s := dial(t, d.url, cfg)
			say(t, s, "in a sequence")
			require.NoError(t, s.Close()) // and not finished: the sequence continues
		}
		require.Len(t, w.all(), 2)
		for _, r := range w.all() {
			assert.Empty(t, r.RemoteAddr)
			assert.Nil(t, r.TLS)
			assert.Nil(t, r.Context().Value(http.LocalAddrContextKey))
		}
	}
}

func from(t *testing.T, r *http.Request, secure bool, call int) {
	t.Helper()
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	require.NoError(t, err, call)
	assert.Equal(t, "127.0.0.1", host, call)
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	require.True(t, ok, call)
	assert.NotEqual(t, r.RemoteAddr, local.String(), call)
	if !secure {
		assert.Nil(t, r.TLS, call)
		return
	}
	require.NotNil(t, r.TLS, call)
	assert.True(t, r.TLS.HandshakeComplete, call)
}

// tracked records a connection's end.
type tracked struct {
	net.Conn
	once sync.Once
	gone func()
}

func (c *tracked) Close() error {
	c.once.Do(c.gone)
	return c.Conn.Close()
}

// A connection on which TLS selects a stream, for a call that ended meanwhile, is shut after a
// while, and with the session.
func TestConnectionsThatNoCallUsesAreShut(t *testing.T) {
	for _, closes := range []bool{false, true} {
		t.Run(fmt.Sprint("session closes ", closes), func(t *testing.T) {
			t.Parallel()
			d := open(t, http.HandlerFunc(repeat), true, nil)
			dialing, may, shut := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var dials atomic.Int32
			d.client.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err != nil || dials.Add(1) > 1 {
					return conn, err
				}
				close(dialing)
				<-may
				return &tracked{Conn: conn, gone: func() { close(shut) }}, nil
			}
			s := dial(t, d.url, d.config(negotiate.Auto))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wait sync.WaitGroup
			wait.Go(func() {
				_, err := s.Call(ctx, message("given up"))
				assert.ErrorIs(t, err, context.Canceled)
			})
			<-dialing
			cancel()
			wait.Wait()
			close(may)
			if closes {
				require.NoError(t, s.Close())
			}
			select {
			case <-shut:
			case <-time.After(time.Minute):
				t.Error("the connection stays")
			}
			if !closes {
				say(t, s, "goes on")
				require.NoError(t, s.Close())
			}
		})
	}
}

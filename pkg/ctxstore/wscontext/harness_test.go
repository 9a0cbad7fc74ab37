package wscontext_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pipes is a listener within the process, which works in a synctest bubble.
type pipes struct {
	conns chan net.Conn
	gone  chan struct{}
	once  sync.Once
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:80" }

// fromHere is a connection whose peer is on this machine.
type fromHere struct{ net.Conn }

func (fromHere) RemoteAddr() net.Addr { return pipeAddr{} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return fromHere{c}, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.gone) })
	return nil
}

func (p *pipes) Addr() net.Addr { return pipeAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.gone:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// served is a service over HTTP, for any number of clients.
type served struct{ pipes *pipes }

// serve serves a store until the test ends.
func serve(t testing.TB, cfg wscontext.Config) *served {
	t.Helper()
	service, err := wscontext.New(cfg)
	require.NoError(t, err)
	s := &served{&pipes{conns: make(chan net.Conn), gone: make(chan struct{})}}
	server := &http.Server{Handler: service}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(s.pipes)
	}()
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		<-ended
	})
	return s
}

func (s *served) transport() *http.Transport {
	return &http.Transport{DialContext: s.pipes.dial, MaxIdleConnsPerHost: 4}
}

// open opens the service as a store.
func (s *served) open(t testing.TB) *wscontext.Remote {
	t.Helper()
	r, err := wscontext.Open(t.Context(), "http://localhost/", wscontext.RemoteConfig{
		ClientConfig: wscontext.ClientConfig{Transport: s.transport()},
	})
	require.NoError(t, err)
	return r
}

// serveMemory serves a new store in memory.
func serveMemory(t testing.TB, cfg memory.Config) (*served, ctxstore.Store) {
	t.Helper()
	store := memory.New(cfg)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	return serve(t, wscontext.Config{Store: store}), store
}

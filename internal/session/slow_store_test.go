package session_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/spare"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/nats"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// slowness is how long a slow store takes for one thing.
const slowness = 500 * time.Millisecond

// slowService opens a context service, each of whose replies takes that long.
func slowService(t *testing.T) ctxstore.Store {
	everybody := func(*http.Request) error { return nil }
	service, err := wscontext.New(wscontext.Config{Store: newLasting(t), Admit: everybody})
	require.NoError(t, err)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(slowness)
		service.ServeHTTP(w, r)
	})
	store, err := wscontext.Open(t.Context(), "http://store.example/", wscontext.RemoteConfig{
		ClientConfig: wscontext.ClientConfig{Transport: inProcess{slow}},
	})
	require.NoError(t, err)
	return store
}

// slowNATS opens a bucket of a server, to which all that is sent takes that long.
func slowNATS(t *testing.T) ctxstore.Store {
	s, err := server.NewServer(&server.Options{
		ServerName: "one", DontListen: true, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(10*time.Second))
	dial := func(string, string) (net.Conn, error) {
		c, err := s.InProcessConn()
		return newSlowConn(c), err
	}
	store, err := nats.Open(t.Context(), "nats://127.0.0.1/contexts?storage=memory", nats.Config{Dial: dial})
	require.NoError(t, err)
	return store
}

// slowConn sends on what is written to it after a while.
type slowConn struct {
	net.Conn
	written chan slowPacket
	closed  context.Context
	end     context.CancelFunc
	sends   sync.WaitGroup
}

type slowPacket struct {
	octets []byte
	at     time.Time
}

func newSlowConn(to net.Conn) *slowConn {
	c := &slowConn{Conn: to, written: make(chan slowPacket, 1024)}
	c.closed, c.end = context.WithCancel(context.Background())
	c.sends.Go(func() {
		for c.closed.Err() == nil {
			select {
			case p := <-c.written:
				if clock.Real().Sleep(c.closed, time.Until(p.at)) == nil {
					_, _ = to.Write(p.octets)
				}
			case <-c.closed.Done():
			}
		}
	})
	return c
}

func (c *slowConn) Write(b []byte) (int, error) {
	select {
	case c.written <- slowPacket{slices.Clone(b), time.Now().Add(slowness)}:
		return len(b), nil
	case <-c.closed.Done():
		return 0, net.ErrClosed
	}
}

func (c *slowConn) Close() error {
	c.end()
	defer c.sends.Wait()
	return c.Conn.Close()
}

// A store that takes half a second for everything, of the server or of the client: a session begins
// and has a stream, what is known waits for no store, and a message under a guarantee for a few
// calls. The log says nothing: a slow store is no trouble.
func TestSlowStores(t *testing.T) {
	for name, open := range map[string]func(*testing.T) ctxstore.Store{"http": slowService, "nats": slowNATS} {
		for _, end := range []string{"server", "client"} {
			t.Run(name+" of the "+end, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { withSlowStore(t, open(t), end == "server") })
			})
		}
	}
}

func withSlowStore(t *testing.T, slow ctxstore.Store, atServer bool) {
	log := &warnings{}
	logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	slow = lasting{spare.New(slow, spare.Config{Log: logger})}
	own, others := ctxstore.Store(newLasting(t)), slow
	if atServer {
		own, others = slow, own
	}
	network := &inproc.Transport{}
	listener, err := network.Listen(t.Context(), "service")
	require.NoError(t, err)
	h, err := responder.NewHandler(http.HandlerFunc(repeat), responder.Config{
		Store: own, Addresses: map[string]string{"inproc": "service"}, Log: logger,
	})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- h.ServeStreams(context.Background(), listener) }()
	took := func(what string, most time.Duration, do func()) {
		t.Helper()
		began := time.Now()
		do()
		t.Logf("%s: %v", what, time.Since(began))
		assert.LessOrEqual(t, time.Since(began), most, what)
	}
	for _, assurance := range []wsrm.Assurance{wsrm.AtMostOnce, wsrm.ExactlyOnce} {
		cfg := session.Config{
			HTTPClient: &http.Client{Transport: inProcess{h}}, Store: others, Assurance: assurance, Log: logger,
			Transports: map[string]streamer.Transport{"inproc": network}, Reconnect: time.Minute,
		}
		var s *session.Session
		took("dial "+assurance.String(), 10*slowness, func() { s = dial(t, "http://service.example/echo", cfg) })
		require.True(t, s.Agreed().HHFR, s.Agreed().Why)
		commit := time.Duration(0)
		if assurance == wsrm.ExactlyOnce {
			commit = 4 * slowness
		}
		say := func(text string) func() {
			return func() {
				_, body := call(t, s, "", text)
				require.Equal(t, text, body)
			}
		}
		took("first message", commit+4*slowness, say(envelope("<a>1</a>")))
		time.Sleep(time.Minute)
		for range 3 {
			took("known shape", commit, say(envelope("<a>2</a>")))
		}
		took("new shape", commit+4*slowness, say(envelope("<b>1</b>")))
		took("close", 6*slowness, func() { require.NoError(t, s.Close()) })
	}
	took("close the server", 6*slowness, func() { require.NoError(t, h.Close()) })
	require.NoError(t, <-served)
	require.NoError(t, slow.Close())
	assert.Empty(t, strings.TrimSpace(log.text()))
}

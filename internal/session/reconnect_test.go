package session_test

import (
	"context"
	"fmt"
	"io"
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
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// mortal is a peer on fixed ports that can be killed, so that its connections break without a
// close, and started again on the same store.
type mortal struct {
	t             testing.TB
	store         ctxstore.Store
	http, stream  string // addresses, once started
	serve         func(ctx context.Context, x *streamer.Exchange)
	sequenced     responder.Sequenced
	noted[string]      // path and body
	refuse        bool // unchanging headers
	plain         bool // it knows no offers
	change        func(*responder.Config)

	kill      func()
	listeners func()        // closes them
	gone      chan struct{} // closed when it is killed

	connsMu sync.Mutex
	conns   []net.Conn
}

func (m *mortal) start() {
	if m.http == "" {
		m.http, m.stream = shared.Addr(m.t), shared.Addr(m.t)
		m.t.Cleanup(func() { m.kill() })
	}
	l, err := new(loopback).Listen(m.t.Context(), m.http)
	require.NoError(m.t, err)
	streams, err := new(loopback).Listen(m.t.Context(), m.stream)
	require.NoError(m.t, err)
	_, port, err := net.SplitHostPort(m.stream)
	require.NoError(m.t, err)
	keep := func(c net.Conn) net.Conn {
		m.connsMu.Lock()
		defer m.connsMu.Unlock()
		m.conns = append(m.conns, c)
		return c
	}
	plain := m.plain
	cfg := responder.Config{
		Store:     m.store,
		Coders:    textCoders,
		Addresses: map[string]string{"tcp": ":" + port},
		WrapConn:  keep,
		Sequenced: m.sequenced,
		Serve:     func(ctx context.Context, _ string, x *streamer.Exchange) { m.serve(ctx, x) },
		Serves:    func(string) bool { return !plain },
	}
	if m.refuse {
		refuseHeaders(&cfg)
	}
	if m.change != nil {
		m.change(&cfg)
	}
	r, err := responder.New(cfg)
	require.NoError(m.t, err)
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: r.Handler(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			m.note("http " + string(body))
			_, _ = w.Write(body)
		})),
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = server.Serve(l) })
	wait.Go(func() { _ = r.ServeStreams(context.Background(), streams) })
	gone := make(chan struct{})
	m.gone = gone
	m.listeners = func() {
		_ = streams.Close()
		_ = server.Close()
	}
	m.kill = sync.OnceFunc(func() {
		defer close(gone)
		_ = streams.Close()
		_ = server.Close()
		m.connsMu.Lock()
		for _, c := range m.conns {
			_ = c.Close()
		}
		m.conns = nil
		m.connsMu.Unlock()
		_ = r.Close()
		wait.Wait()
	})
}

// killed waits until the peer is killed.
func (m *mortal) killed() { <-m.gone }

func (m *mortal) url(path string) string { return "http://" + m.http + path }

func (m *mortal) echo(ctx context.Context, x *streamer.Exchange) {
	body, err := x.Message().ReadAll(1 << 20)
	if err == nil {
		m.note("stream " + string(body))
		_ = x.Reply(ctx, streamer.NewMessage(nil, body))
	}
}

// forEver is how long a session on such a clock tries to reconnect, however busy the machine is: an
// hour passes within a second or two.
const forEver = 10_000 * time.Hour

// quick is the real clock with shortened sleeps: back-off goes as fast as the machine.
type quick struct{ *later }

func (q quick) Sleep(ctx context.Context, d time.Duration) error {
	q.forward(d)
	return q.Clock.Sleep(ctx, time.Millisecond)
}

func newMortal(t testing.TB) *mortal {
	m := &mortal{t: t, store: newStore(t)}
	m.serve = m.echo
	m.start()
	return m
}

// The peer dies and comes back: what was written and not answered is reported, what was not sent
// goes over the next stream, and nothing twice.
func TestReconnect(t *testing.T) {
	m := newMortal(t)
	reached := make(chan struct{})
	m.serve = func(ctx context.Context, x *streamer.Exchange) {
		body, _ := x.Message().ReadAll(1 << 20)
		m.note("stream " + string(body))
		reached <- struct{}{}
		<-ctx.Done()
	}
	cfg := config(t)
	cfg.Reconnect = time.Hour
	sess := dial(t, "http://"+m.http+"/x", cfg)
	first := sess.Agreed().Facts.Session
	failed := make(chan error)
	go func() {
		_, err := sess.Call(context.Background(), streamer.NewMessage(nil, []byte("caught")))
		failed <- err
	}()
	<-reached
	m.kill()
	require.ErrorIs(t, <-failed, &negotiate.Error{Code: negotiate.FateUnknown})
	// Begun while no peer is there.
	waiting := make(chan error)
	go func() {
		reply, err := sess.Call(context.Background(), streamer.NewMessage(nil, []byte("waiting")))
		if err == nil {
			_, err = reply.ReadAll(100)
		}
		waiting <- err
	}()
	m.serve = m.echo
	m.start()
	require.NoError(t, <-waiting)
	p, err := sess.Begin(t.Context(), streamer.NewMessage(nil, []byte("begun")))
	require.NoError(t, err)
	_, err = p.Reply(t.Context())
	require.NoError(t, err)
	posted, err := sess.Post(t.Context(), streamer.NewMessage(nil, []byte("sent")))
	require.NoError(t, err)
	_, body := call(t, sess, "", "last")
	assert.Equal(t, "last", body)
	assert.True(t, sess.Agreed().HHFR)
	assert.Empty(t, sess.Agreed().Why)
	assert.NotEqual(t, first, sess.Agreed().Facts.Session)
	got := m.atLeast(5)
	assert.ElementsMatch(t, []string{"stream caught", "stream waiting", "stream begun", "stream sent", "stream last"},
		got)
	require.NoError(t, posted.Err())
	sess.Stream().Abort(streamer.CloseGoingAway, "")
	require.ErrorIs(t, posted.Err(), &negotiate.Error{Code: negotiate.FateUnknown})
}

// Requests that wait one after another when the peer dies: each is answered, or reported as
// unknown, and none arrives twice.
func TestKilledInMidRun(t *testing.T) {
	m := newMortal(t)
	var served, caught atomic.Int32
	var reborn atomic.Bool
	die := make(chan struct{})
	const inFlight = 8
	m.serve = func(ctx context.Context, x *streamer.Exchange) {
		body, err := x.Message().ReadAll(1 << 20)
		if err != nil {
			return
		}
		m.note("stream " + string(body))
		if served.Add(1) > 50 && !reborn.Load() {
			if caught.Add(1) == inFlight {
				close(die)
			}
			<-ctx.Done()
			return
		}
		_ = x.Reply(ctx, streamer.NewMessage(nil, body))
	}
	cfg := config(t)
	cfg.Reconnect = time.Hour
	sess := dial(t, "http://"+m.http+"/x", cfg)
	restarted := make(chan struct{})
	go func() {
		defer close(restarted)
		<-die
		m.kill()
		reborn.Store(true)
		m.start()
	}()
	var mu sync.Mutex
	var unknown, answered []string
	var wait sync.WaitGroup
	places := make(chan struct{}, inFlight)
	for i := range 200 {
		places <- struct{}{}
		body := fmt.Sprintf("message %d", i)
		p, err := sess.Begin(t.Context(), streamer.NewMessage(nil, []byte(body)))
		if err != nil {
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
			unknown = append(unknown, body)
			<-places
			continue
		}
		wait.Go(func() {
			defer func() { <-places }()
			reply, err := p.Reply(t.Context())
			var got []byte
			if err == nil {
				got, err = reply.ReadAll(100)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				unknown = append(unknown, body)
				return
			}
			assert.Equal(t, body, string(got))
			answered = append(answered, body)
		})
	}
	wait.Wait()
	<-restarted
	assert.Len(t, answered, 200-len(unknown))
	assert.Len(t, unknown, inFlight, "exactly those that were in flight")
	times := map[string]int{}
	for _, g := range m.got() {
		times[g]++
		assert.Equal(t, 1, times[g], g)
	}
	for _, body := range append(answered, unknown...) {
		assert.Equal(t, 1, times["stream "+body], body)
	}
	assert.True(t, sess.Agreed().HHFR)
}

// A peer that stays away: plain SOAP after the time given, and later sessions do not ask again.
func TestReconnectGivesUp(t *testing.T) {
	m := newMortal(t)
	cfg := config(t)
	cfg.Clock = quick{newLater()}
	cfg.Reconnect = 30 * time.Second
	sess := dial(t, "http://"+m.http+"/x", cfg)
	call(t, sess, "", "one")
	broken := sess.Stream()
	m.kill()
	<-broken.Done()
	_, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("two")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
	assert.Contains(t, sess.Agreed().Why, "the stream ended")
	require.NoError(t, sess.Close())
	assert.Contains(t, stored(t, cfg.Store), ":plain:")
}

// A plain server has replaced the peer: what follows goes there as plain SOAP at once, each message
// once.
func TestReplacedByAPlainServer(t *testing.T) {
	m := newMortal(t)
	cfg := config(t)
	cfg.Reconnect = time.Hour
	sess := dial(t, "http://"+m.http+"/x", cfg)
	call(t, sess, "", "one")
	broken := sess.Stream()
	m.kill()
	<-broken.Done()
	l, err := new(loopback).Listen(t.Context(), m.http)
	require.NoError(t, err)
	plain := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 100 {
			http.Error(w, "what is that", http.StatusNotFound)
			return
		}
		m.note("plain " + string(body))
		_, _ = w.Write(body)
	}))
	_ = plain.Listener.Close()
	plain.Listener = l
	plain.Start()
	defer plain.Close()
	for _, body := range []string{"two", "three"} {
		_, got := call(t, sess, "", body)
		assert.Equal(t, body, got)
	}
	assert.Equal(t, []string{"stream one", "plain two", "plain three"}, m.got())
	assert.Contains(t, sess.Agreed().Why, "404")
}

// A peer that takes every session and then breaks its stream is not asked forever.
func TestFruitlessStreams(t *testing.T) {
	conns := make(chan net.Conn, 100)
	s := startServices(t, func(c *responder.Config) {
		c.OnSession = func(_ negotiate.Facts, conn net.Conn) { conns <- conn }
		c.Serve = func(ctx context.Context, _ string, _ *streamer.Exchange) {
			_ = (<-conns).Close()
			<-ctx.Done()
		}
	})
	cfg := config(t)
	cfg.Clock = quick{newLater()}
	cfg.Reconnect = time.Hour
	sess := dial(t, s.http.URL+"/x", cfg)
	var broken int
	for len(s.got()) == 0 {
		_, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("one")))
		if err != nil {
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.FateUnknown})
			broken++
		}
		require.LessOrEqual(t, broken, 6)
	}
	assert.Equal(t, "http", s.got()[0].way)
}

// A stream that breaks without a second attempt is remembered too, one that ended in order is not.
func TestBrokenStreamsAreRemembered(t *testing.T) {
	for _, broken := range []bool{true, false} {
		m := newMortal(t)
		cfg := config(t)
		sess := dial(t, "http://"+m.http+"/x", cfg)
		call(t, sess, "", "one")
		if broken {
			m.kill()
		}
		stream := sess.Stream()
		if !broken {
			require.NoError(t, stream.Close())
		}
		<-stream.Done()
		if !broken {
			_, body := call(t, sess, "", "two")
			assert.Equal(t, "two", body)
		} else {
			_, err := sess.Call(t.Context(), streamer.NewMessage(nil, nil))
			require.Error(t, err)
		}
		_ = sess.Close()
		if broken {
			assert.Contains(t, stored(t, cfg.Store), ":plain:")
		} else {
			assert.NotContains(t, stored(t, cfg.Store), ":plain:")
		}
	}
}

// Messages that the peer begins, over a stream and the next one.
func TestOnMessage(t *testing.T) {
	m := newMortal(t)
	m.serve = func(ctx context.Context, x *streamer.Exchange) {
		body, _ := x.Message().ReadAll(100)
		_ = x.Reply(ctx, streamer.NewMessage(nil, body))
	}
	s := startServices(t, func(c *responder.Config) {
		c.OnStream = func(f negotiate.Facts, st *streamer.Stream) {
			go func() {
				_ = st.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("hello "+f.Path)))
				reply, err := st.Lane(0).Call(context.Background(), streamer.NewMessage(nil, []byte("question")))
				if assert.NoError(t, err) {
					body, _ := reply.ReadAll(100)
					assert.Equal(t, "answer", string(body))
				}
				_ = st.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("thanks")))
			}()
		}
	})
	got := make(chan string)
	cfg := config(t)
	conns := make(chan net.Conn, 2)
	cfg.OnSession = func(_ negotiate.Facts, c net.Conn) { conns <- c }
	cfg.Reconnect = time.Hour
	cfg.Handler = func(ctx context.Context, x *streamer.Exchange) {
		body, err := x.Message().ReadAll(100)
		if err != nil {
			return
		}
		if !x.OneWay() {
			_ = x.Reply(ctx, streamer.NewMessage(nil, []byte("answer")))
		}
		got <- string(body)
	}
	sess := dial(t, s.http.URL+"/tick", cfg)
	three := func() []string { return []string{<-got, <-got, <-got} }
	assert.ElementsMatch(t, []string{"hello /tick", "question", "thanks"}, three())
	sess.OnMessage(func(ctx context.Context, x *streamer.Exchange) { cfg.Handler(ctx, x) })
	// There are no calls; the session is opened again all the same.
	require.NoError(t, (<-conns).Close())
	assert.ElementsMatch(t, []string{"hello /tick", "question", "thanks"}, three())
}

// A session that only listens waits over streams that break, until none will come.
func TestWait(t *testing.T) {
	m := newMortal(t)
	cfg := config(t)
	cfg.Clock = quick{newLater()}
	cfg.Reconnect = 30 * time.Second
	sess := dial(t, "http://"+m.http+"/x", cfg)
	first := sess.Stream()
	waited := make(chan error)
	go func() { waited <- sess.Wait(context.Background()) }()
	m.kill()
	<-first.Done()
	require.ErrorIs(t, <-waited, &negotiate.Error{Code: negotiate.NoHHFR})

	m.start()
	cfg.RememberFor = -1
	cfg.Reconnect = forEver
	sess = dial(t, "http://"+m.http+"/x", cfg)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { waited <- sess.Wait(ctx) }()
	first = sess.Stream()
	m.kill()
	<-first.Done()
	m.start()
	_, body := call(t, sess, "", "again")
	assert.Equal(t, "again", body)
	select {
	case err := <-waited:
		t.Fatal("waits no longer: ", err)
	default:
	}
	cancel()
	require.ErrorIs(t, <-waited, context.Canceled)
	go func() { waited <- sess.Wait(context.Background()) }()
	require.NoError(t, sess.Close())
	require.ErrorIs(t, <-waited, &negotiate.Error{Code: negotiate.Closed})
	cfg.Transports = none
	require.ErrorIs(t, dial(t, "http://"+m.http+"/x", cfg).Wait(t.Context()), &negotiate.Error{Code: negotiate.NoHHFR})
}

// Streams that carry only messages of the peer make progress: one that breaks now and then is
// replaced each time.
func TestServerInitiatedMessagesAreProgress(t *testing.T) {
	s := startServices(t, func(c *responder.Config) {
		c.OnStream = func(_ negotiate.Facts, st *streamer.Stream) {
			go func() { _ = st.Lane(0).Send(context.Background(), streamer.NewMessage(nil, []byte("tick"))) }()
		}
	})
	cfg := config(t)
	cfg.Clock = quick{newLater()}
	cfg.Reconnect = time.Hour
	conns, got := make(chan net.Conn, 1), make(chan string)
	cfg.OnSession = func(_ negotiate.Facts, c net.Conn) { conns <- c }
	cfg.Handler = func(_ context.Context, x *streamer.Exchange) {
		body, err := x.Message().ReadAll(100)
		if err == nil {
			got <- string(body)
		}
	}
	sess := dial(t, s.http.URL+"/x", cfg)
	for range 10 {
		assert.Equal(t, "tick", <-got)
		require.NoError(t, (<-conns).Close())
	}
	assert.Equal(t, "tick", <-got)
	assert.True(t, sess.Agreed().HHFR)
}

package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// keeping gives a proxy a store that outlives it.
func keeping(t *testing.T) func(*settings) {
	store := memory.New(memory.Config{})
	t.Cleanup(func() { _ = store.Close() })
	return func(c *settings) {
		c.Store, c.Coders = store, coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
	}
}

// admitted are the sessions of the streams that a far proxy accepted.
type admitted struct {
	mu    sync.Mutex
	facts []negotiate.Facts
}

func (a *admitted) change(c *settings) {
	c.OnSession = func(f negotiate.Facts, _ net.Conn) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.facts = append(a.facts, f)
	}
}

func (a *admitted) all() []negotiate.Facts {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.facts
}

// use uses lanes one after the other and concurrently, and leaves one in use.
func use(t *testing.T, near end) (kept *client) {
	t.Helper()
	for i := range 3 {
		var side []*client
		for range 3 {
			c := connect(t, near.url())
			c.say(post("", envelope) + post("", "<b/>"))
			side = append(side, c)
		}
		for _, c := range side {
			c.hear("<b/>")
			require.NoError(t, c.Close())
		}
		kept = connect(t, near.url())
		kept.say(post("", fmt.Sprintf("<kept>%d</kept>", i)))
		kept.hear("</kept>")
	}
	return kept
}

// TestMetAgain: after one half of a pair has restarted, the session continues without an offer if
// both still have their stores, and otherwise one offer opens another. Either way calls go over a
// stream again.
func TestMetAgain(t *testing.T) {
	for _, which := range []string{"near", "far"} {
		for _, stored := range []bool{true, false} {
			t.Run(fmt.Sprint(which, " stored=", stored), func(t *testing.T) {
				o := startOrigin(t, "127.0.0.1:0", server(echoReply))
				addr := shared.Addr(t)
				stores := map[string]func(*settings){"near": keeping(t), "far": keeping(t)}
				var sessions admitted
				link := &wire{}
				startFar := func() end {
					return startProxy(t, addr, o.url(), func(c *settings) {
						link.Listener, c.Listen = c.Listen, link
						c.Transports = map[string]streamer.Transport{}
						stores["far"](c)
						sessions.change(c)
					})
				}
				far := startFar()
				near := startProxy(t, "127.0.0.1:0", far.url(), stores["near"])
				near.linked(t)
				kept := use(t, near)
				if !stored {
					stores[which] = keeping(t)
				}
				if which == "near" {
					require.NoError(t, near.Close())
					kept.ends()
					near = startProxy(t, "127.0.0.1:0", far.url(), stores["near"])
				} else {
					require.NoError(t, far.Close())
					require.Eventually(t, func() bool { // it is requested meanwhile
						c := connect(t, near.url())
						c.say(post("", envelope))
						refused, why := c.rest(), near.Linked(t.Context())
						return strings.HasPrefix(refused, "HTTP/1.1 502 ") &&
							errors.Is(why, &negotiate.Error{Code: negotiate.Unreachable})
					}, patience, 10*time.Millisecond)
					startFar()
					kept.say(post("", "<on/>")) // an open connection continues, plainly
					kept.hear("<on/>")
				}
				require.Eventually(t, func() bool { // calls make it ask at once
					c := connect(t, near.url())
					c.say(post("", envelope))
					c.hear(envelope)
					return len(sessions.all()) >= 2 && near.Linked(t.Context()) == nil
				}, patience, 10*time.Millisecond)
				use(t, near)

				questions := strings.Count(strings.Join(link.all(), ""), question)
				facts := sessions.all()
				require.Len(t, facts, 2)
				if stored {
					assert.Equal(t, facts[0].Session, facts[1].Session)
					assert.Equal(t, 1, questions)
				} else {
					assert.NotEqual(t, facts[0].Session, facts[1].Session)
					assert.Equal(t, 2, questions)
				}
			})
		}
	}
}

// TestFarEndForgetsWhileCallsCome: a far proxy that has forgotten the session takes its stream for
// a client's. Calls that arrive before that is detected lose nothing, and the near one asks anew.
func TestFarEndForgetsWhileCallsCome(t *testing.T) {
	turned, release := make(chan struct{}), make(chan struct{})
	answering := server(echoReply)
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		ahead := &peekedConn{Conn: c, first: make([]byte, 1)}
		if n, _ := c.Read(ahead.first); n == 0 {
			return
		}
		if ahead.first[0] == 1 { // a server that does not understand it, and waits for more
			turned <- struct{}{}
			<-release
			return
		}
		answering(ahead)
	})
	addr := shared.Addr(t)
	startFar := func() end {
		return startProxy(t, addr, o.url(), func(c *settings) { c.Transports = map[string]streamer.Transport{} })
	}
	far := startFar()
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	near.linked(t)
	use(t, near)
	goOn := sync.OnceFunc(func() { close(release) })
	t.Cleanup(goOn)
	require.NoError(t, far.Close())
	startFar()
	<-turned
	for i := range 5 {
		c := connect(t, near.url())
		c.say(post("", fmt.Sprintf("<meanwhile>%d</meanwhile>", i)))
		require.Contains(t, c.hear("</meanwhile>"), "HTTP/1.1 200 ")
	}
	goOn()
	near.linked(t)
	use(t, near)
	got := strings.Join(o.received(), "")
	for i := range 5 {
		assert.Equal(t, 1, strings.Count(got, fmt.Sprintf("<meanwhile>%d<", i)))
	}
}

// peekedConn is a connection whose first bytes were read.
type peekedConn struct {
	net.Conn
	first []byte
}

func (c *peekedConn) Read(p []byte) (int, error) {
	if len(c.first) > 0 {
		n := copy(p, c.first)
		c.first = c.first[n:]
		return n, nil
	}
	return c.Conn.Read(p)
}

// TestSessionsOfOthersInTheStore: a near proxy may share its store with endpoints that speak hhfr
// themselves: each joins the session that the other one has left, and both are served.
func TestSessionsOfOthersInTheStore(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	var sessions admitted
	link := &wire{}
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		link.Listener, c.Listen = c.Listen, link
		sessions.change(c)
	})
	store := keeping(t)
	speak := func() {
		var c settings
		store(&c)
		s, err := session.Dial(t.Context(), far.url().String()+"/other", session.Config{
			Mode: negotiate.Auto, RequireHHFR: true, Store: c.Store, Coders: c.Coders,
			Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}},
		})
		require.NoError(t, err)
		for range 2 {
			reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(envelope)))
			require.NoError(t, err)
			body, err := reply.ReadAll(1 << 20)
			require.NoError(t, err)
			assert.Equal(t, envelope, string(body))
		}
		require.NoError(t, s.Close())
	}
	carry := func() {
		near := startProxy(t, "127.0.0.1:0", far.url(), store)
		near.linked(t)
		use(t, near)
		require.NoError(t, near.Close())
	}
	for range 2 {
		speak()
		carry()
	}
	facts := sessions.all()
	require.Len(t, facts, 4)
	for _, f := range facts {
		assert.Equal(t, facts[0].Session, f.Session)
	}
	assert.Equal(t, 1, strings.Count(strings.Join(link.all(), ""), "HTTP/1.1 101 "), "one question")
	for _, got := range o.received() {
		assert.NotContains(t, got, "/service/other/")
	}
}

// TestUpstreamThatIsNoProxy: a near proxy does not use a session with a peer that is no proxy,
// whether it is remembered or new, and leaves it to other users of the store. A proxy that replaces
// that peer is found.
func TestUpstreamThatIsNoProxy(t *testing.T) {
	addr := shared.Addr(t)
	to := &url.URL{Scheme: "http", Host: addr, Path: "/service"}
	service := startService(t, addr)
	store := keeping(t)
	var own settings
	store(&own)
	calls := func() {
		s, err := session.Dial(t.Context(), to.String(), session.Config{
			Mode: negotiate.Auto, Store: own.Store, Coders: own.Coders,
			Transports: map[string]streamer.Transport{"tcp": tcp.Transport{}},
		})
		require.NoError(t, err)
		for range 2 {
			reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(envelope)))
			require.NoError(t, err)
			body, err := reply.ReadAll(1 << 20)
			require.NoError(t, err)
			assert.Equal(t, envelope, string(body))
		}
		assert.True(t, s.Agreed().HHFR)
		require.NoError(t, s.Close())
	}
	short := func(c *settings) {
		store(c)
		c.RememberFor = time.Millisecond
	}
	var near end
	for range 2 {
		calls()
		near = startProxy(t, "127.0.0.1:0", to, short)
		require.ErrorContains(t, near.Linked(t.Context()), "no proxy")
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
		require.NoError(t, c.Close())
		require.NoError(t, near.Close())
	}
	near = startProxy(t, "127.0.0.1:0", to, short)
	service()

	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	startProxy(t, addr, o.url(), func(c *settings) { c.Transports = map[string]streamer.Transport{} })
	require.Eventually(t, func() bool {
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
		return near.Linked(t.Context()) == nil
	}, patience, 10*time.Millisecond)
	use(t, near)
}

// startService starts a service that speaks hhfr and is no proxy; stop ends it.
func startService(t *testing.T, addr string) (stop func()) {
	t.Helper()
	store := memory.New(memory.Config{})
	streams, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(streams.Addr().String())
	require.NoError(t, err)
	responder, err := responder.New(responder.Config{
		Store: store, Addresses: map[string]string{"tcp": ":" + port},
		Serve: func(ctx context.Context, _ string, x *streamer.Exchange) {
			body, _ := x.Message().ReadAll(1 << 20)
			_ = x.Reply(ctx, streamer.NewMessage(nil, body))
		},
	})
	require.NoError(t, err)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	s := &http.Server{Handler: responder.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(body)
	}))}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) })
	running.Go(func() { _ = responder.ServeStreams(context.Background(), streams) })
	stop = sync.OnceFunc(func() {
		_ = s.Close()
		_ = responder.Close()
		running.Wait()
		_ = store.Close()
	})
	t.Cleanup(stop)
	return stop
}

// TestThreeProxies: the one in the middle is far for one and near for the other.
func TestThreeProxies(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	addr := shared.Addr(t)
	middle := startProxy(t, addr, far.url(), nil)
	near := startProxy(t, "127.0.0.1:0", middle.url(), nil)
	for range 2 {
		middle.linked(t)
		near.linked(t)
		kept := use(t, near)
		require.Positive(t, middle.LanesInUse())
		kept.say(post("", "<last/>"))
		kept.hear("<last/>")
		require.NoError(t, middle.Close())
		middle = startProxy(t, addr, far.url(), nil)
	}
}

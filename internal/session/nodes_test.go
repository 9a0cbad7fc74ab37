package session_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// A session without assurance goes on with the next node, over a stream and in plain SOAP; what was
// written and not answered is not sent to that one.
func TestNodesGoOn(t *testing.T) {
	for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.Auto} {
		t.Run(string(mode), func(t *testing.T) {
			one, two := newMortal(t), newMortal(t)
			two.store = one.store
			cfg := config(t)
			cfg.Mode, cfg.Nodes, cfg.Reconnect = mode, []string{two.url("/echo")}, forEver
			s := dial(t, one.url("/echo"), cfg)
			_, got := call(t, s, "", "first")
			assert.Equal(t, "first", got)

			if mode == negotiate.Explicit {
				loseCall(t, s, one)
			}
			one.kill()
			_, got = call(t, s, "", "second")
			assert.Equal(t, "second", got)
			assert.Equal(t, []string{"stream second"}, two.got())
			require.NoError(t, s.Close())

			s = dial(t, one.url("/echo"), cfg) // the first node is not there at all
			_, got = call(t, s, "", "third")
			assert.Equal(t, "third", got)
		})
	}
}

// loseCall has a peer die while it handles a call.
func loseCall(t *testing.T, s *session.Session, m *mortal) {
	reached := make(chan struct{})
	m.serve = func(ctx context.Context, x *streamer.Exchange) {
		close(reached)
		<-ctx.Done()
	}
	fate := make(chan error)
	go func() {
		_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("lost")))
		fate <- err
	}()
	<-reached
	m.kill()
	require.ErrorIs(t, <-fate, &negotiate.Error{Code: negotiate.FateUnknown})
}

func TestNodesInPlainSOAP(t *testing.T) {
	one, two := &mortal{t: t, store: newStore(t), plain: true}, &mortal{t: t, store: newStore(t), plain: true}
	one.start()
	two.start()
	cfg := config(t)
	cfg.HTTPClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	cfg.Nodes = []string{two.url("/echo")}
	s := dial(t, one.url("/echo"), cfg)
	_, got := call(t, s, "", "first")
	assert.Equal(t, "first", got)
	one.kill()
	for range 3 {
		_, got = call(t, s, "", "second")
		assert.Equal(t, "second", got)
	}
	assert.Equal(t, "http first", one.got()[1], "after the offer")
	assert.Equal(t, slices.Repeat([]string{"http second"}, 3), two.got()[1:])
	two.kill()
	_, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte("nobody")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unreachable})
}

func TestNodesOfOneService(t *testing.T) {
	for _, node := range []string{"https://a/x", "http://b/y", "http://b/x?q", "b", "http://"} {
		cfg := config(t)
		cfg.Nodes = []string{node}
		_, err := session.Dial(t.Context(), "http://a/x", cfg)
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.BadConfig}, node)
	}
}

// striking is a node's way to the store of its group. The node dies at one of its calls: before it
// has an effect, after that, or it is only cut off from its clients and makes the call when another
// node has taken over.
type striking struct {
	ctxstore.Store
	node *mortal
	how  string
	over <-chan struct{} // the other node has taken over, or the run is over

	mu    sync.Mutex
	calls int
	at    int
	dead  bool
}

var errDied = &ctxstore.Error{Code: ctxstore.Unavailable, Err: errors.New("the node is dead")}

// strike makes a call, unless the node dies at it.
func (s *striking) strike(call func() error) error {
	s.mu.Lock()
	s.calls++
	now := s.calls == s.at
	s.dead = s.dead || now && s.how != "late"
	dead := s.dead
	s.mu.Unlock()
	switch {
	case !now && dead:
		return errDied
	case !now:
		return call()
	}
	switch s.how {
	case "before":
		go s.node.kill()
		return errDied
	case "after":
		_ = call()
		go s.node.kill()
		return errDied
	default:
		s.node.cut()
		<-s.over
		return call()
	}
}

func (s *striking) Get(ctx context.Context, uri string) (e ctxstore.Entry, err error) {
	err = s.strike(func() error { e, err = s.Store.Get(context.WithoutCancel(ctx), uri); return err })
	return e, err
}

func (s *striking) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (rev uint64, err error) {
	err = s.strike(func() error { rev, err = s.Store.Put(context.WithoutCancel(ctx), uri, value, o); return err })
	return rev, err
}

func (s *striking) Commit(ctx context.Context, uri string, expect uint64, value []byte) (rev uint64, err error) {
	ctx = context.WithoutCancel(ctx)
	err = s.strike(func() error { rev, err = s.Store.Commit(ctx, uri, expect, value); return err })
	return rev, err
}

// taking calls over when a node has gone on with a sequence for some messages.
type taking struct {
	ctxstore.Store
	puts *atomic.Int32
	over func()
}

func (s taking) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	rev, err := s.Store.Put(ctx, uri, value, o)
	if err == nil && strings.HasPrefix(uri, ctxstore.SequencePrefix) && s.puts.Add(1) == 3 {
		s.over()
	}
	return rev, err
}

// The first node of two dies at, before or after any of its calls of their store, or goes on
// without its clients: the second one takes over, each message has its effect once and in order, no
// message is handled by both, and each reply is that of its message.
func TestNodesDieAnywhere(t *testing.T) {
	const messages = 4
	for _, path := range []string{"/book", "/other"} {
		for _, how := range []string{"before", "after", "late"} {
			t.Run(how+path, func(t *testing.T) {
				t.Parallel()
				deaths := 0
				for at := 1; ; at++ {
					if !(&nodesRun{t: t, path: path, how: how, at: at, messages: messages}).run() || t.Failed() {
						break
					}
					deaths++
				}
				assert.Greater(t, deaths, messages, "a node makes more calls than these")
			})
		}
	}
}

type nodesRun struct {
	t        *testing.T
	path     string
	how      string
	at       int
	messages int
}

// run reports whether the node died before the messages were over.
func (r *nodesRun) run() (died bool) {
	t, what := r.t, fmt.Sprintf("at call %d", r.at)
	shared, l := newLasting(t), &teller{}
	taken := make(chan struct{})
	over := sync.OnceFunc(func() { close(taken) })
	one := &mortal{t: t, sequenced: l}
	calls := &striking{Store: shared, node: one, how: r.how, at: r.at, over: taken}
	one.store = calls
	one.serve = one.echo
	two := &mortal{t: t, store: taking{shared, &atomic.Int32{}, over}, sequenced: l}
	two.serve = two.echo
	one.start()
	two.start()
	defer two.kill()
	defer one.kill()
	defer over()
	cfg := assured(t, wsrm.ExactlyOnce, newLasting(t))
	cfg.Nodes = []string{two.url(r.path)}
	s, err := session.Dial(t.Context(), one.url(r.path), cfg)
	require.NoError(t, err, what)
	defer func() { _ = s.Close() }()
	var unknown []string
	for n := range r.messages {
		body := strconv.Itoa(n)
		reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(body)))
		if errors.Is(err, &negotiate.Error{Code: negotiate.FateUnknown}) && r.path == "/other" {
			unknown = append(unknown, body) // a handler with effects of its own had begun
			continue
		}
		require.NoError(t, err, what)
		got, err := reply.ReadAll(1 << 10)
		require.NoError(t, err, what)
		require.Equal(t, r.path+" "+body, string(got), what)
	}
	over()
	require.NoError(t, s.Finish(t.Context()), what)
	_ = s.Close() // the node may die at that, too
	one.kill()
	r.check(shared, l, unknown, what)
	calls.mu.Lock()
	defer calls.mu.Unlock()
	return calls.calls >= r.at
}

func (r *nodesRun) check(store ctxstore.Store, l *teller, unknown []string, what string) {
	var want []string
	for n := range r.messages {
		want = append(want, strconv.Itoa(n))
	}
	if r.path == "/book" {
		got, _ := effect(r.t, store)
		assert.Equal(r.t, want, strings.Fields(got), what)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	assert.LessOrEqual(r.t, len(unknown), 1, what)
	for _, body := range want {
		n := 0
		for _, h := range l.handled {
			if h == body {
				n++
			}
		}
		if slices.Contains(unknown, body) {
			assert.LessOrEqual(r.t, n, 1, "%s: message %s", what, body)
		} else {
			assert.Equal(r.t, 1, n, "%s: message %s", what, body)
		}
	}
}

// cut takes a peer's clients from it, for good; it lives.
func (m *mortal) cut() {
	m.listeners()
	m.connsMu.Lock()
	defer m.connsMu.Unlock()
	for _, c := range m.conns {
		_ = c.Close()
	}
	m.conns = nil
}

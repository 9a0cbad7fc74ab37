package session_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestMain has the clock of accesses of NATS servers run outside of all bubbles: in one, it would
// keep time from passing.
func TestMain(m *testing.M) {
	ats.Register()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"))
}

// textCoder carries every message as text, under shape 0.
func textCoder() streamer.Coder {
	return binary.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(binary.Options{Text: true})
}

func textCoders(context.Context, coders.Spec) (streamer.Coder, error) {
	return textCoder(), nil
}

// loopback is the tcp transport of tests; it counts what it dials.
type loopback struct {
	mu    sync.Mutex
	addrs []string
}

func (l *loopback) Dial(ctx context.Context, addr string) (net.Conn, error) {
	l.mu.Lock()
	l.addrs = append(l.addrs, addr)
	l.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", addr)
}

func (l *loopback) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

func (l *loopback) dialled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.addrs)
}

func newStore(t testing.TB) ctxstore.Store {
	s := memory.New(memory.Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// later is the real clock, set forward.
type later struct {
	clock.Clock
	mu sync.Mutex
	by time.Duration
}

func newLater() *later { return &later{Clock: clock.Real()} }

func (l *later) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Clock.Now().Add(l.by)
}

func (l *later) forward(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by += d
}

// none are the transports of a dialer that speaks plain SOAP only.
var none = map[string]streamer.Transport{}

// config returns that of a dialer, with a store and an HTTP client of its own.
func config(t testing.TB) session.Config {
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return session.Config{
		HTTPClient: client,
		Transports: map[string]streamer.Transport{"tcp": &loopback{}},
		Store:      newStore(t),
		Coders:     textCoders,
	}
}

// seen is one message as a service got it, with its path.
type seen struct{ way, path, head, body string }

// services is an end with a responder in front of an echoing service, which records what it gets.
type services struct {
	*responder.Responder
	http     *httptest.Server
	stream   net.Listener
	listener func(net.Listener) net.Listener
	served   chan error // result of ServeStreams
	store    ctxstore.Store
	noted[seen]
}

// noted are messages that an end got.
type noted[T any] struct {
	mu   sync.Mutex
	all  []T
	more chan struct{} // closed with the next one; nil: nobody waits
}

func (n *noted[T]) note(m T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, m)
	if n.more != nil {
		close(n.more)
		n.more = nil
	}
}

func (n *noted[T]) got() []T { return n.atLeast(0) }

// atLeast waits until so many are there: messages without a reply may arrive concurrently with what
// was sent after them.
func (n *noted[T]) atLeast(count int) []T {
	for {
		n.mu.Lock()
		if len(n.all) >= count {
			defer n.mu.Unlock()
			return slices.Clone(n.all)
		}
		if n.more == nil {
			n.more = make(chan struct{})
		}
		more := n.more
		n.mu.Unlock()
		<-more
	}
}

func startServices(t testing.TB, change func(*responder.Config)) *services {
	return startServicesOn(t, func(l net.Listener) net.Listener { return l }, change)
}

// startServicesOn is startServices with the listener of streams changed.
func startServicesOn(
	t testing.TB, listener func(net.Listener) net.Listener, change func(*responder.Config),
) *services {
	s := &services{store: newStore(t), listener: listener, served: make(chan error, 1)}
	var err error
	s.stream, err = new(loopback).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(s.stream.Addr().String())
	require.NoError(t, err)
	cfg := responder.Config{
		Store: s.store, Coders: textCoders, Addresses: map[string]string{"tcp": ":" + port},
		Serve: func(ctx context.Context, path string, x *streamer.Exchange) {
			body, err := x.Message().ReadAll(1 << 20)
			if err != nil {
				return
			}
			s.note(seen{"stream", path, string(x.Message().Head), string(body)})
			_ = x.Reply(ctx, streamer.NewMessage(nil, body))
		},
	}
	if change != nil {
		change(&cfg)
	}
	s.Responder, err = responder.New(cfg)
	require.NoError(t, err)
	s.http = httptest.NewServer(s.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.note(
			seen{"http", r.URL.Path,
				r.Method + " " + r.RequestURI + " " + r.Header.Get("SOAPAction") + " " + r.Header.Get("Authorization"),
				string(body)},
		)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(body)
	})))
	var wait sync.WaitGroup
	wait.Go(func() { s.served <- s.ServeStreams(context.Background(), s.listener(s.stream)) })
	t.Cleanup(func() {
		_ = s.Close()
		wait.Wait()
		s.http.Close()
	})
	return s
}

func call(t testing.TB, s *session.Session, head, body string) (gotHead, gotBody string) {
	t.Helper()
	var h []byte
	if head != "" {
		h = []byte(head)
	}
	reply, err := s.Call(t.Context(), streamer.NewMessage(h, []byte(body)))
	require.NoError(t, err)
	data, err := reply.ReadAll(1 << 20)
	require.NoError(t, err)
	if c, ok := reply.Body.(io.Closer); ok {
		require.NoError(t, c.Close())
	}
	return string(reply.Head), string(data)
}

func dial(t testing.TB, url string, cfg session.Config) *session.Session {
	t.Helper()
	s, err := session.Dial(t.Context(), url, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func envelope(body string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>` + body + `</s:Body></s:Envelope>`
}

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

// stored returns everything in a store, as one text.
func stored(t testing.TB, store ctxstore.Store) string {
	var all bytes.Buffer
	for info, err := range store.List(t.Context(), "") {
		require.NoError(t, err)
		entry, err := store.Get(t.Context(), info.URI)
		require.NoError(t, err)
		all.WriteString(info.URI + "\n" + string(entry.Value) + "\n")
	}
	return all.String()
}

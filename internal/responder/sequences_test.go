package responder_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/bolt"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// once is a service that counts how often it gets each message, in the transaction of the message
// if there is one.
type once struct {
	mu    sync.Mutex
	times map[string]int
}

func (o *once) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	o.times[string(body)]++
	o.mu.Unlock()
	switch r.URL.Path {
	case "/panics":
		panic(errors.New("as it has to"))
	case "/tx":
		_, _ = fmt.Fprintf(w, "in %t: %s", responder.TxOf(r.Context()) != nil, body)
	default:
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = w.Write(body)
	}
}

// startInSequences is an end whose sessions have a sequence that a store keeps.
func startInSequences(t *testing.T, services *once, change func(*responder.Config)) *end {
	t.Helper()
	store, err := bolt.Open(filepath.Join(t.TempDir(), "store"), bolt.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return start(t, services.ServeHTTP, func(c *responder.Config) {
		c.Store = store
		c.Sequenced = responder.SequencedHandler(services, func(path string) bool { return path == "/tx" }, nil)
		if change != nil {
			change(c)
		}
	})
}

// sender is a client with a sequence of its own.
type sender struct {
	*sequence.Sequence
	e     *end
	uri   string
	serve streamer.ExchangeHandler
}

var exactlyOnce = negotiate.AssuranceURI(wsrm.ExactlyOnce, true)

func newSender(t *testing.T, e *end, name string) *sender {
	t.Helper()
	store := memory.New(memory.Config{})
	t.Cleanup(func() { _ = store.Close() })
	q, err := sequence.Open(context.Background(), sequence.Config{Assurance: wsrm.ExactlyOnce, Ordered: true,
		Store: store, URI: "urn:own:" + name})
	require.NoError(t, err)
	t.Cleanup(q.Close)
	return &sender{q, e, ctxstore.SequencePrefix + name, q.Handler(nil, nil)}
}

// attach opens a session with the sequence, and a stream of it. Its error is that of the stream.
func (s *sender) attach(t *testing.T) (*streamer.Stream, error) {
	t.Helper()
	o := anOffer()
	o.Assurances, o.Sequence = []string{exactlyOnce}, s.uri
	a := s.e.agree(t, o)
	require.Equal(t, exactlyOnce, a.Assurance)
	cfg := hello(a.Session, a.Token[:])
	cfg.Acks, cfg.Kept, cfg.Handler = s.Acks, s.Kept, s.serve
	stream, err := s.e.open(t, cfg)
	if err == nil {
		s.Attach(stream)
	}
	return stream, err
}

func (s *sender) call(t *testing.T, path, body string) string {
	t.Helper()
	head := "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n\r\n"
	sending, err := s.Send(t.Context(), sequence.Stored{Head: []byte(head), Body: []byte(body)}, true)
	require.NoError(t, err)
	reply, err := sending.Wait(t.Context())
	require.NoError(t, err)
	got, err := reply.Message(t.Context()).ReadAll(1 << 20)
	require.NoError(t, err)
	return string(got)
}

// Messages of a sequence reach their service once each, whatever stream they come over; each
// service gets its own path, and a transaction if it wants one.
func TestSequences(t *testing.T) {
	services := &once{times: map[string]int{}}
	e := startInSequences(t, services, nil)
	s := newSender(t, e, "0f1e2d3c4b5a69788796a5b4c3d2e1f0")
	first, err := s.attach(t)
	require.NoError(t, err)
	assert.Equal(t, "one", s.call(t, "/soap", "one"))
	second, err := s.attach(t)
	require.NoError(t, err)
	assert.Equal(t, "in true: two", s.call(t, "/tx", "two"))
	<-first.Done()     // the sequence goes on over the other one
	_ = second.Close() // the sequence may be about to acknowledge on it
	waiting := make(chan string, 1)
	go func() { waiting <- s.call(t, "/soap", "three") }()
	_, err = s.attach(t)
	require.NoError(t, err)
	assert.Equal(t, "three", <-waiting)
	assert.Empty(t, s.call(t, "/panics", "four"), "status 500 is the reply")
	require.NoError(t, s.Finish(t.Context()))
	services.mu.Lock()
	defer services.mu.Unlock()
	assert.Equal(t, map[string]int{"one": 1, "two": 1, "three": 1, "four": 1}, services.times)
}

// More sequences than may be stored: those that nobody needs go, those in use stay.
func TestTooManySequences(t *testing.T) {
	services := &once{times: map[string]int{}}
	e := startInSequences(t, services, func(c *responder.Config) { c.MaxSessions, c.MaxPerPeer = 1, 1 })
	const kept = 16 // for each session that there may be, one of which is such as nobody needs
	refused := 0
	for i := range kept + 2 {
		s := newSender(t, e, fmt.Sprintf("%032x", i))
		var stream *streamer.Stream
		err := errors.New("too many sessions")
		for err != nil && strings.Contains(err.Error(), "too many sessions") { // the slot of the one before
			require.Eventually(t, func() bool {
				status, _ := e.offer(t, anOffer())
				return status == http.StatusOK
			}, eventually, tick)
			stream, err = s.attach(t)
		}
		if err != nil {
			require.ErrorContains(t, err, "too many sequences are kept here")
			refused++
			continue
		}
		s.call(t, "/soap", fmt.Sprint(i))
		require.NoError(t, stream.Close())
	}
	assert.Equal(t, 2, refused, "sequences with messages stay")
}

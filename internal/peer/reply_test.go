package peer_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// What an echo has of a message comes back while the rest is waited for, however little it is.
func TestEchoOfWhatIsThere(t *testing.T) {
	sess := dial(t, start(t).URL(peer.EchoPath), config(t, true))
	gate := make(chan struct{})
	body := io.MultiReader(strings.NewReader("first"), waiting(gate), strings.NewReader("second"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends what would wait for ever
	defer cancel()
	reply, err := sess.Call(ctx, &streamer.Message{Body: body})
	require.NoError(t, err)
	first := make([]byte, len("first"))
	_, err = io.ReadFull(reply.Body, first)
	require.NoError(t, err)
	assert.Equal(t, "first", string(first))
	close(gate)
	rest, err := reply.ReadAll(1 << 10)
	require.NoError(t, err)
	assert.Equal(t, "second", string(rest))
}

// A reply that its service cuts short does not look whole, by either way, whether some of it has
// been sent or not.
func TestCutReplies(t *testing.T) {
	cut := func(length int, flush bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.WriteString(w, strings.Repeat("x", length))
			if flush {
				_ = http.NewResponseController(w).Flush()
			}
			panic(http.ErrAbortHandler)
		}
	}
	s := start(
		t,
		service("/short", cut(10, false)),
		service("/flushed", cut(10, true)),
		service("/long", cut(1<<20, false)),
	)
	for _, path := range []string{"/short", "/flushed", "/long"} {
		for _, hhfr := range []bool{false, true} {
			_, _, err := exchange(t.Context(), dial(t, s.URL(path), config(t, hhfr)), "", strings.NewReader("<x/>"))
			require.Error(t, err, "%s hhfr=%v", path, hhfr)
		}
	}
}

// startDurable is a server whose store persists, as far as anybody asks, with a session under
// exactly-once.
func startDurable(t *testing.T, services ...peer.Service) *session.Session {
	store := lasting{newStore(t)}
	s := startWith(t, func(c *peer.Config) { c.Store, c.Coders = store, codersOf(store) }, services...)
	cfg := config(t, true)
	cfg.Assurance, cfg.Store = wsrm.ExactlyOnce, lasting{newStore(t)}
	return dial(t, s.URL(services[0].Path), cfg)
}

// A handler whose effects are in a transaction gets its message again when it panics, and nothing
// of what it had done is left; its reply and its effect are there once.
func TestTransactionsOfHandlers(t *testing.T) {
	for name, why := range map[string]any{"abort": http.ErrAbortHandler, "panic": "no reason"} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			counter := service("/counter", func(w http.ResponseWriter, r *http.Request) {
				tx := responder.TxOf(r.Context())
				if !assert.NotNil(t, tx) {
					return
				}
				tx.Set(append(tx.Value(), 'x'))
				if calls.Add(1) == 2 {
					panic(why)
				}
				_, _ = w.Write(tx.Value())
			})
			counter.Transactional = true
			sess := startDurable(t, counter)
			for n := 1; n <= 3; n++ {
				_, body, err := exchange(t.Context(), sess, "", strings.NewReader("<x/>"))
				require.NoError(t, err)
				assert.Equal(t, strings.Repeat("x", n), body)
			}
			assert.EqualValues(t, 4, calls.Load())
			require.NoError(t, sess.Finish(t.Context()))
		})
	}
}

// A message whose handler has effects of its own is handled once, whatever becomes of its reply: a
// panic, and a reply that no sequence takes, are told by status 500.
func TestRepliesThatSequencesLack(t *testing.T) {
	var calls atomic.Int64
	sess := startDurable(t, peer.Blob(), service("/panics", func(_ http.ResponseWriter, r *http.Request) {
		assert.Nil(t, responder.TxOf(r.Context()))
		calls.Add(1)
		panic(http.ErrAbortHandler)
	}))
	size := func(n int) string { return envelope(soap.V11, "blob", fmt.Sprintf("<size>%d</size>", n)) }
	_, body, err := exchange(t.Context(), sess, "", strings.NewReader(size(1<<20)))
	require.NoError(t, err)
	assert.Greater(t, len(body), 1<<20)
	head, body, err := exchange(t.Context(), sess, "", strings.NewReader(size(512<<20)))
	require.NoError(t, err)
	assert.Contains(t, head, "HTTP/1.1 500 ")
	assert.Contains(t, body, "its reply cannot be sent")
	head, body, err = exchange(t.Context(), sess, "POST /panics HTTP/1.1\n\n", strings.NewReader("<x/>"))
	require.NoError(t, err)
	assert.Contains(t, head, "HTTP/1.1 500 ")
	assert.Empty(t, body)
	assert.EqualValues(t, 1, calls.Load())
	require.NoError(t, sess.Finish(t.Context()))
}

// One that is sent one way is served, and what its service writes goes nowhere.
func TestOneWayRequests(t *testing.T) {
	served := make(chan string, 1)
	s := start(t, service("/told", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		_, err = w.Write(body)
		assert.NoError(t, err)
		assert.NoError(t, http.NewResponseController(w).Flush())
		served <- string(body)
	}))
	sess := dial(t, s.URL("/told"), config(t, true))
	require.NoError(t, sess.Send(t.Context(), streamer.NewMessage(nil, []byte("<one-way/>"))))
	assert.Equal(t, "<one-way/>", <-served)
}

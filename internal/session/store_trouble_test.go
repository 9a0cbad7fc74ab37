package session_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/spare"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// troubled is a store with a trouble, from some moment on.
type troubled struct {
	ctxstore.Store
	trouble atomic.Pointer[func(ctx context.Context, writes bool) error]
	calls   atomic.Int64
}

func (s *troubled) now(ctx context.Context, writes bool) error {
	s.calls.Add(1)
	if f := s.trouble.Load(); f != nil {
		return (*f)(ctx, writes)
	}
	return nil
}

func (s *troubled) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	if err := s.now(ctx, false); err != nil {
		return ctxstore.Entry{}, err
	}
	return s.Store.Get(ctx, uri)
}

func (s *troubled) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	if err := s.now(ctx, true); err != nil {
		return 0, err
	}
	return s.Store.Put(ctx, uri, value, o)
}

func (s *troubled) Delete(ctx context.Context, uri string, rev *uint64) error {
	if err := s.now(ctx, true); err != nil {
		return err
	}
	return s.Store.Delete(ctx, uri, rev)
}

// warnings are the lines of a log.
type warnings struct {
	mu    sync.Mutex
	lines strings.Builder
}

func (w *warnings) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.Write(b)
}

func (w *warnings) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lines.String()
}

// Whatever is wrong with the responder's store: a session goes on with the shapes it knows and asks
// the store for nothing, it goes on with new ones, a new session is answered, and the log says so
// once. When the trouble is over, a new session has a stream again.
func TestStoreTrouble(t *testing.T) {
	failing := func(code ctxstore.Code, writesOnly bool) func(context.Context, bool) error {
		return func(_ context.Context, writes bool) error {
			if writesOnly && !writes {
				return nil
			}
			return &ctxstore.Error{Code: code, Err: errors.New("trouble")}
		}
	}
	for name, tc := range map[string]struct {
		trouble func(context.Context, bool) error
		stream  bool // new sessions have one all the same
	}{
		"slow": {func(ctx context.Context, _ bool) error {
			select {
			case <-time.After(50 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, true},
		"silent": {func(ctx context.Context, _ bool) error {
			<-ctx.Done()
			return &ctxstore.Error{Code: ctxstore.Unavailable, Err: context.Cause(ctx)}
		}, false},
		"gone":      {failing(ctxstore.Unavailable, false), false},
		"full":      {failing(ctxstore.Full, true), true},
		"read-only": {failing(ctxstore.Permission, true), true},
		"corrupt":   {failing(ctxstore.Corrupt, false), false},
	} {
		for _, mode := range []negotiate.Mode{negotiate.Explicit, negotiate.Auto} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				log := &warnings{}
				store := &troubled{Store: newStore(t)}
				logger := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
				s := startServices(t, func(c *responder.Config) {
					c.Store = spare.New(store, spare.Config{Patience: 200 * time.Millisecond, Log: logger})
					book := binary.NewBook(ctxstore.Shapes{Store: c.Store})
					book.Log = logger
					c.Coders, c.Log = coders.OfBook(book), logger
				})
				open := func() *stationed {
					cfg := config(t)
					cfg.Coders, cfg.RememberFor, cfg.Mode = nil, -1, mode
					return &stationed{t, dial(t, s.http.URL+"/echo", cfg)}
				}
				before := open()
				before.say("known", 3)
				before.settle(store)

				store.trouble.Store(&tc.trouble)
				calls := store.calls.Load()
				before.say("known", 20)
				assert.Equal(t, calls, store.calls.Load(), "what is known is not asked for")
				before.say("new", 3)
				assert.True(t, before.Agreed().HHFR)
				for range 3 {
					during := open()
					during.say("other", 2)
					assert.Equal(t, tc.stream, during.Agreed().HHFR)
					require.NoError(t, during.Close())
				}
				before.say("known", 3)
				assert.LessOrEqual(t, strings.Count(log.text(), "\n"), 2,
					"the store, and what came of it: %s", log.text())

				store.trouble.Store(nil)
				require.Eventually(t, func() bool {
					after := open()
					after.say("known", 1)
					defer func() { _ = after.Close() }()
					return after.Agreed().HHFR
				}, 10*time.Second, 10*time.Millisecond)
			})
		}
	}
}

// stationed is a session that says things and hears them back.
type stationed struct {
	t *testing.T
	*session.Session
}

func (s *stationed) say(kind string, times int) {
	s.t.Helper()
	for i := range times {
		body := envelope(fmt.Sprintf("<%s><a>%d</a><b>some text of it</b></%s>", kind, i, kind))
		_, got := call(s.t, s.Session, "", body)
		require.Equal(s.t, body, got)
	}
}

// settle waits until the peer has stored what it learned.
func (s *stationed) settle(store *troubled) {
	for last := int64(-1); last != store.calls.Load(); {
		last = store.calls.Load()
		s.say("known", 1)
	}
}

package session_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shape/learn"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// callCounter is a store that counts the calls of its engine.
type callCounter struct {
	ctxstore.Store
	lists, calls atomic.Int64
}

func (c *callCounter) Get(ctx context.Context, uri string) (ctxstore.Entry, error) {
	c.calls.Add(1)
	return c.Store.Get(ctx, uri)
}

func (c *callCounter) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	c.calls.Add(1)
	return c.Store.Put(ctx, uri, value, o)
}

func (c *callCounter) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	c.calls.Add(1)
	return c.Store.Commit(ctx, uri, expect, value)
}

func (c *callCounter) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	c.calls.Add(1)
	return c.Store.Delete(ctx, uri, ifRevision)
}

func (c *callCounter) List(ctx context.Context, prefix string) iter.Seq2[ctxstore.Info, error] {
	c.lists.Add(1)
	return c.Store.List(ctx, prefix)
}

func (c *callCounter) Watch(ctx context.Context, prefix string) (<-chan ctxstore.Change, error) {
	c.lists.Add(1)
	return c.Store.Watch(ctx, prefix)
}

// spent is what the sessions of a client with a service took.
type spent struct {
	octets [2]int64 // as the client and the server count them
	calls  [2]int64 // of their stores
}

// spend has a client speak to a service twice by a mode, over stores that have shapes and sessions
// of others, and returns what the sessions took: with a peer that is not known, and with one that
// is.
func spend(t *testing.T, engine string, mode negotiate.Mode, shapes, sessions int) (unknown, known spent) {
	t.Helper()
	var stores [2]*callCounter
	for i := range stores {
		stores[i] = &callCounter{Store: openEngine(t, engine)}
		fill(t, stores[i], shapes, sessions)
	}
	address := "127.0.0.1:0"
	session := func(by negotiate.Mode) (s spent) {
		d := openAt(t, address, http.HandlerFunc(repeat), false, func(c *responder.Config) { c.Store = stores[1] })
		cfg := d.config(mode)
		cfg.Store = stores[0]
		octets := counted(&cfg)
		for i := range stores {
			stores[i].calls.Store(0)
		}
		callOnce(t, d.url, cfg, by, request(t))
		d.close() // and waits for what the server does at the end of a session
		address = strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), "/soap")
		return spent{[2]int64{octets.Load(), d.octets.Load()}, [2]int64{stores[0].calls.Load(), stores[1].calls.Load()}}
	}
	first, second := mode, mode
	if mode == negotiate.Auto {
		first, second = negotiate.FirstCall, negotiate.Met
	}
	unknown, known = session(first), session(second)
	for i := range stores {
		assert.Zero(t, stores[i].lists.Load(), "nothing is listed")
	}
	return unknown, known
}

// What a session takes does not depend on what else the stores have: neither bytes, as each end
// counts them, nor calls of the store, of which none lists anything. This holds for each way to a
// session, with a peer that is not known and one that is, and for each engine.
func TestSessionsDoNotDependOnWhatIsStored(t *testing.T) {
	for _, engine := range []string{"memory", "directory", "bolt"} {
		for _, mode := range []negotiate.Mode{negotiate.FirstCall, negotiate.Auto, negotiate.Explicit} {
			t.Run(engine+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				unknown, known := spend(t, engine, mode, 0, 0)
				manyUnknown, manyKnown := spend(t, engine, mode, 60, 20)
				for _, pair := range [][2]spent{{unknown, manyUnknown}, {known, manyKnown}} {
					for i := range pair[0].octets {
						assert.InEpsilon(t, pair[0].octets[i], pair[1].octets[i], 0.05)
					}
					assert.Equal(t, pair[0].octets[0], pair[0].octets[1], "both ends count the same")
					for i, calls := range pair[0].calls {
						assert.InDelta(t, calls, pair[1].calls[i], 4, "how a session ends takes some more or fewer")
					}
				}
				assert.Less(t, known.calls[0], int64(20))
				assert.Less(t, known.calls[1], int64(20))
				if mode == negotiate.Auto {
					assert.Less(t, known.octets[0], unknown.octets[0], "shapes travel once")
				}
				if mode == negotiate.Explicit { // a name takes more than the text that announces these shapes
					assert.InDelta(t, unknown.octets[0], known.octets[0], 4)
				}
			})
		}
	}
}

// kinds are messages of so many kinds, each with a shape that is worth a name.
func kinds(from, to int) (messages []string) {
	for i := from; i < to; i++ {
		b := new(strings.Builder)
		for j := range 10 {
			name := fmt.Sprintf("f%x", sha256.Sum256([]byte{byte(i), byte(j)}))
			fmt.Fprintf(b, "<k:%s>1</k:%s>", name, name)
		}
		messages = append(messages, envelope(fmt.Sprintf(`<k:kind%d xmlns:k="urn:kinds">%s</k:kind%d>`, i, b, i)))
	}
	return messages
}

// sayAll opens a session with an offer, over a book of its own, and sends messages. It returns how
// many shapes the offer named, how many of these the answer has, and the bytes of shapes that were
// sent.
func sayAll(t *testing.T, url string, cfg session.Config, messages []string) (named, common int, shapes int64) {
	t.Helper()
	s := dial(t, url, cfg)
	for _, m := range messages {
		_, got := call(t, s, "", m)
		assert.Equal(t, m, got)
	}
	agreed := s.Agreed()
	require.Equal(t, negotiate.Explicit, agreed.Mode, agreed.Why)
	stats := s.Stream().Stats()
	require.NoError(t, s.Close())
	return len(agreed.Offer.Shapes), len(agreed.Answer.Shapes), stats.Sent.Shape.Octets
}

// An offer names what sessions with that origin used last, at most eight shapes, and nothing that
// was used elsewhere. What it names travels by reference.
func TestOffersNameWhatWasUsedLast(t *testing.T) {
	d, other := open(t, http.HandlerFunc(repeat), false, nil), open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Explicit)
	named, _, full := sayAll(t, d.url, cfg, kinds(0, 1))
	assert.Zero(t, named)
	named, common, reference := sayAll(t, d.url, cfg, kinds(0, 1))
	assert.Equal(t, 1, named, "and not the head of replies, whose shape is shorter than its name")
	assert.Equal(t, 1, common)
	assert.Less(t, reference, int64(60))
	assert.Greater(t, full, 2*reference)

	named, _, _ = sayAll(t, other.url, cfg, kinds(0, 1))
	assert.Zero(t, named, "the other service was not spoken to")
	sayAll(t, d.url, cfg, kinds(1, 30))
	named, common, shapes := sayAll(t, d.url, cfg, kinds(22, 30))
	assert.Equal(t, 8, named)
	assert.Equal(t, 8, common)
	assert.Less(t, shapes, int64(8*60))
	_, _, shapes = sayAll(t, d.url, cfg, kinds(0, 1))
	assert.Greater(t, shapes, int64(60), "it was used too long ago")
	named, _, shapes = sayAll(t, d.url, cfg, kinds(0, 1))
	assert.Equal(t, 8, named)
	assert.Less(t, shapes, int64(60), "and now last")
}

// A program that says what it will use has all of that named, if the peer has seen it; of what the
// peer may not know it is a few.
func TestOffersNameWhatWillBeUsed(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Explicit)
	for _, m := range kinds(0, 30) {
		s, err := learn.FromMessage([]byte(m))
		require.NoError(t, err)
		_, err = ctxstore.Shapes{Store: cfg.Store}.Put(t.Context(), s.Octets())
		require.NoError(t, err)
		cfg.Shapes = append(cfg.Shapes, s.Fingerprint())
	}
	named, common, _ := sayAll(t, d.url, cfg, kinds(0, 30))
	assert.Equal(t, 16, named)
	assert.Zero(t, common)
	named, common, shapes := sayAll(t, d.url, cfg, kinds(0, 30))
	assert.Equal(t, 30, named)
	assert.Equal(t, 30, common)
	assert.Less(t, shapes, int64(30*60))
}

// The next stream of a session is offered with what the one before has used.
func TestNextStreamsNameWhatTheLastOneUsed(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Explicit)
	cfg.Reconnect = eventually
	again := make(chan negotiate.Agreed, 2)
	cfg.OnAgreed = func(_ string, agreed negotiate.Agreed) { again <- agreed }
	s := dial(t, d.url, cfg)
	assert.Empty(t, (<-again).Offer.Shapes)
	_, got := call(t, s, "", kinds(0, 1)[0])
	assert.Equal(t, kinds(0, 1)[0], got)
	s.Stream().Abort(streamer.CloseGoingAway, "for the test")
	assert.Len(t, (<-again).Offer.Shapes, 1)
}

// A store of the version before names nothing that was used with an origin but in the session that
// can be joined again: that is joined, and an offer names what it used.
func TestOffersOfOlderStores(t *testing.T) {
	d := open(t, http.HandlerFunc(repeat), false, nil)
	cfg := d.config(negotiate.Auto)
	s := dial(t, d.url, cfg)
	for range 2 {
		_, got := call(t, s, "", kinds(0, 1)[0])
		assert.Equal(t, kinds(0, 1)[0], got)
	}
	require.NoError(t, s.Close())
	used := session.UsedPrefix + strings.TrimSuffix(d.url, "/soap")
	require.NoError(t, cfg.Store.Delete(t.Context(), used, nil))
	older := copyOf(t, cfg.Store)

	s = dial(t, d.url, cfg)
	_, got := call(t, s, "", kinds(0, 1)[0])
	assert.Equal(t, kinds(0, 1)[0], got)
	assert.Equal(t, negotiate.Met, s.Agreed().Mode)
	require.NoError(t, s.Close())

	cfg.Store, cfg.Mode = older, negotiate.Explicit
	named, common, shapes := sayAll(t, d.url, cfg, kinds(0, 1))
	assert.Positive(t, named)
	assert.Equal(t, named, common)
	assert.Less(t, shapes, int64(60))
}

package sequence_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Sizes by which every step of a long message is short.
const (
	shortest = 100
	piece    = 64
)

// mixed is the body of a message: some are long, of several pieces, of just one more byte than is
// short, of whole pieces.
func mixed(n uint64) []byte {
	size := []int{10, 5*piece + 7, shortest + 1, 0, 3 * piece}[n%5]
	body := binary.BigEndian.AppendUint64(nil, n)
	random := rand.New(rand.NewPCG(n, 1))
	for range size {
		body = append(body, byte(random.Uint32()))
	}
	return body
}

// wholeLedger is a ledger that reads each message to its end, and fails a test where it is another
// one. Without a transaction it notes the number itself.
type wholeLedger struct {
	t      *testing.T
	alone  bool
	handed *[]uint64
}

func (l wholeLedger) Transactional(sequence.Stored) bool { return !l.alone }

func (l wholeLedger) read(ctx context.Context, m sequence.Stored) ([]byte, error) {
	body, err := io.ReadAll(m.Message(ctx).Body)
	if err != nil {
		return nil, err
	}
	assert.Equal(l.t, mixed(binary.BigEndian.Uint64(body)), body)
	return body, nil
}

func (l wholeLedger) Transact(ctx context.Context, tx *wsrm.Tx, m sequence.Stored) (sequence.Stored, error) {
	body, err := l.read(ctx, m)
	if err != nil {
		return sequence.Stored{}, err
	}
	reply, err := ledger{}.Transact(ctx, tx, sequence.Stored{Head: m.Head, Body: body})
	reply.Rest = bytes.NewReader(body) // which makes it long where the message was
	return reply, err
}

func (l wholeLedger) Handle(ctx context.Context, m sequence.Stored) sequence.Stored {
	body, err := l.read(ctx, m)
	assert.NoError(l.t, err)
	*l.handed = append(*l.handed, binary.BigEndian.Uint64(body))
	return sequence.Stored{Body: body[:8]}
}

// newLongWorld is a world with long messages, whose power is gone until an end is opened again.
func newLongWorld(t *testing.T, cfg sequence.Config) *world {
	cfg.Short, cfg.Piece, cfg.Collect, cfg.Long = shortest, piece, true, "urn:test:client"
	w := newWorld(t, cfg, wholeLedger{t: t})
	w.body = mixed
	for _, d := range w.disks {
		d.dies = true
	}
	return w
}

// checkReplies holds the replies that came to what was sent.
func (w *world) checkReplies() {
	for n, r := range w.replies {
		assert.Equal(w.t, mixed(n), r.rest, "reply to %d", n)
	}
}

// left are the pieces in a store.
func left(t *testing.T, d *disk) (list []string) {
	for info, err := range d.List(t.Context(), "urn:hhfr:piece:") {
		require.NoError(t, err)
		list = append(list, info.URI)
	}
	return list
}

// checkLeft holds the stores to having no piece, once they were opened again: a kill may leave
// some.
func (w *world) checkLeft() {
	w.open()
	w.close()
	for i, d := range w.disks {
		assert.Empty(w.t, left(w.t, d), "end %d", i)
	}
}

// Either end is killed at each change of its store in turn, before or after that is made: of long
// messages, too, each has its effect once, is whole, and nothing of it stays. So with their
// replies.
func TestLongMessagesKilledAnywhere(t *testing.T) {
	const messages = 3
	for end := range 2 {
		for _, written := range []bool{false, true} {
			failed := 0
			for failAt := 1; failed == failAt-1; failAt++ {
				w := newLongWorld(t, exactly(written))
				w.disks[end].failAt, w.disks[end].written = failAt, written
				failed += w.run(messages)
				w.close()
				w.check(messages)
				w.checkReplies()
				w.checkLeft()
				if t.Failed() {
					t.Fatalf("end %d fails at %d, written %v", end, failAt, written)
				}
			}
			assert.Greater(t, failed, 9, "each piece is a change")
		}
	}
}

// Both ends are killed again and again, and connections break behind any byte.
func TestLongMessagesOverAnyLink(t *testing.T) {
	for seed := range uint64(30) {
		longOverAnyLink(t, seed)
	}
}

func longOverAnyLink(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	cfg := exactly(random.IntN(2) == 0)
	if random.IntN(4) == 0 {
		cfg.Assurance = wsrm.AtLeastOnce
	}
	w := newLongWorld(t, cfg)
	for i, d := range w.disks {
		own := rand.New(rand.NewPCG(seed, uint64(3+i))) // each disk draws by itself
		d.failAt = 1 + own.IntN(40)
		d.next = func() int { return 5 + own.IntN(60) }
	}
	w.cuts = func() (cut [2]int64) {
		for i := range cut {
			cut[i] = random.Int64N(4000)
		}
		return cut
	}
	const messages = 12
	w.run(messages)
	w.close()
	for _, d := range w.disks {
		d.failAt, d.next = 0, nil
	}
	w.check(messages)
	w.checkReplies()
	w.checkLeft()
	if t.Failed() {
		t.Fatalf("seed %d", seed)
	}
}

// A receiver has no space for a piece again and again, of messages and of replies: it drops what it
// has of that message, so that others have the space, and each has its effect once, whole, in the
// end.
func TestLongMessagesWithoutSpace(t *testing.T) {
	const messages = 12
	var refused atomic.Int64
	for seed := range uint64(30) {
		w := newLongWorld(t, exactly(seed%2 == 0))
		for i, d := range w.disks {
			random := rand.New(rand.NewPCG(seed, uint64(3+i)))
			d.full = func(uri string) bool {
				full := strings.Contains(uri, ":arrived:") && random.IntN(12) == 0
				if full {
					refused.Add(1)
				}
				return full
			}
		}
		w.run(messages)
		w.close()
		for _, d := range w.disks {
			d.full = nil
		}
		w.check(messages)
		w.checkReplies()
		w.checkLeft()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	assert.Greater(t, refused.Load(), int64(100))
}

// What a receiver has stored of a long message is not sent again, however often connections break.
func TestLongMessagesGoOn(t *testing.T) {
	const size = 2 << 20
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	cfg := exactly(true)
	cfg.Short, cfg.Piece = shortest, 16<<10
	got := 0
	w := newWorld(t, cfg, worker{func(m sequence.Stored) sequence.Stored {
		all, err := io.ReadAll(m.Message(t.Context()).Body)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(body, all))
		got++
		return sequence.Stored{}
	}})
	w.body = func(uint64) []byte { return body }
	var stored uint64
	var from []uint64
	w.cuts = func() [2]int64 {
		stored = 0
		for info, err := range w.disks[1].List(t.Context(), "urn:hhfr:piece:") {
			require.NoError(t, err)
			stored += uint64(info.Size)
		}
		return [2]int64{256 << 10, 0}
	}
	w.arrives = func(place streamer.Place) {
		assert.EqualValues(t, size, place.Length)
		assert.Equal(t, stored, place.From, "connection %d", len(from))
		from = append(from, place.From)
	}
	w.run(1)
	w.close()
	assert.Equal(t, 1, got)
	assert.Greater(t, len(from), 5)
	assert.True(t, slices.IsSorted(from))
}

// A message that is longer than the state takes is refused under at-most-once, and by a peer of an
// earlier version, which says nothing of long messages: at once, and what follows goes.
func TestLongMessagesRefused(t *testing.T) {
	long := strings.Repeat("x", sequence.MaxMessage+1)
	t.Run("at-most-once", func(t *testing.T) {
		w := newWorld(t, sequence.Config{Assurance: wsrm.AtMostOnce, Ordered: true}, ledger{})
		w.open()
		_, err := w.ends[0].Prepare(t.Context(), nil, strings.NewReader(long))
		assert.ErrorIs(t, err, &sequence.Error{Code: sequence.TooLarge})
		w.close()
	})
	t.Run("earlier version", func(t *testing.T) {
		cfg := exactly(true)
		cfg.Long, cfg.Collect = "urn:test:client", true
		w := newWorld(t, cfg, ledger{})
		w.unkept = true
		w.open()
		require.True(t, w.connect())
		m, err := w.ends[0].Prepare(t.Context(), nil, strings.NewReader(long))
		require.NoError(t, err)
		_, err = w.ends[0].Send(t.Context(), m, true)
		require.ErrorIs(t, err, &sequence.Error{Code: sequence.TooLarge})
		assert.ErrorContains(t, err, fmt.Sprint(sequence.MaxMessage))
		w.ends[0].Discard(m)
		s, err := w.ends[0].Send(t.Context(), sequence.Stored{Body: make([]byte, 8)}, true)
		require.NoError(t, err)
		_, err = s.Wait(t.Context())
		require.NoError(t, err)
		w.close()
		w.checkLeft()
	})
}

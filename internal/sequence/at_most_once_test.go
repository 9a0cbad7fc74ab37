package sequence_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

var atMostOnce = sequence.Config{Assurance: wsrm.AtMostOnce, Ordered: true}

// Streams break at random, in either direction, and the power of the server fails: no message is
// handled twice, all are in order, and each that was not answered has an unknown fate. Nothing is
// sent again.
func TestAtMostOnceOverBrokenStreams(t *testing.T) {
	const messages = 40
	unknown, restarts := 0, 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t, atMostOnce, ledger{})
		left := 1 + random.IntN(6)
		w.cuts = func() (cut [2]int64) {
			if left--; left >= 0 {
				cut[random.IntN(2)] = 100 + random.Int64N(600)
			}
			return cut
		}
		w.disks[1].failAt, w.disks[1].written = random.IntN(12), seed%2 == 0
		restarts += w.run(messages)
		for i := range w.ends {
			assert.Zero(t, w.ends[i].Status().Resent, "seed %d", seed)
		}
		w.close()
		handled := map[uint64]bool{}
		last := uint64(0)
		for _, n := range w.effect() {
			require.Greater(t, n, last, "seed %d: twice, or out of order", seed)
			last, handled[n] = n, true
		}
		require.Len(t, w.replies, messages, "seed %d", seed)
		for n, r := range w.replies {
			if r.err != nil {
				require.ErrorIs(t, r.err, &sequence.Error{Code: sequence.FateUnknown}, "seed %d", seed)
				unknown++
				continue
			}
			require.True(t, handled[n], "seed %d: message %d has a reply and no effect", seed, n)
		}
		assert.False(t, w.twice, "seed %d: a reply came twice", seed)
	}
	assert.Positive(t, unknown, "no stream took anything along")
	assert.Positive(t, restarts, "no power failed")
}

// A handler that outlasts the stream keeps what comes over the next one waiting; what waited behind
// it was given up, and is not handled. The first has an unknown fate, though its handler ends well.
func TestAtMostOnceHandlerOutlastsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var handled []string
		w := newWorld(t, atMostOnce, worker{func(m sequence.Stored) sequence.Stored {
			mu.Lock()
			handled = append(handled, string(m.Body))
			mu.Unlock()
			time.Sleep(time.Minute)
			mu.Lock()
			defer mu.Unlock()
			handled = append(handled, string(m.Body)+" done")
			return m
		}})
		w.open()
		require.True(t, w.connect())
		first, behind := send(t, w.ends[0], "first", true), send(t, w.ends[0], "behind", false)
		synctest.Wait()
		w.disconnect()
		synctest.Wait()
		for _, s := range []*sequence.Sending{first, behind} {
			settled, err := s.Settled()
			require.True(t, settled, "told when the stream broke")
			assert.ErrorIs(t, err, &sequence.Error{Code: sequence.FateUnknown})
		}
		next := send(t, w.ends[0], "next", true)
		require.True(t, w.connect())
		m, err := next.Wait(t.Context())
		require.NoError(t, err, "what was not sent goes over the next stream")
		assert.Equal(t, "next", string(m.Body))
		require.NoError(t, w.ends[0].Finish(t.Context()))
		assert.Equal(t, []string{"first", "first done", "next", "next done"}, handled)
		w.close()
	})
}

// A reply that a stream takes along leaves its request with an unknown fate.
func TestAtMostOnceReplyIsTakenAlong(t *testing.T) {
	w := newWorld(t, atMostOnce, worker{echo})
	w.open()
	w.cut[1] = 150 // the hello goes through, the reply does not
	require.True(t, w.connect())
	lost := send(t, w.ends[0], string(make([]byte, 1000)), true)
	_, err := lost.Wait(t.Context())
	require.ErrorIs(t, err, &sequence.Error{Code: sequence.FateUnknown})
	assert.EqualValues(t, 1, w.ends[0].Status().Done, "whoever is told finds it counted")
	w.disconnect()
	require.True(t, w.connect())
	m, err := send(t, w.ends[0], "again", true).Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "again", string(m.Body))
	require.NoError(t, w.ends[0].Finish(t.Context()))
	w.close()
}

// Either process dies: what was under way has an unknown fate and is not handled, nor answered,
// again. What is closed keeps nothing.
func TestAtMostOnceOverProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, atMostOnce, ledger{})
		w.open()
		require.True(t, w.connect())
		body := func(n uint64) string { return string(binary.BigEndian.AppendUint64(nil, n)) }
		_, err := send(t, w.ends[0], body(1), true).Wait(t.Context())
		require.NoError(t, err)
		w.disconnect()
		synctest.Wait() // both ends know
		w.kill(1)
		w.open()
		require.True(t, w.connect())
		_, err = send(t, w.ends[0], body(2), true).Wait(t.Context())
		require.NoError(t, err)
		w.disconnect()
		synctest.Wait() // both ends know
		waiting := send(t, w.ends[0], body(3), true)
		require.NoError(t, waiting.Stored(t.Context()))
		w.kill(0)
		_, err = waiting.Wait(t.Context())
		assert.ErrorIs(t, err, &sequence.Error{Code: sequence.Unsent})
		w.close()
		assert.Equal(t, []uint64{1, 2}, w.effect())
	})
}

// What a stream that breaks has not written is not lost with it: it goes over the next one, in its
// order.
func TestAtMostOnceLosesOnlyWhatWasWritten(t *testing.T) {
	const messages, size, cut = 400, 1000, 20_000
	var handled []uint64
	w := newWorld(t, atMostOnce, worker{func(m sequence.Stored) sequence.Stored {
		handled = append(handled, binary.BigEndian.Uint64(m.Body))
		return m
	}})
	w.open()
	w.cut[0] = cut
	require.True(t, w.connect())
	random := rand.NewChaCha8([32]byte{})
	var list []*sequence.Sending
	for n := range uint64(messages) {
		body := binary.BigEndian.AppendUint64(make([]byte, 0, size), n)
		body = body[:size]
		_, _ = random.Read(body[8:])
		list = append(list, send(t, w.ends[0], string(body), false))
	}
	<-w.streams[0].Done()
	w.disconnect()
	require.True(t, w.connect())
	require.NoError(t, w.ends[0].Finish(t.Context()))
	status := w.ends[0].Status()
	w.close()
	assert.Zero(t, status.Resent)
	arrived := map[uint64]bool{}
	for i, n := range handled {
		require.True(t, i == 0 || n > handled[i-1], "twice, or out of order")
		arrived[n] = true
	}
	unknown := 0
	for n, s := range list {
		settled, err := s.Settled()
		require.True(t, settled)
		if err != nil {
			require.ErrorIs(t, err, &sequence.Error{Code: sequence.FateUnknown})
			unknown++
			continue
		}
		require.True(t, arrived[uint64(n)], "message %d is said to be done", n)
	}
	assert.LessOrEqual(t, unknown, cut/size)
}

// slow is a store that takes its time: a change waits until it gets what is in free.
type slow struct {
	ctxstore.Store
	free chan struct{}
}

func (s slow) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	<-s.free
	defer func() { s.free <- struct{}{} }()
	return s.Store.Put(ctx, uri, value, o)
}

// A reply that came before the stream broke is handed over, though the end looks at both at once.
func TestAtMostOnceReplyIsHere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, atMostOnce, worker{func(m sequence.Stored) sequence.Stored {
			<-release
			return m
		}})
		free := make(chan struct{}, 1)
		free <- struct{}{}
		w.disks[0].Store = slow{w.disks[0].Store, free}
		w.open()
		require.True(t, w.connect())
		s := send(t, w.ends[0], "asks", true)
		synctest.Wait()
		<-free
		busy := send(t, w.ends[0], "has the end store its state", false)
		close(release)
		time.Sleep(time.Second) // the reply is on its way
		w.disconnect()
		time.Sleep(time.Second)
		free <- struct{}{}
		m, err := s.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "asks", string(m.Body))
		require.True(t, w.connect())
		require.NoError(t, w.ends[0].Finish(t.Context()))
		_, err = busy.Wait(t.Context())
		assert.NoError(t, err, "it was not written")
		w.close()
	})
}

// On a stream nothing comes twice. What is refused there ends it, so that the peer gets to
// know.
func TestRefusedMessageBreaksTheStream(t *testing.T) {
	w := newWorld(t, atMostOnce, worker{echo})
	w.open()
	require.True(t, w.connect())
	m := streamer.NewMessage(nil, []byte("x"))
	m.Place.Number = sequence.Window + 1
	require.NoError(t, w.streams[0].Lane(0).Send(t.Context(), m))
	<-w.streams[1].Done()
	assert.ErrorContains(t, w.streams[1].Err(), "a message of the sequence was refused")
	w.close()
}

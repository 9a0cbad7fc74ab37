package sequence_test

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer/sequence"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

var atMostOnce = sequence.Config{Assurance: wsrm.AtMostOnce, Ordered: true}

// Streams break at random, in either direction: no message is handled twice, all are in order, and each that was not answered has an unknown fate. Nothing is sent again.
func TestAtMostOnceOverBrokenStreams(t *testing.T) {
	const messages = 40
	unknown := 0
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
		w.run(messages)
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
}

// A handler that outlasts the stream keeps what comes over the next one waiting; what waited behind it was given up, and is not handled. The first has an unknown fate, though its handler ends well.
func TestAtMostOnceHandlerOutlastsItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var handled []string
		w := newWorld(t, atMostOnce, worker{func(m sequence.Message) sequence.Message {
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
	w.disconnect()
	require.True(t, w.connect())
	m, err := send(t, w.ends[0], "again", true).Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "again", string(m.Body))
	require.NoError(t, w.ends[0].Finish(t.Context()))
	w.close()
}

// Either process dies: what was under way has an unknown fate and is not handled, nor answered, again. What is closed keeps nothing.
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

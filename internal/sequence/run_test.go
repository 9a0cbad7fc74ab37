package sequence_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// A run is told from another by each message of it, their order, their heads, and whether a reply
// is wanted.
func TestRunsDiffer(t *testing.T) {
	type message struct {
		m      sequence.Stored
		wanted bool
	}
	one, two := sequence.Stored{Body: []byte("one")}, sequence.Stored{Body: []byte("two")}
	seen := map[[32]byte]int{}
	for i, list := range [][]message{
		{}, {{one, true}}, {{two, true}}, {{one, false}},
		{{one, true}, {two, true}}, {{two, true}, {one, true}}, {{one, true}, {one, true}},
		{{sequence.Stored{Body: []byte("onetwo")}, true}}, {{sequence.Stored{}, true}},
		{{sequence.Stored{Head: []byte("one"), Body: []byte("two")}, true}},
		{{sequence.Stored{Head: []byte{}, Body: []byte("one")}, true}},
	} {
		var r sequence.SentRun
		for _, m := range list {
			r.Add(m.m, m.wanted)
		}
		assert.EqualValues(t, len(list), r.Messages)
		if len(list) > 0 {
			var first sequence.SentRun
			first.Add(list[0].m, list[0].wanted)
			assert.Equal(t, first.Digest, r.First)
		}
		other, again := seen[r.Digest]
		assert.False(t, again, "%d and %d", other, i)
		seen[r.Digest] = i
	}
	assert.NotEqual(t, sequence.NewRun().ID, sequence.NewRun().ID)
}

// runOf is a run with further messages of send.
func runOf(r sequence.SentRun, bodies ...string) sequence.SentRun {
	for _, b := range bodies {
		r.Add(sequence.Stored{Head: []byte("h"), Body: []byte(b)}, true)
	}
	return r
}

// A run begins with the first message that is accepted of it: until then the store has the one
// before. What that left undone is not of the new one.
func TestRunsInOneSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, exactly(true), worker{echo})
		reopen := func() *sequence.Sequence {
			w.kill(0)
			w.open()
			return w.ends[0]
		}
		stored := func() sequence.SentRun {
			run, known := reopen().Run()
			require.True(t, known)
			return run
		}
		w.open()
		require.NoError(t, send(t, w.ends[0], "a", true).Stored(t.Context()))
		first := runOf(w.run0, "a")
		assert.Equal(t, first, stored())
		second := sequence.NewRun()
		w.ends[0].BeginRun(second)
		assert.Equal(t, first, stored(), "nothing of it was accepted")
		w.ends[0].BeginRun(second)
		require.NoError(t, send(t, w.ends[0], "b", true).Stored(t.Context()))
		second = runOf(second, "b")
		assert.Equal(t, second, stored())
		require.True(t, w.connect())
		require.NoError(t, send(t, w.ends[0], "c", true).Stored(t.Context()))
		second = runOf(second, "c")
		require.NoError(t, w.ends[0].Finish(t.Context()))
		run, known := w.ends[0].Run()
		assert.True(t, known)
		assert.Equal(t, second, run, "what is done stays in it")
		w.ends[0].Close()
		run, _ = w.ends[0].Run()
		assert.Equal(t, second, run, "also once it is closed")
		assert.Equal(t, second, stored())
		w.close()
	})
}

// The state of a version that kept no track of runs, and one whose record is damaged.
func TestRunsOfOtherVersions(t *testing.T) {
	w := newWorld(t, exactly(true), worker{echo})
	cfg := w.cfg
	cfg.Store = w.disks[0]
	old, err := sequence.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, send(t, old, "a", true).Stored(t.Context()))
	old.Close()
	_, known := old.Run()
	assert.False(t, known)
	w.open()
	_, known = w.ends[0].Run()
	assert.False(t, known)
	run := sequence.NewRun()
	w.ends[0].BeginRun(run)
	require.NoError(t, send(t, w.ends[0], "b", true).Stored(t.Context()))
	w.kill(0)
	w.open()
	got, known := w.ends[0].Run()
	assert.True(t, known)
	assert.Equal(t, runOf(run, "b"), got)
	w.close()

	entry, err := w.disks[0].Get(t.Context(), uri)
	require.NoError(t, err)
	entry.Value[1] = 9 // behind the length of the effect
	_, err = w.disks[0].Commit(t.Context(), uri, entry.Revision, entry.Value)
	require.NoError(t, err)
	cfg.Run = &run
	_, err = sequence.Open(t.Context(), cfg)
	require.ErrorIs(t, err, &sequence.Error{Code: sequence.BadConfig})
	assert.ErrorContains(t, err, "a form that this version does not know")
}

// What a lost sequence hands over is accepted once more by the next, which so goes on with the same
// run: also where a reply overtook an acknowledgement.
func TestRunOverLostSequences(t *testing.T) {
	for _, assurance := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
		synctest.Test(t, func(t *testing.T) {
			hang := make(chan struct{})
			cfg := sequence.Config{Assurance: assurance}
			w := newWorld(t, cfg, worker{func(m sequence.Stored) sequence.Stored {
				if string(m.Body) == "slow" {
					<-hang
				}
				return m
			}})
			w.open()
			require.True(t, w.connect())
			send(t, w.ends[0], "slow", true)
			quick := send(t, w.ends[0], "quick", true)
			_, err := quick.Wait(t.Context())
			require.NoError(t, err, "its reply is here, and the message before it is not done")
			w.disconnect()
			synctest.Wait()
			unsent := send(t, w.ends[0], "unsent", true)
			require.NoError(t, unsent.Stored(t.Context()))
			all := runOf(w.run0, "slow", "quick", "unsent")
			run, _ := w.ends[0].Run()
			assert.Equal(t, all, run)
			list := w.ends[0].Lose(assurance == wsrm.AtLeastOnce)
			left, _ := w.ends[0].Run()
			if assurance == wsrm.AtLeastOnce {
				assert.Equal(t, w.run0, left)
			} else {
				assert.Equal(t, runOf(w.run0, "slow", "quick"), left, "what is sent is not sent again")
			}
			w.kill(0)
			restored := newWorld(t, cfg, worker{echo})
			restored.disks[0], restored.disks[1] = w.disks[0], w.disks[1]
			restored.open()
			run, _ = restored.ends[0].Run()
			assert.Equal(t, left, run, "so it is in the store")
			restored.kill(0)
			restored.kill(1)
			close(hang)
			time.Sleep(time.Minute)

			next := newWorld(t, cfg, worker{echo})
			next.run0 = left
			next.open()
			next.ends[0].Take(list)
			require.NoError(t, unsent.Stored(t.Context()))
			require.NoError(t, send(t, next.ends[0], "more", true).Stored(t.Context()))
			run, _ = next.ends[0].Run()
			assert.Equal(t, runOf(all, "more"), run)
			require.True(t, next.connect())
			require.NoError(t, next.ends[0].Finish(t.Context()))
			run, _ = next.ends[0].Run()
			assert.Equal(t, runOf(all, "more"), run)
			next.close()
			w.close()
		})
	}
}

// An end whose store is an older copy, as from a backup, is told so by the peer's acknowledgements:
// at once, by an error of its own, and not never.
func TestOlderCopyOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, exactly(true), worker{echo})
		replied := func(body string) {
			_, err := send(t, w.ends[0], body, true).Wait(t.Context())
			require.NoError(t, err)
		}
		w.open()
		require.True(t, w.connect())
		replied("a")
		w.kill(0)
		older, err := w.disks[0].Get(t.Context(), uri)
		require.NoError(t, err)
		value := bytes.Clone(older.Value)
		w.open()
		require.True(t, w.connect())
		for _, body := range []string{"b", "c", "d"} {
			replied(body)
		}
		w.kill(0)
		now, err := w.disks[0].Get(t.Context(), uri)
		require.NoError(t, err)
		_, err = w.disks[0].Commit(t.Context(), uri, now.Revision, value)
		require.NoError(t, err)

		w.open()
		require.True(t, w.connect())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = send(t, w.ends[0], "e", true).Wait(ctx)
		require.ErrorIs(t, err, &sequence.Error{Code: sequence.Outdated})
		assert.ErrorContains(t, err, "state is older than what the peer has")
		w.close()
	})
}

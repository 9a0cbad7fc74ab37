package session_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// mortalStore is a process's view of a store that outlives it: after so many changes the process is
// dead, and changes nothing more.
type mortalStore struct {
	ctxstore.Store
	mu   sync.Mutex
	left int // changes left
}

const immortal = 1 << 30

var errDead = errors.New("the process is dead")

func (m *mortalStore) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left--
	return m.left < 0
}

func (m *mortalStore) died() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.left < 0
}

func (m *mortalStore) Put(ctx context.Context, uri string, value []byte, o ctxstore.PutOptions) (uint64, error) {
	if m.dead() {
		return 0, errDead
	}
	return m.Store.Put(ctx, uri, value, o)
}

func (m *mortalStore) Commit(ctx context.Context, uri string, expect uint64, value []byte) (uint64, error) {
	if m.dead() {
		return 0, errDead
	}
	return m.Store.Commit(ctx, uri, expect, value)
}

func (m *mortalStore) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	if m.dead() {
		return errDead
	}
	return m.Store.Delete(ctx, uri, ifRevision)
}

// runs starts one run after another with one service and store.
type runs struct {
	t     *testing.T
	bank  *mortal
	store ctxstore.Store
}

func newRuns(t *testing.T) *runs {
	return &runs{t, newBank(t, &teller{}), newLasting(t)}
}

// outcome is the result of a run.
type outcome struct {
	session.Resumed
	sent  int   // messages
	err   error // the first
	ended bool
	died  bool
}

// run is a process that dies after so many changes to its store: it sends messages, waits until
// they are committed, and records that.
func (r *runs) run(changes int, resume bool, messages ...string) (o outcome) {
	store := &mortalStore{Store: r.store, left: changes}
	cfg := assured(r.t, wsrm.ExactlyOnce, store)
	cfg.Reconnect, cfg.Resume = 0, resume
	sess, err := session.Dial(r.t.Context(), r.bank.url("/book"), cfg)
	if err != nil {
		return outcome{err: err, died: store.died()}
	}
	for _, m := range messages {
		_, err := sess.Post(r.t.Context(), streamer.NewMessage(nil, []byte(m)))
		switch {
		case err == nil:
			o.sent++
		case !errors.Is(err, &negotiate.Error{Code: negotiate.Accepted}) && o.err == nil:
			o.err = err
		}
	}
	if o.err == nil {
		o.err = sess.Finish(r.t.Context())
	}
	o.Resumed = sess.Resumed()
	_ = sess.Close() // the peer may be quicker
	if o.err == nil {
		o.err = sess.EndRun(r.t.Context())
		o.ended = o.err == nil
	}
	o.died = store.died()
	return o
}

// dies is a run that is killed once a number of messages are accepted, and the rest was not read.
func (r *runs) dies(resume bool, messages ...string) outcome {
	store := &mortalStore{Store: r.store, left: immortal}
	cfg := assured(r.t, wsrm.ExactlyOnce, store)
	cfg.Reconnect, cfg.Resume = 0, resume
	sess, err := session.Dial(r.t.Context(), r.bank.url("/book"), cfg)
	require.NoError(r.t, err)
	var o outcome
	for _, m := range messages {
		err := sess.Send(r.t.Context(), streamer.NewMessage(nil, []byte(m)))
		if !errors.Is(err, &negotiate.Error{Code: negotiate.Accepted}) {
			require.NoError(r.t, err)
			o.sent++
		}
	}
	store.mu.Lock()
	store.left = 0
	store.mu.Unlock()
	_ = sess.Close()
	return o
}

// done returns what the service has, sorted.
func (r *runs) done() string {
	got, _ := effect(r.t, r.bank.store)
	list := strings.Fields(got)
	slices.Sort(list)
	return strings.Join(list, " ")
}

// refused checks that nothing was sent of messages that are not those of the run to continue.
func (r *runs) refused(o outcome, why string) {
	r.t.Helper()
	assert.ErrorIs(r.t, o.err, &negotiate.Error{Code: negotiate.OtherRun})
	assert.ErrorContains(r.t, o.err, why)
	assert.Zero(r.t, o.sent)
	assert.False(r.t, o.ended)
}

// A run dies after every change that it makes to its store, a run that continues it too, and a
// third one is completed: each message is committed once, whatever the store knew, though another
// run had been completed before.
func TestRunsDieAnywhere(t *testing.T) {
	a, b := []string{"a1", "a2"}, []string{"b1", "b2", "b3"}
	deaths := 0
	for first, died := 0, true; died; first++ {
		for _, second := range []int{0, 2, 3, 5, 8} {
			r := newRuns(t)
			require.True(t, r.run(immortal, false, a...).ended)
			died = r.run(first, false, b...).died
			if died {
				deaths++
			}
			r.run(second, true, b...)
			o := r.run(immortal, true, b...)
			require.NoError(t, o.err, "changes %d, %d", first, second)
			assert.Equal(t, "a1 a2 b1 b2 b3", r.done(), "changes %d, %d", first, second)
			o = r.run(immortal, true, b...)
			require.NoError(t, o.err)
			assert.True(t, o.Ended, "again")
			assert.EqualValues(t, 3, o.LeftOut)
			assert.Equal(t, "a1 a2 b1 b2 b3", r.done())
			r.bank.kill()
			if t.Failed() {
				return
			}
		}
	}
	assert.Greater(t, deaths, 40, "a run makes more changes than these")
}

// The outcome of --resume with other messages, by what the store knows.
func TestResumeOfOtherMessages(t *testing.T) {
	t.Run("nothing is known", func(t *testing.T) {
		r := newRuns(t)
		o := r.run(immortal, true, "a", "b")
		require.NoError(t, o.err)
		assert.Equal(t, outcome{sent: 2, ended: true}, o)
	})
	t.Run("the last run ended", func(t *testing.T) {
		r := newRuns(t)
		require.NoError(t, r.run(immortal, false, "a", "b").err)
		o := r.run(immortal, true, "a", "b")
		assert.True(t, o.Ended)
		assert.False(t, o.At.IsZero())
		assert.Zero(t, o.sent)
		r.refused(r.run(immortal, true, "a", "b", "c"), "was the same up to its last message, number 2,")
		r.refused(r.run(immortal, true, "a"), "began with the same message, and was not the same in all")
		r.refused(r.run(immortal, true, "a", "c"), "began with the same message, and was not the same in all")
		assert.NoError(t, r.run(immortal, true).err, "no messages are no others")
		assert.True(t, r.run(immortal, true, "a", "b").Ended, "nothing of that has changed anything")
		assert.Equal(t, "a b", r.done())
		o = r.run(immortal, true, "b", "a")
		require.NoError(t, o.err)
		assert.True(t, o.Other)
		assert.Equal(t, 2, o.sent)
		assert.Equal(t, "a a b b", r.done())
		assert.NoError(t, r.run(immortal, false).err, "without messages there is no run")
		assert.True(t, r.run(immortal, true, "b", "a").Ended)
		require.NoError(t, r.run(immortal, false, "b", "a").err)
		assert.Equal(t, "a a a b b b", r.done(), "without it they are sent again")
	})
	t.Run("a run of the same messages had begun", func(t *testing.T) {
		r := newRuns(t)
		require.NoError(t, r.run(immortal, false, "a", "b").err)
		r.bank.kill()
		assert.ErrorIs(t, r.run(immortal, false, "a", "b").err, &negotiate.Error{Code: negotiate.Unreachable})
		r.bank.start()
		o := r.run(immortal, true, "a", "b")
		require.NoError(t, o.err)
		assert.Equal(t, outcome{sent: 2, ended: true}, o, "it is gone on with, and not the one before it")
		assert.Equal(t, "a a b b", r.done())
		assert.True(t, r.run(immortal, true, "a", "b").Ended)
	})
	t.Run("the last run was interrupted", func(t *testing.T) {
		r := newRuns(t)
		require.NoError(t, r.run(immortal, false, "x").err)
		assert.Equal(t, 2, r.dies(false, "a", "b").sent)
		r.refused(r.run(immortal, true, "x"), "the interrupted run began with another message; 2 of it were accepted")
		r.refused(r.run(immortal, true, "b", "a"), "began with another message")
		r.refused(r.run(immortal, true, "a", "c", "d"), "not the same in the 2 that were accepted")
		r.refused(r.run(immortal, true, "a"), "began with the same message; 2 of it were accepted, and there are 1")
		assert.Equal(t, 1, r.dies(true, "a", "b", "c").sent, "a resume that is killed")
		assert.Zero(t, r.dies(true, "a", "b", "c").sent)
		r.refused(r.run(immortal, true, "a", "b", "d"), "not the same in the 3 that were accepted")
		o := r.run(immortal, true, "a", "b", "c", "d", "d")
		require.NoError(t, o.err)
		assert.Equal(t, outcome{Resumed: session.Resumed{LeftOut: 3}, sent: 2, ended: true}, o)
		assert.Equal(t, "a b c d d x", r.done())
	})
	t.Run("all was accepted and not reported", func(t *testing.T) {
		r := newRuns(t)
		r.dies(false, "a", "b")
		assert.Equal(t, outcome{Resumed: session.Resumed{LeftOut: 2}, ended: true}, r.run(immortal, true, "a", "b"))
		assert.Equal(t, "a b", r.done())
	})
	t.Run("another one came after it", func(t *testing.T) {
		r := newRuns(t)
		r.dies(false, "a", "b")
		require.NoError(t, r.run(immortal, false, "x", "y").err)
		assert.Equal(t, "a b x y", r.done(), "what the store has goes, whoever comes next")
		o := r.run(immortal, true, "a", "b", "c")
		assert.Equal(t, outcome{Resumed: session.Resumed{LeftOut: 2}, sent: 1, ended: true}, o)
		assert.True(t, r.run(immortal, true, "a", "b", "c").Ended)
		assert.Equal(t, "a b c x y", r.done())
	})
	t.Run("two were interrupted", func(t *testing.T) {
		r := newRuns(t)
		r.dies(false, "a", "b")
		r.dies(false, "x", "y")
		r.dies(true, "a", "b", "c")
		assert.Equal(t, 1, r.run(immortal, true, "x", "y", "z").sent)
		assert.Zero(t, r.run(immortal, true, "a", "b", "c").sent)
		assert.Equal(t, "a b c x y z", r.done())
	})
	t.Run("a run without --resume sends its messages, whatever was accepted", func(t *testing.T) {
		r := newRuns(t)
		r.dies(false, "a", "b")
		require.NoError(t, r.run(immortal, false, "a", "b").err)
		assert.True(t, r.run(immortal, true, "a", "b").Ended, "with it the interrupted one is over, too")
		assert.Equal(t, "a a b b", r.done())
	})
	t.Run("more were interrupted than are remembered", func(t *testing.T) {
		r := newRuns(t)
		for n := range 18 {
			r.dies(false, fmt.Sprintf("m%02d", n))
		}
		r.refused(r.run(immortal, true, "m00"), "began with another message")
		assert.Zero(t, r.run(immortal, true, "m01").sent)
	})
}

// Messages that differ in no byte, and repeat: how many were accepted counts.
func TestResumeOfEqualMessages(t *testing.T) {
	r := newRuns(t)
	r.dies(false, "a", "a", "a")
	o := r.run(immortal, true, "a", "a", "a", "a", "a")
	require.NoError(t, o.err)
	assert.Equal(t, 2, o.sent)
	assert.Equal(t, "a a a a a", r.done())
}

// The entry and the state of the version that knew no runs: messages it has are finished, and no
// others taken for them.
func TestResumeWithAnOlderStore(t *testing.T) {
	r := newRuns(t)
	name := sha256.Sum256([]byte(strings.TrimSuffix(r.bank.url("/book"), "/book") + "/book"))
	uri := fmt.Sprintf("urn:hhfr:outbox:%x", name)
	const old = `<n:Outbox xmlns:n="urn:hhfr:context:1">` +
		`<n:Assurance>urn:hhfr:assurance:exactly-once:in-order</n:Assurance>` +
		`<n:Sequence state="new">%s</n:Sequence><n:Base>0</n:Base><n:Before>0</n:Before></n:Outbox>`
	id := ctxstore.SequenceURI([16]byte{1})
	_, err := r.store.Commit(t.Context(), uri, 0, fmt.Appendf(nil, old, id))
	require.NoError(t, err)
	q, err := sequence.Open(t.Context(), sequence.Config{
		Assurance: wsrm.ExactlyOnce, Ordered: true, Store: r.store, URI: id + ":initiator",
	})
	require.NoError(t, err)
	s, err := q.Send(t.Context(), sequence.Stored{Body: []byte("a")}, false)
	require.NoError(t, err)
	require.NoError(t, s.Stored(t.Context()))
	q.Close()
	for range 2 {
		o := r.run(immortal, true, "a", "b")
		assert.ErrorIs(t, o.err, &negotiate.Error{Code: negotiate.OldStore})
		assert.Zero(t, o.sent)
	}
	require.NoError(t, r.run(immortal, false).err)
	assert.Equal(t, "a", r.done())
	require.NoError(t, r.run(immortal, false, "b").err)
	assert.True(t, r.run(immortal, true, "b").Ended)
	assert.Equal(t, "a b", r.done())
}

// The responder loses the sequence in the middle of a run: messages that the next sequence takes
// over are as accepted as before, and so are those of unknown fate.
func TestResumeOverALostSequence(t *testing.T) {
	for _, a := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
		t.Run(a.String(), func(t *testing.T) {
			m := newBank(t, &teller{})
			store := &mortalStore{Store: newLasting(t), left: immortal}
			cfg := assured(t, a, store)
			joined := make(chan struct{}, 10)
			cfg.OnSession = func(negotiate.Facts, net.Conn) { joined <- struct{}{} }
			sess := dial(t, m.url("/book"), cfg)
			<-joined
			send := func(body string) error {
				return sess.Send(t.Context(), streamer.NewMessage(nil, []byte(body)))
			}
			require.NoError(t, send("a"))
			m.kill()
			require.NoError(t, send("b"))
			require.NoError(t, send("c"))
			m.store = newLasting(t)
			m.start()
			<-joined
			call(t, sess, "", "d") // so the new stream is there
			store.mu.Lock()
			store.left = 0
			store.mu.Unlock()
			_ = sess.Close()

			cfg.Store, cfg.Resume = store.Store, true
			sess = dial(t, m.url("/book"), cfg)
			for _, body := range []string{"a", "b", "c"} {
				require.ErrorIs(t, send(body), &negotiate.Error{Code: negotiate.Accepted})
			}
			_, err := sess.Call(t.Context(), streamer.NewMessage(nil, []byte("d")))
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Accepted})
			require.NoError(t, send("e"))
			assert.EqualValues(t, 4, sess.Resumed().LeftOut)
			require.NoError(t, sess.Finish(t.Context()))
			got, _ := effect(t, m.store)
			// Once, except for those that were written before the loss, which exactly-once does not
			// send again.
			assert.Regexp(t, "^(a )?(b )?(c )?d e $", got)
			if a == wsrm.AtLeastOnce {
				assert.Contains(t, got, "b c d e ")
			}
		})
	}
}

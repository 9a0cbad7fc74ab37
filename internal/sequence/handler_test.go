package sequence_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// worker handles messages without a transaction.
type worker struct {
	do func(m sequence.Stored) sequence.Stored
}

func (worker) Transactional(sequence.Stored) bool { return false }

func (worker) Transact(context.Context, *wsrm.Tx, sequence.Stored) (sequence.Stored, error) {
	panic("not asked for")
}

func (w worker) Handle(_ context.Context, m sequence.Stored) sequence.Stored { return w.do(m) }

func echo(m sequence.Stored) sequence.Stored { return m }

func send(t testing.TB, q *sequence.Sequence, body string, wanted bool) *sequence.Sending {
	t.Helper()
	s, err := q.Send(t.Context(), sequence.Stored{Head: []byte("h"), Body: []byte(body)}, wanted)
	require.NoError(t, err)
	return s
}

// copied is a store with what another has now: what a process finds that was started anew.
func copied(t testing.TB, from ctxstore.Store) *disk {
	to := newDisk()
	for info, err := range from.List(t.Context(), "") {
		require.NoError(t, err)
		entry, err := from.Get(t.Context(), info.URI)
		require.NoError(t, err)
		_, err = to.Put(t.Context(), info.URI, entry.Value, ctxstore.PutOptions{})
		require.NoError(t, err)
	}
	return to
}

// A process dies while a handler runs: under exactly-once nobody knows how far it came, and the
// sender is told; under at-least-once it runs again.
func TestProcessDiesInAHandler(t *testing.T) {
	for _, a := range []wsrm.Assurance{wsrm.AtLeastOnce, wsrm.ExactlyOnce} {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				running, release := make(chan struct{}), make(chan struct{})
				w := newWorld(t, sequence.Config{Assurance: a, Ordered: true},
					worker{func(m sequence.Stored) sequence.Stored {
						running <- struct{}{}
						<-release
						return m
					}})
				w.open()
				require.True(t, w.connect())
				first := send(t, w.ends[0], "first", true)
				<-running
				synctest.Wait()

				// The next process finds what the store has now; the first one does nothing more
				// that counts.
				dead := w.ends[1]
				w.disconnect()
				w.ends[1], w.disks[1] = nil, copied(t, w.disks[1])
				handled := 0
				w.handler = worker{func(m sequence.Stored) sequence.Stored {
					handled++
					return m
				}}
				w.open()
				require.True(t, w.connect())
				m, err := first.Wait(t.Context())
				if a == wsrm.ExactlyOnce {
					assert.ErrorIs(t, err, &sequence.Error{Code: sequence.FateUnknown})
				} else {
					require.NoError(t, err)
					assert.Equal(t, "first", string(m.Body))
				}
				m, err = send(t, w.ends[0], "second", true).Wait(t.Context())
				require.NoError(t, err, "what is unknown keeps nothing behind it waiting")
				assert.Equal(t, "second", string(m.Body))
				assert.Equal(t, "h", string(m.Head))
				require.NoError(t, w.ends[0].Finish(t.Context()))
				assert.Equal(t, map[wsrm.Assurance]int{wsrm.AtLeastOnce: 2, wsrm.ExactlyOnce: 1}[a], handled)
				close(release)
				dead.Close()
				w.close()
			})
		})
	}
}

// In order, handlers run one after the other; else side by side.
func TestHandlersInOrderOrNot(t *testing.T) {
	for _, ordered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var order []string
			atOnce, most := 0, 0
			w := newWorld(t, exactly(ordered), worker{func(m sequence.Stored) sequence.Stored {
				mu.Lock()
				atOnce++
				most = max(most, atOnce)
				order = append(order, string(m.Body))
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				atOnce--
				return m
			}})
			w.open()
			require.True(t, w.connect())
			var want []string
			for _, body := range []string{"a", "b", "c", "d"} {
				send(t, w.ends[0], body, false)
				want = append(want, body)
			}
			require.NoError(t, w.ends[0].Finish(t.Context()))
			if ordered {
				assert.Equal(t, want, order)
				assert.Equal(t, 1, most)
			} else {
				assert.ElementsMatch(t, want, order)
				assert.Greater(t, most, 1)
			}
			w.close()
		})
	}
}

// Handlers may go on without a stream; what they come to is there for the next one.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, exactly(true), worker{func(m sequence.Stored) sequence.Stored {
			time.Sleep(time.Minute)
			return m
		}})
		w.open()
		require.True(t, w.connect())
		s := send(t, w.ends[0], "x", true)
		synctest.Wait()
		w.disconnect()
		w.ends[0].Drain(t.Context()) // nothing runs there
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		w.ends[1].Drain(ctx)
		cancel()
		assert.Equal(t, time.Second, time.Since(began))
		w.ends[1].Drain(t.Context())
		assert.Equal(t, time.Minute, time.Since(began))
		w.kill(1)
		w.open()
		require.True(t, w.connect())
		m, err := s.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "x", string(m.Body))
		w.close()
	})
}

// moody refuses each message once.
type moody struct {
	ledger
	seen map[string]bool
}

func (h moody) Transact(ctx context.Context, tx *wsrm.Tx, m sequence.Stored) (sequence.Stored, error) {
	if !h.seen[string(m.Body)] {
		h.seen[string(m.Body)] = true
		tx.Set([]byte("half"))
		return sequence.Stored{}, errors.New("not now")
	}
	return h.ledger.Transact(ctx, tx, m)
}

// A transaction that fails leaves nothing behind, and its message is handed over again, in its
// turn.
func TestTransactionsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, exactly(true), moody{seen: map[string]bool{}})
		began := time.Now()
		w.run(5)
		assert.Equal(t, 5*time.Second, time.Since(began).Truncate(time.Second))
		w.close()
		w.check(5)
	})
}

// A sequence that is closed early keeps what is not done; the next process goes on with it, and is
// told what comes of it.
func TestWhatIsKeptGoesOn(t *testing.T) {
	w := newWorld(t, exactly(true), worker{echo})
	w.open()
	one, two := send(t, w.ends[0], "onemsg--", true), send(t, w.ends[0], "twomsg--", false)
	require.NoError(t, one.Stored(t.Context()))
	require.NoError(t, two.Stored(t.Context()))
	w.kill(0)
	_, err := one.Wait(t.Context())
	assert.ErrorIs(t, err, &sequence.Error{Code: sequence.Kept})
	assert.ErrorIs(t, two.Stored(t.Context()), &sequence.Error{Code: sequence.Kept})
	settled, err := two.Settled()
	assert.True(t, settled)
	assert.ErrorIs(t, err, &sequence.Error{Code: sequence.Kept})

	w.open()
	assert.EqualValues(t, 2, w.ends[0].Status().Accepted)
	require.True(t, w.connect())
	require.NoError(t, w.ends[0].Finish(t.Context()))
	_, err = w.ends[0].Send(t.Context(), sequence.Stored{}, false)
	assert.ErrorIs(t, err, &sequence.Error{Code: sequence.Unsent}, "it is over")
	w.close()
	assert.Len(t, w.replies, 1, "the second wanted none")
	assert.NoError(t, w.replies[1].err)
}

// Whoever is told of something finds it counted.
func TestStatusIsNotBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const messages = 200
		w := newWorld(t, exactly(true), worker{echo})
		w.open()
		for n := range uint64(messages) {
			require.NoError(t, send(t, w.ends[0], "earlier", true).Stored(t.Context()))
			require.Equal(t, n+1, w.ends[0].Status().Accepted)
		}
		w.kill(0)
		w.cfg.Late = func(number uint64, _ sequence.Stored, err error) {
			assert.NoError(t, err)
			assert.GreaterOrEqual(t, w.ends[0].Status().Received, number)
		}
		w.open()
		require.True(t, w.connect())
		for n := range uint64(messages) {
			_, err := send(t, w.ends[0], "now", false).Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, messages+n+1, w.ends[0].Status().Done)
		}
		require.NoError(t, w.ends[0].Finish(t.Context()))
		assert.EqualValues(t, 2*messages, w.ends[1].Status().Received)
		w.close()
	})
}

// No more messages are accepted than the window has; who waits for room goes on when there is some,
// or gives up.
func TestWindow(t *testing.T) {
	w := newWorld(t, exactly(false), worker{echo})
	w.open()
	for range sequence.Window {
		send(t, w.ends[0], "m", false)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := w.ends[0].Send(ctx, sequence.Stored{}, false)
	require.ErrorIs(t, err, context.Canceled)
	sent := make(chan error)
	go func() {
		_, err := w.ends[0].Send(t.Context(), sequence.Stored{}, false)
		sent <- err
	}()
	require.True(t, w.connect())
	require.NoError(t, <-sent)
	_, err = w.ends[0].Send(t.Context(), sequence.Stored{Body: make([]byte, sequence.MaxMessage+1)}, false)
	require.ErrorIs(t, err, &sequence.Error{Code: sequence.TooLarge})
	reply, err := send(t, w.ends[0], string(make([]byte, sequence.MaxMessage-1)), true).Wait(t.Context())
	require.NoError(t, err)
	assert.Len(t, reply.Body, sequence.MaxMessage-1)
	require.NoError(t, w.ends[0].Finish(t.Context()))
	assert.EqualValues(t, sequence.Window+2, w.ends[1].Status().Received)
	w.close()
}

// What breaks the rules changes nothing, and what comes too fast waits.
func TestHostileArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		w := newWorld(t, exactly(false), worker{func(m sequence.Stored) sequence.Stored {
			<-release
			return m
		}})
		w.open()
		q := w.ends[1]
		arrive := func(ctx context.Context, number uint64, size int) error {
			m := streamer.NewMessage(nil, make([]byte, size))
			m.Place.Number = number
			return q.Arrived(ctx, m)
		}
		require.NoError(t, arrive(t.Context(), 2*sequence.Window, 1))
		assert.Error(t, arrive(t.Context(), 1, sequence.MaxMessage+1))
		for _, octets := range []string{"", "\xff", "\x10\x00\x01\x7f\x00", "\x01\x01\x01\x00\x02x"} {
			q.Acks([]byte(octets))
		}
		ctx, cancel := context.WithCancel(t.Context())
		number := uint64(0)
		var blocked error
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ; blocked == nil &&
				number < sequence.Window; number++ { // of the longest messages: far beyond all bounds
				blocked = arrive(ctx, number+1, sequence.MaxMessage)
			}
		}()
		synctest.Wait()
		assert.Less(t, number, uint64(8))
		cancel()
		<-done
		assert.ErrorIs(t, blocked, context.Canceled)
		close(release)
		w.close()
	})
}

// Of a sequence that the peer lost, what was never sent goes into another one; what was sent
// only if that may be twice.
func TestLose(t *testing.T) {
	for _, again := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, exactly(true), worker{func(m sequence.Stored) sequence.Stored {
				time.Sleep(time.Hour)
				return m
			}})
			w.open()
			require.True(t, w.connect())
			flying := send(t, w.ends[0], "flying", true)
			synctest.Wait()
			w.disconnect()
			synctest.Wait()
			queued := send(t, w.ends[0], "queued", true)
			require.NoError(t, queued.Stored(t.Context()))
			list := w.ends[0].Lose(again)
			if again {
				require.Len(t, list, 2)
			} else {
				require.Len(t, list, 1)
				_, err := flying.Wait(t.Context())
				assert.ErrorIs(t, err, &sequence.Error{Code: sequence.FateUnknown})
			}
			w.kill(0)
			w.kill(1)
			other := newWorld(t, exactly(true), worker{echo})
			other.open()
			require.True(t, other.connect())
			other.ends[0].Take(list)
			m, err := queued.Wait(t.Context())
			require.NoError(t, err)
			assert.Equal(t, "queued", string(m.Body))
			require.NoError(t, other.ends[0].Finish(t.Context()))
			assert.EqualValues(t, len(list), other.ends[1].Status().Received)
			other.close()
			w.close()
		})
	}
}

// Whoever waits for a silent end asks, ever less often: some transports tell only then that it is
// gone.
func TestSilenceIsAskedAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, exactly(true), worker{func(m sequence.Stored) sequence.Stored {
			time.Sleep(time.Hour)
			return m
		}})
		w.open()
		require.True(t, w.connect())
		time.Sleep(time.Minute)
		asked := func() int64 { return w.streams[0].Stats().Sent.Ack.Frames }
		before := asked()
		time.Sleep(time.Hour)
		assert.Equal(t, before, asked(), "nothing is waited for")
		s := send(t, w.ends[0], "x", true)
		time.Sleep(5 * time.Second)
		soon := asked()
		assert.Greater(t, soon, before)
		time.Sleep(50 * time.Minute)
		assert.Less(t, asked(), soon+int64(3*60))
		_, err := s.Wait(t.Context())
		require.NoError(t, err)
		w.close()
	})
}

// In whatever moment of its end the peer falls silent: whoever waits for it goes on saying
// something, by which a transport finds out that the peer is gone.
func TestSilenceAtTheEndIsAskedAbout(t *testing.T) {
	finished := false
	for silent := int64(1); !finished; silent++ {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, exactly(true), ledger{})
			var mute *muteConn
			w.conns = func() [2]net.Conn {
				here, there := inproc.Pipe(1 << 20)
				mute = &muteConn{Conn: there}
				return [2]net.Conn{here, mute}
			}
			w.open()
			require.True(t, w.connect())
			_, err := send(t, w.ends[0], "12345678", true).Wait(t.Context())
			require.NoError(t, err)
			synctest.Wait()
			mute.after.Store(silent)
			ended := make(chan error, 1)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { ended <- w.ends[0].Finish(ctx) }()
			time.Sleep(10 * time.Minute)
			said := w.streams[0].Stats().Sent.Octets()
			time.Sleep(10 * time.Minute)
			select {
			case err := <-ended:
				require.NoError(t, err)
				finished = true
			default:
				assert.Greater(t, w.streams[0].Stats().Sent.Octets(), said, "silent after %d bytes", silent)
			}
			cancel()
			w.close()
		})
	}
}

// muteConn loses what is written behind some bytes, once it is told to.
type muteConn struct {
	net.Conn
	after atomic.Int64 // bytes to pass, and one more; 0: all
}

func (c *muteConn) Write(p []byte) (int, error) {
	left := c.after.Load()
	if left == 0 {
		return c.Conn.Write(p)
	}
	pass := min(int64(len(p)), left-1)
	c.after.Add(-pass)
	if _, err := c.Conn.Write(p[:pass]); err != nil {
		return 0, err
	}
	return len(p), nil
}

func TestOpenRefuses(t *testing.T) {
	for _, cfg := range []sequence.Config{
		{Assurance: wsrm.ExactlyOnce, URI: uri}, {Assurance: wsrm.ExactlyOnce, Store: newDisk()},
		{Assurance: wsrm.AtMostOnce, Store: newDisk(), URI: uri}, {Assurance: wsrm.ExactlyOnce, Store: newDisk(),
			URI: uri, Life: -1},
	} {
		_, err := sequence.Open(t.Context(), cfg)
		assert.ErrorIs(t, err, &sequence.Error{Code: sequence.BadConfig})
	}
	// A state of another assurance is not taken for one's own, nor two processes for one.
	cfg := exactly(true)
	cfg.Store, cfg.URI = newDisk(), uri
	q, err := sequence.Open(t.Context(), cfg)
	require.NoError(t, err)
	other := cfg
	other.Ordered = false
	_, err = sequence.Open(t.Context(), other)
	require.ErrorIs(t, err, &sequence.Error{Code: sequence.BadConfig})
	second, err := sequence.Open(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, send(t, second, "x", false).Stored(t.Context()))
	s := send(t, q, "y", false)
	assert.ErrorIs(t, s.Stored(t.Context()), &sequence.Error{Code: sequence.Unstored})
	assert.ErrorIs(t, q.Err(), &sequence.Error{Code: sequence.Unstored})
	q.Close()
	second.Close()
}

// A message that the store did not take is never said to be stored, not even to who asks just then.
func TestUnstoredIsNotStored(t *testing.T) {
	for range 500 {
		cfg := exactly(true)
		disk := newDisk()
		disk.failAt = 2
		cfg.Store, cfg.URI = disk, uri
		q, err := sequence.Open(t.Context(), cfg)
		require.NoError(t, err)
		require.ErrorIs(t, send(t, q, "x", false).Stored(t.Context()), &sequence.Error{Code: sequence.Unstored})
		q.Close()
	}
}

// What lies in a store means one message, and is written as it is read.
func FuzzDecode(f *testing.F) {
	for _, p := range []streamer.Place{{}, {Wanted: true}, {Answers: 9}, {Answers: 1 << 40, Unknown: true}} {
		f.Add(sequence.Encode(sequence.Stored{Body: []byte("body")}, p))
		f.Add(sequence.Encode(sequence.Stored{Head: []byte("POST / HTTP/1.1\r\n\r\n"), Body: []byte("<a/>")}, p))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		m, p, err := sequence.Decode(in)
		if err != nil || p.Answers == 0 && in[0]&1 != 0 {
			return
		}
		again, q, err := sequence.Decode(sequence.Encode(m, p))
		require.NoError(t, err)
		assert.Equal(t, p, q)
		assert.True(t, bytes.Equal(m.Head, again.Head) && bytes.Equal(m.Body, again.Body))
	})
}

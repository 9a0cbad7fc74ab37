package streamer_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// counted is a connection that counts what is written to it.
type counted struct {
	net.Conn
	writes atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(b)
}

// counting is a pair whose ends count.
func counting(t testing.TB, p pairing) (pair *pair, here, there *counted) {
	t.Helper()
	a, b := inproc.Pipe(0)
	here, there = &counted{Conn: a}, &counted{Conn: b}
	return connectOver(t, p, here, there), here, there
}

// TestWhatIsReadyIsOneWrite: requests of callers that begin together are few writes, and so are the
// replies of handlers that end together, on one processor, where the writer had its turn after each
// of them.
func TestWhatIsReadyIsOneWrite(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const calls = 64
	var came sync.WaitGroup
	came.Add(calls)
	answer := make(chan struct{})
	p, here, there := counting(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		came.Done()
		<-answer
		echo(ctx, x)
	}})
	before, beforeThere := here.writes.Load(), there.writes.Load()
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
			if assert.NoError(t, err) {
				assert.Equal(t, "request", body(t, r))
			}
		})
	}
	came.Wait()
	close(answer)
	all.Wait()
	assert.Less(t, here.writes.Load()-before, int64(calls/4), "writes of requests")
	assert.Less(t, there.writes.Load()-beforeThere, int64(calls/4), "writes of replies")
}

// TestFlushDelay: data waits for others to go with as long as the configuration says, unless it
// fills a batch; credit, cancels and the end do not. Without it nothing waits.
func TestFlushDelay(t *testing.T) {
	const delay = 50 * time.Millisecond
	for name, after := range map[string]time.Duration{"default": 0, "delayed": delay} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrivals := make(chan time.Time, 100)
				handler := func(_ context.Context, x *streamer.Exchange) {
					_ = body(t, x.Message())
					arrivals <- time.Now()
				}
				p, here, _ := counting(t, pairing{a: streamer.Config{FlushDelay: after}, handlerb: handler})
				synctest.Wait()
				send := func(n int) {
					require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, n))))
				}
				start, before := time.Now(), here.writes.Load()
				for range 10 {
					send(40)
					synctest.Wait()
				}
				for range 10 {
					assert.Equal(t, after, (<-arrivals).Sub(start))
				}
				want := int64(10)
				if after > 0 {
					want = 1
				}
				assert.Equal(t, want, here.writes.Load()-before)
				start = time.Now()
				send(20_000) // more than a batch
				assert.Zero(t, (<-arrivals).Sub(start))
				send(40)
				require.NoError(t, p.a.Close())
				<-arrivals
				assert.Zero(t, time.Since(start))
			})
		})
	}
}

// TestFlushDelayOfCalls: a call in both directions waits twice, and one that is given up tells that
// at once.
func TestFlushDelayOfCalls(t *testing.T) {
	const delay = 50 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan time.Time, 1)
		cfg := streamer.Config{FlushDelay: delay}
		p := connect(t, pairing{a: cfg, b: cfg, handlerb: func(ctx context.Context, x *streamer.Exchange) {
			if x.Lane() == 0 {
				echo(ctx, x)
				return
			}
			<-ctx.Done()
			gone <- time.Now()
		}})
		synctest.Wait()
		start := time.Now()
		r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
		require.NoError(t, err)
		assert.Equal(t, "request", body(t, r))
		assert.Equal(t, 2*delay, time.Since(start))
		ctx, giveUp := context.WithTimeout(t.Context(), 10*delay)
		defer giveUp()
		start = time.Now()
		_, err = p.a.Lane(1).Call(ctx, streamer.NewMessage(nil, []byte("request")))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 10*delay, (<-gone).Sub(start))
	})
}

// goroutines is how many goroutines of this or another synctest bubble there are. The runtime has
// some of its own at times.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte(", synctest bubble "))
}

// TestNoGoroutineWritesNothing: a stream on which nothing is sent has nobody who waits to write.
func TestNoGoroutineWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := goroutines()
		require.Positive(t, before)
		p := connect(t, pairing{handlerb: echo})
		r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
		require.NoError(t, err)
		assert.Equal(t, "request", body(t, r))
		synctest.Wait()
		assert.LessOrEqual(t, goroutines()-before, 3, "the readers of both ends, and who served")
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.LessOrEqual(t, goroutines()-before, 2, "the readers of both ends")
	})
}

// TestOneGoroutineServes: calls that come one after the other are served by one goroutine, which
// ends when none has come for a while, and with the stream.
func TestOneGoroutineServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var by string
		p := connect(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
			name := make([]byte, 40)
			by, _, _ = strings.Cut(string(name[:runtime.Stack(name, false)]), " [") // goroutine 12
			echo(ctx, x)
		}})
		call := func() string {
			r, err := p.a.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
			require.NoError(t, err)
			assert.Equal(t, "request", body(t, r))
			synctest.Wait()
			return by
		}
		first := call()
		for range 5 {
			assert.Equal(t, first, call())
		}
		time.Sleep(3 * time.Second)
		second := call()
		assert.NotEqual(t, first, second)
		assert.Equal(t, second, call())
		require.NoError(t, p.a.Close())
		require.NoError(t, p.b.Close()) // which waits for it
	})
}

// trying is a connection that takes some of what is written at once.
type trying struct {
	counted
	takes int
	tries atomic.Int64
}

func (c *trying) TryWrite(b []byte) int {
	c.tries.Add(1)
	n, _ := c.Conn.Write(b[:min(len(b), c.takes)])
	return n
}

// TestCallersWrite: a call and its reply are written by who sends them, as far as the connection
// takes them at once; where it takes nothing, or a part, the rest comes all the same. One-way
// messages are not: they may go with others.
func TestCallersWrite(t *testing.T) {
	for name, takes := range map[string]int{"all": 1 << 20, "nothing": 0, "a part": 7} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := inproc.Pipe(0)
				here, there := &trying{takes: takes}, &trying{takes: takes}
				here.Conn, there.Conn = a, b
				p := connectOver(t, pairing{handlerb: echo}, here, there)
				call := func(i int) {
					text := fmt.Sprintf("request %d", i)
					var r *streamer.Message
					var err error
					if m := streamer.NewMessage(nil, []byte(text)); i%2 == 0 {
						r, err = p.a.Lane(0).Call(t.Context(), m)
					} else {
						var pending *streamer.Pending
						pending, err = p.a.Lane(0).BeginNow(t.Context(), m)
						require.NoError(t, err)
						r, err = pending.Reply(t.Context())
					}
					require.NoError(t, err)
					assert.Equal(t, text, body(t, r))
					synctest.Wait() // no writer is still at work when the next message comes
				}
				call(0) // what opens the stream is written
				before, beforeThere := here.writes.Load(), there.writes.Load()
				for i := range 20 {
					call(i)
				}
				assert.NotZero(t, here.tries.Load())
				assert.NotZero(t, there.tries.Load())
				if takes > 1000 {
					assert.Equal(t, before, here.writes.Load())
					assert.Equal(t, beforeThere, there.writes.Load())
				}
				tries := here.tries.Load()
				require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, []byte("one-way"))))
				require.NoError(t, p.a.Close())
				require.NoError(t, p.b.Close())
				assert.Equal(t, tries, here.tries.Load())
			})
		})
	}
}

// stuck is a connection that takes nothing any more, from when it is told so until it has a
// deadline.
type stuck struct {
	net.Conn
	now    atomic.Bool
	closed chan struct{}
	once   sync.Once
}

func (c *stuck) Write(b []byte) (int, error) {
	if c.now.Load() {
		<-c.closed
		return 0, os.ErrDeadlineExceeded
	}
	return c.Conn.Write(b)
}

func (c *stuck) TryWrite(b []byte) int {
	if c.now.Load() {
		return 0
	}
	n, _ := c.Conn.Write(b)
	return n
}

func (c *stuck) SetDeadline(t time.Time) error {
	if c.now.Load() {
		c.once.Do(func() { close(c.closed) })
	}
	return c.Conn.SetDeadline(t)
}

// TestSendersDoNotWaitForTheConnection: a handler goes on when its reply is queued, and a call ends
// with its context, also where the connection takes nothing any more.
func TestSendersDoNotWaitForTheConnection(t *testing.T) {
	a, b := inproc.Pipe(0)
	here := &stuck{Conn: a, closed: make(chan struct{})}
	there := &stuck{Conn: b, closed: make(chan struct{})}
	replied := make(chan error, 1)
	p := connectOver(t, pairing{handlerb: func(ctx context.Context, x *streamer.Exchange) {
		there.now.Store(true)
		replied <- x.Reply(ctx, streamer.NewMessage(nil, []byte("reply")))
	}}, here, there)
	ctx, giveUp := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	call := func() {
		_, err := p.a.Lane(0).Call(ctx, streamer.NewMessage(nil, []byte("request")))
		ended <- err
	}
	go call()
	require.NoError(t, <-replied)
	here.now.Store(true)
	go call()
	giveUp()
	require.ErrorIs(t, <-ended, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
	p.a.Abort(streamer.CloseGoingAway, "")
	p.b.Abort(streamer.CloseGoingAway, "")
}

// TestTogether: what is sent together is one write, also while a handler works; who waits within it
// for a reply, or for room, gets that.
func TestTogether(t *testing.T) {
	came := make(chan struct{}, 1000)
	limits := streamer.Limits{MaxExchanges: 32}
	p, here, _ := counting(t, pairing{b: streamer.Config{Limits: limits},
		handlerb: func(ctx context.Context, x *streamer.Exchange) {
			echo(ctx, x)
			came <- struct{}{}
		}})
	lane := p.a.Lane(0)
	send := func(n int) {
		for range n {
			require.NoError(t, lane.Send(t.Context(), streamer.NewMessage(nil, []byte("message"))))
		}
	}
	r, err := lane.Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
	require.NoError(t, err)
	assert.Equal(t, "request", body(t, r)) // what opens the stream is written
	<-came
	for range 3 {
		before := here.writes.Load()
		p.a.Together(func() {
			send(8)
			assert.Equal(t, before, here.writes.Load())
		})
		for range 8 {
			<-came
		}
		assert.Equal(t, before+1, here.writes.Load())
	}
	p.a.Together(func() { send(50) }) // more than are in flight at a time
	p.a.Together(func() {
		send(2)
		r, err := lane.Call(t.Context(), streamer.NewMessage(nil, []byte("request")))
		require.NoError(t, err)
		assert.Equal(t, "request", body(t, r))
	})
	p.a.Together(func() {
		for range 4 {
			require.NoError(t, lane.Send(t.Context(), streamer.NewMessage(nil, make([]byte, 10_000))))
		}
	})
	for range 57 {
		<-came
	}
}

// sparing is a connection that takes little without waiting.
type sparing struct {
	net.Conn
	tried atomic.Int64
}

func (c *sparing) TryWrite(b []byte) int {
	c.tried.Add(1)
	n, _ := c.Write(b[:min(len(b), 1000)])
	return n
}

// TestSendersFillTheConnection: who sends messages writes each batch that is full, and whatever the
// connection takes of it, every message arrives once and in its order: behind a batch that is
// stuck, and behind a message that takes more than one frame.
func TestSendersFillTheConnection(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // nobody else writes while somebody sends
	here, there := inproc.Pipe(0)
	conn := &sparing{Conn: here}
	came := make(chan struct{}, 10_000)
	p := connectOver(t, pairing{handlerb: func(_ context.Context, x *streamer.Exchange) {
		all, err := x.Message().ReadAll(1 << 20)
		assert.NoError(t, err)
		assert.Equal(t, x.Number(), uint64(binary.BigEndian.Uint32(all)))
		came <- struct{}{}
	}}, conn, there)
	sent, got := uint32(0), uint32(0) // of the lane's exchanges
	send := func(messages, length int) {
		for range messages {
			sent++
			body := append(binary.BigEndian.AppendUint32(nil, sent), make([]byte, length)...)
			require.NoError(t, p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, body)))
		}
	}
	for name, some := range map[string]func(){
		"one after the other": func() { send(2000, 100) },
		"together":            func() { p.a.Together(func() { send(200, 100) }) },
		"behind a long one":   func() { send(1, 40_000); send(10, 100) },
	} {
		for range 3 {
			some()
		}
		for ; got < sent; got++ {
			select {
			case <-came:
			case <-p.b.Done():
				require.NoError(t, p.b.Err(), name)
			}
		}
	}
	assert.Positive(t, conn.tried.Load())
}

// TestSendersAreHeldUp: who sends more than the connection takes waits, with a batch and QueueBytes
// in memory, until the stream ends.
func TestSendersAreHeldUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queue, batch, length = 64 << 10, 16 << 10, 1000
		here, there := inproc.Pipe(0)
		conn := &stuck{Conn: here, closed: make(chan struct{})}
		p := connectOver(t, pairing{a: streamer.Config{QueueBytes: queue},
			handlerb: func(context.Context, *streamer.Exchange) {}}, conn, there)
		synctest.Wait() // the stream is open, and what opened it is written
		conn.now.Store(true)
		var sent atomic.Int64
		failed := make(chan error)
		go func() {
			for {
				err := p.a.Lane(0).Send(t.Context(), streamer.NewMessage(nil, make([]byte, length)))
				if err != nil {
					failed <- err
					return
				}
				sent.Add(1)
			}
		}()
		synctest.Wait()
		assert.Greater(t, sent.Load(), int64(queue/2/length))
		assert.LessOrEqual(t, sent.Load(), int64((queue+2*batch)/length))
		p.a.Abort(streamer.CloseGoingAway, "")
		require.ErrorIs(t, <-failed, &streamer.Error{Code: streamer.Unsent})
		p.b.Abort(streamer.CloseGoingAway, "")
	})
}

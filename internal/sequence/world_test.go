package sequence_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	codec "github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/inproc"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const uri = "urn:hhfr:sequence:test"

var errPower = errors.New("power cut")

// disk is a store that outlives its end, and whose power fails at one change: before it is made, or
// after.
type disk struct {
	ctxstore.Store
	mu      sync.Mutex
	puts    int
	failAt  int  // 0: never
	dies    bool // when it fails, it fails until it is opened again
	down    bool
	fallen  chan struct{} // closed when it is down
	next    func() int    // after how many further changes it fails again; nil: it does not
	written bool
	full    func(uri string) bool // has no space for a change; nil: it always has some
}

func newDisk() *disk { return &disk{Store: memory.New(memory.Config{})} }

// change makes a change, or fails.
func (d *disk) change(do func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.puts++
	fails := d.puts == d.failAt
	written := d.written
	if d.next != nil && fails {
		d.failAt += d.next()
		d.written = !d.written
	}
	var err error
	if d.down || fails && !written {
		err = errPower
	} else if err = do(); fails {
		err = errPower
	}
	if fails && d.dies && !d.down {
		d.down = true
		close(d.fallen)
	}
	return err
}

func (d *disk) Put(
	ctx context.Context, uri string, value []byte, o ctxstore.PutOptions,
) (revision uint64, err error) {
	err = d.change(func() (err error) {
		if d.full != nil && d.full(uri) {
			return &ctxstore.Error{Code: ctxstore.Full, URI: uri}
		}
		revision, err = d.Store.Put(ctx, uri, value, o)
		return err
	})
	return revision, err
}

func (d *disk) Delete(ctx context.Context, uri string, ifRevision *uint64) error {
	return d.change(func() error { return d.Store.Delete(ctx, uri, ifRevision) })
}

// up is the end of a power cut.
func (d *disk) up() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down || d.fallen == nil {
		d.down, d.fallen = false, make(chan struct{})
	}
}

func (d *disk) falls() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fallen
}

func (d *disk) isDown() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.down
}

// ledger appends the number of each message to its effect, and replies with their count.
type ledger struct{}

func (ledger) Transactional(sequence.Stored) bool { return true }

func (ledger) Transact(_ context.Context, tx *wsrm.Tx, m sequence.Stored) (sequence.Stored, error) {
	tx.Set(append(append([]byte(nil), tx.Value()...), m.Body[:8]...))
	return sequence.Stored{Head: m.Head, Body: binary.BigEndian.AppendUint64(nil, uint64(len(tx.Value())/8))}, nil
}

func (ledger) Handle(context.Context, sequence.Stored) sequence.Stored { panic("not asked for") }

// world is a client and a server with stores, and one stream after another between them.
type world struct {
	t        *testing.T
	restarts int
	failed   [2]int // of them, of each end
	cfg      sequence.Config
	handler  sequence.MessageHandler
	run0     sequence.SentRun // the client's, at its beginning
	disks    [2]*disk
	ends     [2]*sequence.Sequence
	streams  [2]*streamer.Stream
	cuts     func() [2]int64 // draws cut for each connection; nil: they are not cut
	cut      [2]int64        // after how many bytes of that direction the next connection breaks; 0: it does not

	arrives func(streamer.Place) // is told of each message that the server gets; nil: nobody
	unkept  bool                 // nobody hears what is kept of long messages, as if it had not been said

	conns func() [2]net.Conn    // makes connections; nil: pipes in memory. Those it gives are nil if it cannot
	body  func(n uint64) []byte // makes the body of a message, when it is time for it; nil: the number alone

	waiting sync.WaitGroup // for replies
	mu      sync.Mutex
	replies map[uint64]reply // by the number of the message; of the last life
	twice   bool
}

type reply struct {
	count uint64
	rest  []byte // behind the count
	err   error
}

func newWorld(t *testing.T, cfg sequence.Config, handler sequence.MessageHandler) *world {
	w := &world{
		t: t, cfg: cfg, handler: handler, run0: sequence.NewRun(),
		disks: [2]*disk{newDisk(), newDisk()}, replies: map[uint64]reply{},
	}
	w.cfg.URI = uri
	return w
}

// open makes the ends that are not there.
func (w *world) open() {
	for i := range w.ends {
		for w.ends[i] == nil {
			cfg := w.cfg
			cfg.Store = w.disks[i]
			w.disks[i].up()
			if i == 1 {
				cfg.Handler = w.handler
			} else {
				cfg.Run = &w.run0
				if cfg.Late == nil {
					cfg.Late = w.late
				}
			}
			q, err := sequence.Open(w.t.Context(), cfg)
			if errors.Is(err, errPower) {
				w.restarts++
				w.failed[i]++
				continue
			}
			require.NoError(w.t, err)
			w.ends[i] = q
		}
	}
}

// checkRun holds the run that the client's store has to what that says was accepted: so many of the
// messages of send, from the first on.
func (w *world) checkRun(q *sequence.Sequence) {
	run, known := q.Run()
	require.True(w.t, known)
	require.Equal(w.t, q.Status().Accepted, run.Messages)
	if w.body != nil {
		return // which messages those were depends on when they were made
	}
	want := w.run0
	for n := uint64(1); n <= run.Messages; n++ {
		want.Add(sequence.Stored{Body: binary.BigEndian.AppendUint64(nil, n)}, true)
	}
	require.Equal(w.t, want, run)
}

func (w *world) late(number uint64, m sequence.Stored, err error) {
	body := m.Body
	if err == nil && m.Long != nil {
		var gone error
		if body, gone = io.ReadAll(m.Message(context.Background()).Body); gone != nil {
			return // with the store
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, again := w.replies[number]
	w.twice = w.twice || again
	r := reply{err: err}
	if err == nil && len(body) >= 8 {
		r.count = binary.BigEndian.Uint64(body)
		r.rest = body[8:]
	}
	w.replies[number] = r
}

// cutter is a connection that breaks behind some bytes.
type cutter struct {
	net.Conn
	left int64
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left > 0 && int64(len(p)) >= c.left {
		n, _ := c.Conn.Write(p[:c.left-1])
		_ = c.Close()
		return n, errPower
	}
	if c.left > 0 {
		c.left -= int64(len(p))
	}
	return c.Conn.Write(p)
}

// connect has the ends speak over a new stream; false: it broke at once.
func (w *world) connect() bool {
	here, there := inproc.Pipe(1 << 20)
	conns := [2]net.Conn{&cutter{here, w.cut[0]}, &cutter{there, w.cut[1]}}
	if w.conns != nil {
		if conns = w.conns(); conns[0] == nil {
			return false
		}
	}
	w.cut = [2]int64{}
	var wait sync.WaitGroup
	for i := range conns {
		wait.Go(func() {
			coder := codec.NewBook(ctxstore.Shapes{Store: memory.New(memory.Config{})}).Coder(codec.Options{Text: true})
			q := w.ends[i]
			serve := func(ctx context.Context, x *streamer.Exchange) {
				if i == 1 && w.arrives != nil {
					w.arrives(x.Message().Place)
				}
				_ = q.Arrived(ctx, x.Message())
			}
			cfg := streamer.Config{Initiator: i == 0, Token: make([]byte, 16), Representation: 2, Coder: coder,
				Handler: serve, Acks: q.Acks}
			if !w.unkept {
				cfg.Kept = q.Kept
			}
			if i == 1 {
				cfg.Accept = func(context.Context, streamer.Hello) (streamer.Admission, error) {
					return streamer.Admission{Coder: coder, Handler: serve}, nil
				}
			}
			s, err := streamer.Over(context.Background(), conns[i], cfg)
			if err == nil {
				w.streams[i] = s
			}
		})
	}
	wait.Wait()
	for i, s := range w.streams {
		if s != nil {
			w.ends[i].Attach(s)
		}
	}
	return w.streams[0] != nil && w.streams[1] != nil
}

// disconnect ends the streams there are.
func (w *world) disconnect() {
	for i, s := range w.streams {
		if s != nil {
			s.Abort(streamer.CloseGoingAway, "")
			w.streams[i] = nil
		}
	}
}

func (w *world) kill(i int) {
	if w.ends[i] != nil {
		w.ends[i].Close()
		w.ends[i] = nil
	}
}

func (w *world) close() {
	w.disconnect()
	w.kill(0)
	w.kill(1)
	w.waiting.Wait()
}

// send sends what is left of so many messages, each with its number first in its body, and files
// the replies. It gives what it sent.
func (w *world) send(ctx context.Context, q *sequence.Sequence, messages uint64) (list []*sequence.Sending) {
	for n := q.Status().Accepted + 1; n <= messages; n++ {
		body := binary.BigEndian.AppendUint64(nil, n)
		if w.body != nil {
			body = w.body(n)
		}
		m, err := q.Prepare(ctx, nil, bytes.NewReader(body))
		if err != nil {
			return list
		}
		s, err := q.Send(ctx, m, true)
		if err != nil {
			return list
		}
		list = append(list, s)
		w.waiting.Go(func() {
			m, err := s.Wait(context.Background()) // at the latest it ends with the sequence
			var e *sequence.Error
			if !errors.As(err, &e) || e.Code == sequence.FateUnknown { // else the next life has it, or sends it
				w.late(n, m, err)
			}
		})
	}
	return list
}

// run has the client send messages until both ends know that all is done, whatever breaks on the
// way; it says how often an end was restarted.
func (w *world) run(messages uint64) int {
	for range 100 {
		restarted := w.ends[0] == nil
		w.open()
		if restarted {
			w.checkRun(w.ends[0])
		}
		if w.cuts != nil {
			w.cut = w.cuts()
		}
		if !w.connect() {
			w.disconnect()
			continue
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		var wait sync.WaitGroup
		finished := make(chan error, 1)
		q := w.ends[0]
		wait.Go(func() {
			list := w.send(ctx, q, messages)
			switch {
			case w.disks[0].isDown(): // as its process is
				finished <- errPower
				return
			case ctx.Err() != nil: // there is more to be sent
				finished <- ctx.Err()
			default:
				finished <- q.Finish(ctx)
			}
			// Until then the status does not count them, and the next connection would send them
			// again.
			for _, s := range list {
				_ = s.Stored(context.Background())
			}
		})
		var err error
		select {
		case err = <-finished:
		case <-w.streams[0].Done():
			err = errPower
		case <-w.streams[1].Done():
			err = errPower
		case <-w.disks[0].falls():
			err = errPower
		case <-w.disks[1].falls():
			err = errPower
		}
		if err == nil {
			cancel()
			w.waiting.Wait()
			return w.restarts
		}
		w.disconnect()
		for i := range w.ends {
			if w.disks[i].isDown() || errors.Is(w.ends[i].Err(), &sequence.Error{Code: sequence.Unstored}) {
				w.kill(i)
				w.restarts++
				w.failed[i]++
			}
		}
		cancel()
		wait.Wait()
	}
	require.FailNow(w.t, "it does not end")
	return 0
}

// effect is what the server's store has.
func (w *world) effect() (numbers []uint64) {
	entry, err := w.disks[1].Get(w.t.Context(), uri)
	require.NoError(w.t, err)
	effect, err := wsrm.EffectOf(entry.Value)
	require.NoError(w.t, err)
	for ; len(effect) >= 8; effect = effect[8:] {
		numbers = append(numbers, binary.BigEndian.Uint64(effect))
	}
	return numbers
}

// check holds a ledger to exactly-once, and to order if there is one.
func (w *world) check(messages uint64) {
	w.t.Helper()
	got := w.effect()
	require.Len(w.t, got, int(messages))
	seen := map[uint64]bool{}
	for i, n := range got {
		if w.cfg.Ordered {
			assert.EqualValues(w.t, i+1, n)
		}
		assert.False(w.t, seen[n], "message %d twice", n)
		seen[n] = true
	}
	assert.False(w.t, w.twice, "a reply came twice")
	for n, r := range w.replies {
		assert.NoError(w.t, r.err, "message %d", n)
		if w.cfg.Ordered {
			assert.Equal(w.t, n, r.count)
		}
	}
}

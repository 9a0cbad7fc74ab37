// Package sequence carries the messages of a session in a pair of reliable sequences, one in each
// direction (docs/wire-format.md, section 5.1), over the streams that the session has one after
// another, of whatever transport. The state lies in a context store: a sequence that is opened
// again on the same store, by another process, goes on where it was.
//
// The engine is that of package wsrm. This package drives it: one goroutine steps it, stores what
// changed, many messages at once, and only then lets anything of that be seen: by the peer, by
// who waits for a reply, by a handler without a transaction. It knows neither SOAP nor how streams
// come about.
package sequence

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Config is what a sequence works by. It is copied.
type Config struct {
	// Assurance is that of both directions: AtLeastOnce, or ExactlyOnce, which promises no more
	// than Store: over crashes, if that persists; or AtMostOnce with Ordered: what the end of a
	// stream leaves under way, messages and replies, is not sent again, and has an unknown fate.
	// Both ends must agree on it, and on Ordered.
	Assurance wsrm.Assurance
	// Ordered delivers messages in the order in which they were sent.
	Ordered bool
	// Store keeps the state, under URI; required. Only one process may have a sequence open at a
	// time: of two, one is told by an error Unstored.
	Store ctxstore.Store
	URI   string
	// Run is what the messages of a sequence go on with that the store does not have yet; one that
	// it has goes on with what it kept track of ([Sequence.Run]). nil: no run is kept track of, as
	// at an end that answers.
	Run *SentRun
	// Long is the URI to which the long messages belong that are sent, so that they outlive a
	// sequence that is lost; "": the sequence's own.
	Long string
	// Short is the longest message, head and body in bytes, that lies in the state, Piece how many
	// bytes of a longer one lie in an entry of the store; 0 means, and at most, MaxMessage and
	// 512 KiB.
	Short, Piece int
	// Collect drops long messages that were stored for Long and not accepted: nobody else may be
	// about to send any.
	Collect bool
	// Life is how long a state without effect is kept after its last change; 0: for ever.
	Life time.Duration
	// Handler gets the messages of the peer that are no replies; nil: they are done without.
	Handler MessageHandler
	// Broken is the reply in the place of one that cannot be stored, without a transaction.
	Broken Stored
	// Late gets replies, and errors in their place, for which nobody waits, as those of messages
	// that an earlier process sent. number is the sequence number of the message that is answered.
	// It must not block. nil: they are dropped. So are those of at-most-once, whose messages were
	// told to have an unknown fate.
	Late func(number uint64, reply Stored, err error)
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log hears what went wrong; nil: nobody.
	Log *slog.Logger
}

// MessageHandler is an application. Its methods get messages in their order, one after the other,
// if the sequence has one; else Handle is called concurrently. A reply is sent if the peer
// wants one.
type MessageHandler interface {
	// Transactional reports whether Transact handles a message, with effects that it puts into a
	// transaction; else Handle does.
	Transactional(m Stored) bool
	// Transact handles a message. Number, reply and what it puts into tx are one commit. An error
	// means that nothing happened; it is asked again after a while. Nothing may be kept of m.
	Transact(ctx context.Context, tx *wsrm.Tx, m Stored) (reply Stored, err error)
	// Handle handles a message with effects of its own. If the process dies meanwhile, nobody knows
	// whether they took place: under exactly-once the peer is told so and Handle not called
	// again, under at-least-once it is called again. ctx ends a while after [Sequence.Close];
	// whether a message that was handled beyond that is done, nobody knows either.
	Handle(ctx context.Context, m Stored) (reply Stored)
}

func (c *Config) engine() wsrm.Config {
	return wsrm.Config{Assurance: c.Assurance, Ordered: c.Ordered, Window: window, Hold: hold, AckDelay: ackDelay}
}

// Sequence is one end of a pair of sequences. All methods are safe for concurrent use.
type Sequence struct {
	cfg    Config
	engine *wsrm.Engine // of the driver, as all fields of loop
	loop   loop
	slots  slots         // for messages accepted and not done
	runs   tracker       // the driver's
	sent   pieces.Bodies // long bodies that are sent
	parts  arrivals

	ctx    context.Context // of handlers
	cancel context.CancelFunc
	wait   sync.WaitGroup
	wake   chan struct{}
	quit   chan struct{} // closed by Close
	ended  chan struct{} // the driver has ended
	over   chan struct{} // closed when both sequences ended, or the state is broken
	once   sync.Once

	mu     sync.Mutex
	events []func()
	acks   [][]byte      // what the peer said, and is not looked at
	load   int           // bytes of messages that arrived and are not done, with an allowance for each
	linked *streamLink   // the last one; nil: there was none
	eased  chan struct{} // closed when load shrinks; nil: nobody waits
	closed bool
	broken error // why nothing can be sent any more
	why    error // what Finish waits for in vain
	status Status
}

// Status is how far a sequence is.
type Status struct {
	// Accepted is how many messages were accepted for sending, Done how many of these the peer
	// is done with. Both count over all processes that had the sequence.
	Accepted, Done uint64
	// Received is how many messages of the peer are done, without gaps.
	Received uint64
	// Resent is how often messages were sent again, by this process.
	Resent int64
	// GivenUp is how many messages at-most-once, by this process, gave up with their streams: own
	// ones, which Done counts, and those of the peer, which Received does, also replies that
	// came too late.
	GivenUp int64
	// Closed: nothing more can be sent. Over: that holds for both ends, and all is done.
	Closed, Over bool
}

// within is a bound, or the greatest one.
func within(n, most int) int {
	if n <= 0 || n > most {
		return most
	}
	return n
}

// Status tells how far the sequence is.
func (q *Sequence) Status() Status {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.status
}

// Err tells why nothing can be sent any more; nil if something can.
func (q *Sequence) Err() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.broken != nil:
		return q.broken
	case q.closed:
		return errClosed
	}
	return nil
}

// Finish lets nothing more be sent, and waits until everything is done in both directions, and both
// ends know. Errors: the cause of ctx, and what the sequence broke of.
func (q *Sequence) Finish(ctx context.Context) error {
	q.do(func() { q.loop.finish = true })
	select {
	case <-q.over:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.status.Over {
		return nil
	}
	return q.why
}

// Lose gives up a sequence of which the peer knows nothing any more. What was never sent is
// handed over, to be sent in another sequence; with again, as at-least-once allows, so is what was
// sent and is not known to be done. Else that has an unknown fate. What is handed over is not in
// the sequence's run any more.
func (q *Sequence) Lose(again bool) []*Sending {
	out := make(chan []*Sending, 1)
	if !q.do(func() { out <- q.lose(again) }) {
		return nil
	}
	select {
	case list := <-out:
		return list
	case <-q.ended:
		return nil
	}
}

// Take sends what another sequence handed over.
func (q *Sequence) Take(list []*Sending) {
	q.do(func() {
		for _, s := range list {
			q.slots.force(s.weight)
			q.queue(s)
		}
	})
}

// Drain waits until no handler runs, also without a stream, or ctx is done.
func (q *Sequence) Drain(ctx context.Context) {
	idle := make(chan struct{})
	if !q.do(func() { q.loop.idle = append(q.loop.idle, idle) }) {
		return
	}
	select {
	case <-idle:
	case <-q.ended:
	case <-ctx.Done():
	}
}

// Close stores the state and ends all that the sequence runs here, once handlers have returned.
// Whoever waits is told that the message is kept. Streams go on. It is idempotent, and must not be
// called by a Handler.
func (q *Sequence) Close() {
	q.once.Do(func() { close(q.quit) })
	<-q.ended
	q.wait.Wait()
}

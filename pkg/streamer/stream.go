// Package streamer carries the messages of a session over one connection (docs/wire-format.md): lanes, exchanges, queues, room, sync. It knows neither
// SOAP nor shapes: a head is octets, a body is a reader, a shape is a number that a [Coder] knows.
//
// A [Stream] has a reader and a writer of its own. The reader never waits for anything but octets; the writer never waits for anything but the connection. Who calls, sends and replies waits
// for room in the queue between; who reads a message waits for its content.
package streamer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Config says what a stream is to be. It is copied.
type Config struct {
	// Initiator is the end that opened the connection.
	Initiator bool
	// Session and Token are what the initiator's hello says; Token has 16 octets.
	Session [16]byte
	Token   []byte
	// Representation is 1 binary or 2 xml (docs/wire-format.md, section 3). A responder takes 0 for whatever Accept agrees to.
	Representation uint64
	// Coder is the initiator's.
	Coder Coder
	// Accept is the responder's: it judges the hello of the initiator, and yields coder and handler for it. A *[Refusal] is told to the initiator. ctx is that of Over.
	Accept func(ctx context.Context, h frame.Hello) (Coder, Handler, error)
	// Handler serves what the other end begins; the responder's comes from Accept. nil: such messages are cancelled as unserved.
	Handler Handler
	// Limits are what this end takes.
	Limits Limits
	// Acks is told what the other end says of a sequence ([Stream.Acknowledge]), by the reader, between the messages that came before and behind it; it must not block. nil: that is passed over.
	Acks func(octets []byte)
	// Outgoing, if given, makes of the body of a message what travels of it, and Incoming is the
	// reverse: what the one makes is for the other of the peer. An initiator with them asks for the
	// stage [frame.Headers]; where a hello has that, they are called for every message of either
	// direction that has a body, once the responder's Accept has returned.
	Outgoing func(body io.Reader) io.Reader
	Incoming func(body io.ReadCloser) io.ReadCloser
	// QueueBytes bounds the octets of payload between senders and writer; 0 means 1 MiB.
	QueueBytes int64
	// FailWhenFull has Send and Call fail, instead of wait, when there is no room to begin a message: in the queue, or at the other end. A message that has
	// begun waits all the same.
	FailWhenFull bool
	// SyncBytes and SyncMessages bound what is sent between two syncs, in octets and messages; 0 means, and at most, 65 536 and 1 024.
	SyncBytes    int64
	SyncMessages int
	// SyncInterval bounds the time between two syncs of a direction that has messages, so that a decoder that joins need not wait
	// longer; from a minute on a sync is sent as soon as it adds no more than a twentieth to what was sent since the last one. 0
	// means 15 minutes; below 0, time does not count.
	SyncInterval time.Duration
	// HelloTimeout bounds the wait for the other end's hello; 0 means 30 s.
	HelloTimeout time.Duration
	// Rand is where the sync word comes from; nil means crypto/rand.
	Rand io.Reader
	// Events is told of every frame, by reader and writer, maybe at once; it must not block, nor call the stream. nil: no one is told.
	Events func(Event)
}

func (c Config) withDefaults() (Config, error) {
	var err error
	c.Limits, err = c.Limits.withDefaults()
	c.QueueBytes = orDefault(c.QueueBytes, defaultQueueBytes)
	c.SyncBytes = min(orDefault(c.SyncBytes, frame.MaxSyncOctets), frame.MaxSyncOctets)
	c.SyncMessages = min(orDefault(c.SyncMessages, frame.MaxSyncMessages), frame.MaxSyncMessages)
	c.SyncInterval = orDefault(c.SyncInterval, defaultSyncInterval)
	c.HelloTimeout = orDefault(c.HelloTimeout, defaultHelloTimeout)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	switch {
	case err != nil:
	case c.Initiator && c.Coder == nil:
		err = errors.New("initiator without a coder")
	case c.Initiator && len(c.Token) != frame.TokenLen:
		err = fmt.Errorf("token of %d octets", len(c.Token))
	case c.Initiator && c.Representation == 0:
		err = errors.New("initiator without a representation")
	case !c.Initiator && c.Accept == nil:
		err = errors.New("responder without Accept")
	case c.QueueBytes < 0 || c.SyncBytes < 0 || c.SyncMessages < 0 || c.HelloTimeout < 0:
		err = errors.New("negative bound")
	}
	if err != nil {
		return c, &Error{Code: BadConfig, Err: err}
	}
	return c, nil
}

// Stream is a live stream. Its methods may be called concurrently, [Stream.Close] and [Stream.Abort] not from a [Handler].
type Stream struct {
	conn    net.Conn
	cfg     Config
	hello   frame.Hello // ours
	peer    frame.Hello
	word    [8]byte
	coder   Coder
	packer  Packer // the coder, if the stream has stages of its
	inForm  bool   // bodies travel in the form that Config.Outgoing gives them
	handler Handler

	ctx    context.Context // of the handlers
	cancel context.CancelFunc
	tasks  sync.WaitGroup // handlers, and goroutines of Call
	done   chan struct{}  // reader and writer have ended, the connection is closed
	deaf   chan struct{}  // nothing more is received
	broken chan struct{}  // nothing more is sent
	mute   chan struct{}  // the writer has ended
	wake   chan struct{}  // for the writer

	queue      gate // octets of payload between senders and writer
	slots      gate // exchanges in flight that this end began
	room       room // octets of payload the other end queues for us
	places     places
	maxPayload int
	maxMessage int64

	maxControl  int
	maxShapes   int
	maxOpenIn   int
	maxWeight   int64
	maxOverhead int64

	statsMu sync.Mutex
	stats   Stats

	mu       sync.Mutex
	lanes    map[uint64]*Lane
	ring     fifo[turn]
	control  fifo[frame.Frame]
	acks     fifo[frame.Ack]
	lacks    fifo[uint64]
	referred map[uint64]bool         // numbers whose shape the other end may still ask for
	uses     map[uint64]int          // numbers that messages use, split, queued or open
	outs     map[frame.Key]*outgoing // begun and not whole
	live     int                     // messages not whole nor dropped
	calls    map[frame.Key]*call     // by request, once begun, until the reply is whole

	in        map[frame.Key]*inbound  // open
	exchanges map[frame.Key]*Exchange // by request, until the reply is whole
	flight    int                     // those of them that count against MaxExchanges
	running   int                     // goroutines that serve
	waiting   fifo[*Exchange]
	queued    load

	refusals    map[frame.Key]*Error // of one-way messages that were whole
	refusedMore bool                 // than are kept
	readAll     bool                 // the other end said "done" behind ours: it has read all that was sent

	closing  bool // nothing new begins
	said     bool // our close frame is written, or about to be
	wrote    bool // it is written
	failed   bool
	isDeaf   bool
	farewell *frame.Close // what a stream that failed says last
	err      *Error
	linger   *time.Timer
}

// Over makes a stream of a connection: it exchanges hellos and starts reader and writer. It owns conn from now on, also when it fails. ctx bounds the hellos;
// the contexts of handlers have its values. Errors are *[Error]; with Remote, the code says why the other end refused (a refusal that comes late ends the stream instead).
func Over(ctx context.Context, conn net.Conn, cfg Config) (*Stream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s := &Stream{conn: conn, cfg: cfg, coder: cfg.Coder, handler: cfg.Handler, wake: make(chan struct{}, 1)}
	in, err := s.meet(ctx)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s.start(ctx, in)
	return s, nil
}

func (s *Stream) start(ctx context.Context, in *input) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done, s.deaf, s.broken = make(chan struct{}), make(chan struct{}), make(chan struct{})
	s.mute = make(chan struct{})
	peer, own := s.peer.Limits, s.cfg.Limits
	s.queue.max = s.cfg.QueueBytes
	s.slots.max = int64(min(peer.MaxExchanges, maxFlight))
	s.room.max = bounded(peer.MaxQueued)
	s.maxPayload = int(s.peer.Limits.MaxFragment)
	s.maxMessage = bounded(peer.MaxMessage)
	s.maxControl = controlSlack + 4*own.MaxExchanges
	s.maxOpenIn = 2*(own.MaxExchanges+int(s.slots.max)) + 64
	s.maxShapes = max(own.MaxShapes, int(frame.EarlyLimits.MaxShapes))
	s.maxOverhead = int64(own.MaxExchanges) * exchangeWeight
	s.maxWeight = 2*own.MaxQueued + s.maxOverhead
	s.lanes, s.referred, s.uses = map[uint64]*Lane{}, map[uint64]bool{}, map[uint64]int{}
	s.outs, s.calls, s.in, s.exchanges = map[frame.Key]*outgoing{}, map[frame.Key]*call{}, map[frame.Key]*inbound{}, map[frame.Key]*Exchange{}
	r := &receiver{s: s, input: in, checks: frame.NewChecks(s.peer.Origin()), announced: map[uint64][32]byte{}, asked: map[uint64][32]byte{}, syncEnd: in.at,
		pieces: frame.Pieces{MaxShapes: uint64(s.maxShapes), MaxBytes: uint64(max(own.MaxShapeBytes, int64(frame.EarlyLimits.MaxShapeBytes)))}}
	sent := int64(len(s.hello.AppendTo(nil)))
	now := time.Now()
	w := &writer{s: s, checks: frame.NewChecks(s.hello.Origin()), syncedAt: now, before: now, jobs: map[uint64]*shapeJob{}, names: map[uint64][8]byte{}, behind: map[uint64]*shapeJob{}, at: sent, syncEnd: sent}
	var ends sync.WaitGroup
	ends.Go(r.run)
	ends.Go(w.run)
	go func() {
		ends.Wait()
		s.finish()
	}()
}

func bounded(v uint64) int64 { return int64(min(v, 1<<62)) }

// Hello is the hello of the other end.
func (s *Stream) Hello() frame.Hello { return s.peer }

// Lane is the lane of a number; the same for the same number. A lane costs nothing on the wire until it is used.
func (s *Stream) Lane(n uint64) *Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[n]
	if l == nil {
		l = &Lane{s: s, number: n}
		s.lanes[n] = l
	}
	return l
}

// Done is closed when the stream is over and its connection closed.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err is nil as long as the stream lives, and when it ended in order: by Close, or by the other end's close "done". Otherwise it is an *[Error].
func (s *Stream) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return s.err
}

func (s *Stream) wakeWriter() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

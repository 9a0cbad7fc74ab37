// Package streamer carries the messages of a session over one connection (docs/wire-format.md). What
// stands on the wire is the business of package wire below it: a [Stream] is a reader goroutine with a
// decoder, a writer goroutine with an encoder, a queue of what is to be written, and the exchanges
// that are under way. It knows nothing of SOAP: a head is bytes, a body is a reader.
//
// The reader never waits for anything but bytes, the writer for nothing but the connection. Who calls,
// sends and replies waits for credit of the peer and for room in the queue; who reads a message waits
// for its content.
package streamer

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Config says what a stream is to be. It is copied.
type Config struct {
	// Initiator is the end that opened the connection.
	Initiator bool
	// Session and Token are what the initiator's hello says. Token has 16 bytes; with none, the hello is a
	// first contact with the service at Target, a URL.
	Session [16]byte
	Token   []byte
	Target  string
	// Early, if given, are limits that the responder keeps to, before its hello tells what they are:
	// [frame.EarlyLimits], or those that its last hello in this session stated. Over then waits for no hello,
	// and what is sent leaves in one flight with ours; a peer that does not take the session ends the stream,
	// with all messages Unsent.
	Early *frame.Limits
	// Proxy: this end is half of a pair of proxies, as its hello says.
	Proxy bool
	// Without are stages that an initiator does not ask for although its Coder has them.
	Without uint64
	// Representation is 1 binary or 2 xml (docs/wire-format.md, section 3). A responder takes 0 for whatever Accept agrees to.
	Representation uint64
	// Coder is the initiator's.
	Coder Coder
	// Accept is the responder's: it judges the hello of the initiator. A *[Refusal] is told to the initiator. ctx is that of Over.
	Accept func(ctx context.Context, h frame.Hello) (Admission, error)
	// Handler serves what the other end begins; the responder's comes from Accept. nil: such messages are cancelled as unserved.
	Handler Handler
	// Limits are what this end takes.
	Limits Limits
	// Acks is told what the other end says of a sequence ([Stream.Acknowledge]), by the reader, between the messages that came before and behind it; it must not block. nil: that is passed over.
	Acks func(octets []byte)
	// Outgoing, if given, makes of the body of a message what travels of it, which it writes to to; its
	// Close does not close that. Incoming is the reverse: what the one makes is for the other of the
	// peer. An initiator with them asks for the stage [frame.Headers]; where a hello has that, they are
	// called for every message of either direction that has a body, once the responder's Accept has
	// returned.
	Outgoing func(to io.Writer) io.WriteCloser
	Incoming func(body io.ReadCloser) io.ReadCloser
	// QueueBytes bounds the content between senders and writer, in bytes; 0 means 1 MiB.
	QueueBytes int64
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
	c.HelloTimeout = orDefault(c.HelloTimeout, defaultHelloTimeout)
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	switch {
	case err != nil:
	case c.Initiator && c.Coder == nil:
		err = errors.New("initiator without a coder")
	case len(c.Token) != 0 && (len(c.Token) != frame.TokenLen || c.Target != ""), len(c.Target) > frame.MaxTarget:
		err = fmt.Errorf("token of %d bytes, target of %d", len(c.Token), len(c.Target))
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

// Stream is a live stream. Its methods may be called concurrently, [Stream.Close] and [Stream.Abort]
// not from a [Handler].
type Stream struct {
	conn    netconn.Conn
	cfg     Config
	hello   frame.Hello                 // ours
	peer    atomic.Pointer[frame.Hello] // what is known of it, until it is met
	met     chan struct{}               // closed when the peer's hello is there
	awaited *time.Timer                 // ends a stream whose peer's does not come
	refused atomic.Bool                 // it does not take the session
	coder   Coder
	handler Handler
	inForm  bool // bodies travel in the form that Config.Outgoing gives them

	ctx    context.Context // of the handlers
	cancel context.CancelFunc
	tasks  sync.WaitGroup // handlers, and goroutines of Call
	done   chan struct{}  // reader and writer have ended, the connection is closed
	mute   chan struct{}  // the writer has ended

	queue     *queue
	exchanges exchanges
	traffic   traffic
	ending    ending
}

// Over makes a stream of a connection: it exchanges hellos and starts reader and writer. It owns conn
// from now on, also when it fails. ctx bounds the hellos; the contexts of handlers have its values.
// Errors are *[Error]; with Remote, the code says why the peer refused (a refusal that comes late ends
// the stream instead).
func Over(ctx context.Context, conn net.Conn, cfg Config) (*Stream, error) {
	if cfg.Initiator && len(cfg.Token) == 0 && cfg.Target == "" {
		_ = conn.Close()
		return nil, &Error{Code: BadConfig, Err: errors.New("neither token nor target")}
	}
	s, err := newStream(conn, cfg)
	if err != nil {
		return nil, err
	}
	in, err := s.meet(ctx, s.introduce)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s.start(ctx, in, func() {})
	return s, nil
}

// newStream checks the configuration; it closes conn if that does not hold together.
func newStream(conn net.Conn, cfg Config) (*Stream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &Stream{conn: netconn.Of(conn), cfg: cfg, coder: cfg.Coder, handler: cfg.Handler, met: make(chan struct{})}, nil
}

// start has reader and writer run, once ready has seen to the exchanges that there are already.
func (s *Stream) start(ctx context.Context, in *input, ready func()) {
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.done, s.mute = make(chan struct{}), make(chan struct{})
	limits := s.peer.Load().Limits
	s.queue = newQueue(&s.cfg, limits)
	s.exchanges.init(s, limits)
	r, w := newReader(s, in), newWriter(s, limits)
	s.awaited = time.AfterFunc(s.cfg.HelloTimeout, s.unmet)
	ready()
	var ends sync.WaitGroup
	ends.Go(r.run)
	ends.Go(w.run)
	go func() {
		ends.Wait()
		s.finish()
	}()
}

func bounded(v uint64) int64 { return int64(min(v, 1<<62)) }

// unmet ends a stream whose peer's hello has not come in time.
func (s *Stream) unmet() {
	select {
	case <-s.met:
	default:
		s.fail(&Error{Code: Closed, Err: fmt.Errorf("no hello of the peer within %v", s.cfg.HelloTimeout)})
	}
}

// Met is closed when the hello of the peer is there; maybe never, if the stream is over before.
func (s *Stream) Met() <-chan struct{} { return s.met }

// Hello is the hello of the peer, or, until [Stream.Met] is closed, what is known without it.
func (s *Stream) Hello() frame.Hello { return *s.peer.Load() }

// Session is the session of the stream.
func (s *Stream) Session() [16]byte { return s.hello.Session }

// Lane is the lane of a number; the same for the same number. A lane costs nothing on the wire until it
// is used.
func (s *Stream) Lane(n uint64) *Lane { return s.exchanges.lane(n) }

// Done is closed when the stream is over and its connection closed.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err is nil as long as the stream lives, and when it ended in order: by Close, or by the peer's close
// "done". Otherwise it is an *[Error].
func (s *Stream) Err() error {
	if e := s.ending.failure(); e != nil {
		return e
	}
	return nil
}

// Package streamer carries the messages of a session over one connection (docs/wire-format.md).
// What stands on the wire is the business of package wire below it: a [Stream] is a reader
// goroutine with a decoder, a writer goroutine with an encoder, a queue of what is to be written,
// and the exchanges that are under way. It knows nothing of SOAP: a head is bytes, a body is a
// reader.
//
// The reader never waits for anything but bytes, the writer for nothing but the connection. Who
// calls, sends and replies waits for credit of the peer and for room in the queue; who reads a
// message waits for its content.
package streamer

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Stream is a live stream. Its methods may be called concurrently, [Stream.Close] and
// [Stream.Abort] not from a [ExchangeHandler].
type Stream struct {
	conn    netconn.Conn
	cfg     Config
	hello   frame.Hello                 // ours
	peer    atomic.Pointer[frame.Hello] // what is known of it, until it is met
	met     chan struct{}               // closed when the peer's hello is there
	awaited *time.Timer                 // ends a stream whose peer's does not come
	refused atomic.Bool                 // it does not take the session
	coder   Coder
	handler ExchangeHandler
	inForm  bool // bodies travel in the form that Config.Outgoing gives them

	ctx    context.Context // of the handlers
	cancel context.CancelFunc
	tasks  sync.WaitGroup // handlers, and goroutines of Call
	done   chan struct{}  // reader and writer have ended, the connection is closed
	mute   chan struct{}  // the writer has ended

	queue     *queue
	exchanges exchanges
	traffic   trafficCounter
	ending    streamEnd
}

// Met is closed when the hello of the peer is there; maybe never, if the stream is over before.
func (s *Stream) Met() <-chan struct{} { return s.met }

// Hello is the hello of the peer, or, until [Stream.Met] is closed, what is known without it.
func (s *Stream) Hello() frame.Hello { return *s.peer.Load() }

// Session is the session of the stream.
func (s *Stream) Session() [16]byte { return s.hello.Session }

// Lane is the lane of a number; the same for the same number. A lane costs nothing on the wire
// until it is used.
func (s *Stream) Lane(n uint64) *Lane { return s.exchanges.lane(n) }

// Done is closed when the stream is over and its connection closed.
func (s *Stream) Done() <-chan struct{} { return s.done }

// Err is nil as long as the stream lives, and when it ended in order: by Close, or by the peer's
// close "done". Otherwise it is an *[Error].
func (s *Stream) Err() error {
	if e := s.ending.failure(); e != nil {
		return e
	}
	return nil
}

// note counts a frame and tells who listens.
func (s *Stream) note(ev Event) {
	s.traffic.mu.Lock()
	t := &s.traffic.stats.Sent
	if ev.Dir == Received {
		t = &s.traffic.stats.Received
	}
	c := t.of(ev.Kind)
	c.Frames++
	c.Octets += int64(ev.Octets)
	if ev.Last {
		t.Messages++
	}
	s.traffic.mu.Unlock()
	if s.cfg.Events != nil {
		s.cfg.Events(ev)
	}
}

// Stats is what the stream has carried so far. It may be called at any time.
func (s *Stream) Stats() Stats {
	s.traffic.mu.Lock()
	defer s.traffic.mu.Unlock()
	return s.traffic.stats
}

// incoming is the body of a message as the application gets it.
func (s *Stream) incoming(b *body) io.ReadCloser {
	if s.inForm {
		return s.cfg.Incoming(b)
	}
	return b
}

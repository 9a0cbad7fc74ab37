// Package streamer carries the messages of a session over one connection (docs/wire-format.md).
// What stands on the wire is the business of package wire below it: a [Stream] is a reader
// goroutine with a decoder, a writer with an encoder, which has a goroutine while there is
// something to write, a queue of that, and the exchanges that are under way. It knows nothing of
// SOAP: a head is bytes, a body is a reader.
//
// The reader never waits for anything but bytes, the writer for nothing but the connection. Who
// calls, sends and replies waits for credit of the peer and for room in the queue; who reads a
// message waits for its content. A call and a reply that nothing else might go with are written by
// who sends them, as far as the connection takes them at once, which saves waking the writer.
package streamer

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/wire"
)

// Stream is a live stream. Its methods may be called concurrently, [Stream.Close] and
// [Stream.Abort] not from a [ExchangeHandler].
type Stream struct {
	conn    netconn.Conn
	cfg     lastingConfig
	origin  frame.Origin              // of our direction
	peer    atomic.Pointer[peerHello] // what is known of it, until it is met
	met     onceSignal                // given when the peer's hello is there
	awaited *time.Timer               // ends a stream whose peer's does not come; nil: it has
	coder   Coder
	handler ExchangeHandler
	refused atomic.Bool          // the peer does not take the session
	running atomic.Int32         // directions that have not ended
	quick   QuickHandler         // nil: none
	heads   [lastHeads]laneHeads // by lane
	inForm  bool                 // bodies travel in the form that Config.Outgoing gives them

	ctx   handlerContext // what those of the handlers end with
	tasks sync.WaitGroup // handlers, and goroutines of Call
	done  onceSignal     // reader and writer have ended, the connection is closed
	mute  onceSignal     // the writer has ended

	queue     *queue
	exchanges exchanges
	traffic   trafficCounter
	ending    streamEnd
}

// Met is closed when the hello of the peer is there; maybe never, if the stream is over before.
func (s *Stream) Met() <-chan struct{} { return s.met.wait() }

// Hello is the hello of the peer, or, until [Stream.Met] is closed, what is known without it.
func (s *Stream) Hello() frame.Hello { return s.peer.Load().whole() }

// Session is the session of the stream.
func (s *Stream) Session() [16]byte { return s.origin.Session }

// Lane is the lane of a number; the same for the same number. A lane costs nothing on the wire
// until it is used.
func (s *Stream) Lane(n uint64) *Lane { return s.exchanges.lane(n) }

// OnEnd has f called, in a goroutine of its own, when the stream is over and its connection closed;
// at once if it is already. Where there are many streams it saves the goroutines that would wait
// for [Stream.Done]. Of several calls the last counts.
func (s *Stream) OnEnd(f func()) {
	if s.ending.then(f) {
		go f()
	}
}

// Together calls send, and has the messages sent meanwhile go in as few packets as they fit. What
// fills a batch of 16 KiB does not wait for the end of send; neither does anything once somebody
// waits for a reply, for more of a body, or for room. send must not take long.
func (s *Stream) Together(send func()) {
	defer s.queue.collect(s.mayEncodeHere())()
	send()
}

// mayEncodeHere reports whether senders may encode what they send, and write it: unless all waits
// for FlushDelay, or somebody is told of frames who may be waiting for a sender.
func (s *Stream) mayEncodeHere() bool { return s.cfg.Events == nil && !s.queue.delays }

// Resync sends a sync frame, and asks the peer for one, so that whoever begins to record the stream
// now can decode all that begins behind these frames, in both directions, without a store: shapes
// are announced in full again before they are used (docs/wire-format.md, section 6). It does not
// wait. A peer that is asked twice within 5 seconds sends one; one of an earlier version sends
// none.
func (s *Stream) Resync() { s.queue.wish(resyncOwn | resyncPeer) }

// Done is closed when the stream is over and its connection closed.
func (s *Stream) Done() <-chan struct{} { return s.done.wait() }

// Over reports whether the stream is over and its connection closed, as [Stream.Done] is then.
func (s *Stream) Over() bool { return s.done.given.Load() }

// Err is nil as long as the stream lives, and when it ended in order: by Close, or by the peer's
// close "done". Otherwise it is an *[Error].
func (s *Stream) Err() error {
	if e := s.ending.failure(); e != nil {
		return e
	}
	return nil
}

// saidHello counts our hello and tells who listens.
func (s *Stream) saidHello(octets int) {
	s.wroteFrames([]wire.Written{{Kind: frame.KindHello, Octets: octets}}, 0)
	if s.cfg.Events != nil {
		s.cfg.Events(Event{Dir: Sent, Kind: frame.KindHello, Octets: octets})
	}
}

// wroteFrames counts frames that are about to be written, with which so many messages ended.
func (s *Stream) wroteFrames(frames []wire.Written, messages int32) {
	s.traffic.wrote(frames, messages)
	if c := s.cfg.Carried; c != nil && len(frames) > 0 {
		octets := 0
		for i := range frames {
			octets += frames[i].Octets
		}
		c.Sent.Wire.Add(int64(octets))
	}
}

// Stats is what the stream has carried so far. It may be called at any time.
func (s *Stream) Stats() Stats {
	sent, received := s.traffic.both()
	return Stats{sent, received, s.queue.starved.Load()}
}

// Path is what the transport knows of the path to the peer; false: nothing, or the stream is over.
func (s *Stream) Path() (PathInfo, bool) { return netconn.PathOf(s.conn) }

// incoming is the body of a message as the application gets it.
func (s *Stream) incoming(b *body) io.ReadCloser {
	if s.inForm {
		return s.cfg.Incoming(b)
	}
	return b
}

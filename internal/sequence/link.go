package sequence

import (
	"sync"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// streamLink is one stream of a sequence, and what waits to be sent on it. The window bounds the
// units; of what is said beside them, only the last of each kind counts.
type streamLink struct {
	stream *streamer.Stream
	wake   chan struct{}
	idle   chan struct{} // closed when nothing more is sent
	met    chan struct{} // closed when the peer has said how far it is
	long   chan struct{} // has a place for each long message that is being sent

	kept map[uint64]uint64 // that of loop, once it is met

	mu      sync.Mutex
	control []byte // a packet that asks for an answer
	ack     []byte
	units   []sentMessage
	taken   uint64 // the greatest number of a unit that the stream was handed, or is about to be
	posted  []post // at-most-once: those that are not known to be done
}

// Attach has the sequence go on over a stream, until that ends, in place of the one before. Its
// handlers and its Acks are to call Arrived and [Sequence.Acks].
func (q *Sequence) Attach(s *streamer.Stream) {
	l := &streamLink{stream: s, wake: make(chan struct{}, 1), idle: make(chan struct{}),
		met: make(chan struct{}), long: make(chan struct{}, maxLong)}
	q.mu.Lock() // so that what Close waits for is complete when it begins to wait
	defer q.mu.Unlock()
	if !q.doLocked(func() { q.attach(l) }) {
		return
	}
	q.linked = l
	q.wait.Go(func() {
		l.run(q)
		select {
		case <-s.Done():
			q.do(func() { q.detach(l) })
		case <-q.ended:
		}
	})
}

func (q *Sequence) attach(l *streamLink) {
	if old := q.loop.link; old != nil {
		q.detach(old)
		// It may hang: of two streams, the peer has opened the last.
		q.wait.Go(func() { old.stream.Abort(streamer.CloseGoingAway, "the sequence goes on over another stream") })
	}
	q.loop.link = l
	if q.loop.dead {
		q.abort(streamer.CloseInternal, storeFailed)
	}
	q.heard(true)
	_ = q.step(wsrm.Event{Kind: wsrm.Connected}) // never refused
}

// storeFailed tells the peer to come back when the store has recovered.
const storeFailed = "the context store failed"

// abort ends the stream at hand.
func (q *Sequence) abort(code streamer.CloseCode, why string) {
	if l := q.loop.link; l != nil {
		q.wait.Go(func() { l.stream.Abort(code, why) })
	}
}

func (q *Sequence) detach(l *streamLink) {
	if l == nil || q.loop.link != l {
		return
	}
	q.loop.link = nil
	if q.cfg.Assurance == wsrm.AtMostOnce {
		q.abandon(l)
		return
	}
	_ = q.step(wsrm.Event{Kind: wsrm.Disconnected}) // never refused
}

// sentMessage is a message that the engine has sent.
type sentMessage struct {
	number  uint64
	payload []byte
}

// queue takes what the engine has sent or said.
func (l *streamLink) queue(a wsrm.Action) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case a.Kind == wsrm.Transmit:
		l.units = append(l.units, sentMessage{a.Number, a.Message})
	case a.Asks:
		l.control = a.Message
		if a.Acks {
			l.ack = nil
		}
	default:
		l.ack = a.Message
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *streamLink) take() (said []byte, u sentMessage, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.control != nil:
		said, l.control = l.control, nil
	case l.ack != nil:
		said, l.ack = l.ack, nil
	case len(l.units) > 0:
		u = l.units[0]
		l.units = l.units[1:]
		l.taken = max(l.taken, u.number)
	default:
		return nil, u, false
	}
	return said, u, true
}

// run sends until the stream ends, or the sequence is closed.
func (l *streamLink) run(q *Sequence) {
	defer close(l.idle)
	if q.takesLong() { // ahead of the first acknowledgement, which says that the peer has been heard
		if err := l.stream.Keep(q.ctx, q.parts.kept()); err != nil {
			return
		}
	}
	for {
		said, u, ok := l.take()
		var err error
		switch {
		case !ok:
			select {
			case <-l.wake:
			case <-l.stream.Done():
				return
			case <-q.ended:
				return
			}
		case said != nil:
			err = l.stream.Acknowledge(q.ctx, said)
		default:
			err = l.post(q, u)
		}
		if err != nil {
			l.failed(q, u.number, err)
			return
		}
	}
}

// failed ends a stream on which a message cannot be sent, unless it has ended.
func (l *streamLink) failed(q *Sequence, number uint64, err error) {
	select {
	case <-l.stream.Done():
	case <-q.ctx.Done():
	default:
		q.cfg.Log.Warn("message of a sequence not sent", "uri", q.cfg.URI, "number", number, "err", err)
		// which waits for handlers
		q.wait.Go(func() { l.stream.Abort(streamer.CloseInternal, "a message of the sequence cannot be sent") })
	}
}

func (l *streamLink) post(q *Sequence, u sentMessage) error {
	m, place, err := decode(u.payload)
	if err != nil {
		return err
	}
	place.Number = u.number
	if m.Long != nil { // beside the others: what is short, and acknowledgements, need not wait for it
		q.wait.Go(func() {
			if err := l.postLong(q, m, place); err != nil {
				l.failed(q, u.number, err)
			}
		})
		return nil
	}
	out := streamer.NewMessage(m.Head, m.Body)
	out.Place = place
	posted, err := l.stream.Lane(0).Post(q.ctx, out)
	if q.cfg.Assurance == wsrm.AtMostOnce {
		l.handed(u.number, posted, err)
	}
	return err
}

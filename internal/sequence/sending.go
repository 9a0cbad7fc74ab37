package sequence

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Sending is a message on its way.
type Sending struct {
	payload  []byte
	weight   int       // see slots
	behind   []payload // see payload; the driver's
	wanted   bool
	stored   chan struct{} // closed when it is in the store, or settled
	done     chan struct{} // closed when it is settled: reply or err is set
	kept     bool          // stored is closed; the driver's
	settled  bool          // done is closed; the driver's
	acked    bool          // the driver's
	answered bool          // its reply is in the inbox; the driver's
	late     bool          // nobody waits: an earlier process sent it
	reply    Stored
	err      error
}

func newSending(payload []byte, wanted bool) *Sending {
	return &Sending{payload: payload, weight: weigh(payload), wanted: wanted,
		stored: make(chan struct{}), done: make(chan struct{})}
}

// Send queues a message; wanted: a reply is. Messages that one goroutine sends are numbered in that
// order. It waits while too many messages are not done. Errors: TooLarge, those of [Sequence.Err],
// and the cause of ctx.
func (q *Sequence) Send(ctx context.Context, m Stored, wanted bool) (*Sending, error) {
	if n := len(m.Head) + len(m.Body); n > MaxMessage {
		return nil, tooLarge(int64(n), MaxMessage)
	}
	if err := q.Err(); err != nil {
		return nil, err
	}
	if err := q.mayBeLong(ctx, m); err != nil {
		return nil, err
	}
	s := newSending(encode(m, streamer.Place{Wanted: wanted}), wanted)
	if err := q.slots.acquire(ctx, q.over, s.weight); err != nil {
		return nil, err
	}
	if !q.do(func() { q.queue(s) }) {
		return nil, q.Err()
	}
	return s, nil
}

// keep tells who waits that the message is stored, or settled: behind done then, so that nobody
// takes the one for the other.
func (s *Sending) keep() {
	if !s.kept {
		s.kept = true
		close(s.stored)
	}
}

// Stored waits until the message lies in the store: from then on it arrives, or is reported.
// Errors: as [Sending.Wait].
func (s *Sending) Stored(ctx context.Context) error {
	select {
	case <-s.stored:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Wait waits until the message is done, and its reply there if one is wanted. Errors: FateUnknown,
// Unsent, Kept, Unstored, and the cause of ctx, which changes nothing for the message.
func (s *Sending) Wait(ctx context.Context) (Stored, error) {
	select {
	case <-s.done:
		return s.reply, s.err
	case <-ctx.Done():
		return Stored{}, context.Cause(ctx)
	}
}

// Accepted reports whether the message had a number in the sequence that handed it over
// ([Sequence.Lose]).
func (s *Sending) Accepted() bool {
	select {
	case <-s.stored:
		return true
	default:
		return false
	}
}

// Settled tells what Wait would say, if it would not wait.
func (s *Sending) Settled() (settled bool, err error) {
	select {
	case <-s.done:
		return true, s.err
	default:
		return false, nil
	}
}

// acknowledged: the peer is done with a message.
func (q *Sequence) acknowledged(number uint64) {
	s := q.loop.sent[number]
	if s == nil || s.acked {
		return
	}
	s.acked = true
	q.heard(true)
	q.slots.release(s.weight)
	q.dropSent(s, true)
	s.payload = nil
	if !s.wanted || s.late || s.settled { // an earlier process may have had its reply
		q.settle(number, Stored{}, nil)
	}
}

// settle ends a message's way; a reply may come before the acknowledgement.
func (q *Sequence) settle(number uint64, reply Stored, err error) {
	s := q.loop.sent[number]
	if s != nil && !s.settled {
		s.settled = true
		s.reply, s.err = reply, err
		close(s.done)
		s.keep()
	}
	if s != nil && (s.acked || err != nil) {
		var e *Error
		if s.late && q.cfg.Late != nil && errors.As(err, &e) && (e.Code == FateUnknown || e.Code == Unsent) {
			q.cfg.Late(number, reply, err)
		}
		if !s.acked {
			q.slots.release(s.weight)
			if errors.As(err, &e) && (e.Code == FateUnknown || e.Code == Unsent) && e != errClosed {
				q.dropSent(s, true)
			}
		}
		delete(q.loop.sent, number)
	}
}

// queue takes a message that is to be sent.
func (q *Sequence) queue(s *Sending) {
	if err := q.Err(); err != nil {
		q.refuse(s, err)
		return
	}
	q.loop.outbox = append(q.loop.outbox, s)
}

func (q *Sequence) refuse(s *Sending, err error) {
	s.settled, s.err = true, err
	close(s.done)
	s.keep()
	q.slots.release(s.weight)
	q.dropSent(s, false)
}

// send hands what waits to the engine, answers first: others wait for those.
func (q *Sequence) send() {
	l := &q.loop
	for len(l.answers) > 0 && q.answer(l.answers[0]) {
		l.answers = l.answers[1:]
	}
	for len(l.outbox) > 0 {
		s := l.outbox[0]
		err := q.step(wsrm.Event{Kind: wsrm.Send, Message: s.payload})
		switch {
		case err == nil:
			l.sent[q.engine.Last()] = s
			q.runs.accepted(s.payload, s.behind...)
			s.behind = nil
			l.fresh = append(l.fresh, s)
		case errors.Is(err, wsrm.Full):
			return // there is room after the next acknowledgement
		default:
			q.refuse(s, &Error{Code: Unsent, Err: err})
		}
		l.outbox = l.outbox[1:]
	}
}

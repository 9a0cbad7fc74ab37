package sequence

import (
	"context"
	"errors"
	"fmt"
	"time"

	numbers "github.com/hhfr/hhfr/internal/window"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// deliveredMessage is a message that was delivered.
type deliveredMessage struct {
	number  uint64
	payload []byte
}

// pendingReply is a reply that is to be sent: alone, or, with commits, as the commit of the message
// it answers.
type pendingReply struct {
	answers uint64
	unknown bool
	commits bool
	message Stored
	wanted  bool
	octets  int // of load that it frees
}

// perMessage is what one that waits weighs beside its bytes.
const perMessage = 256

// Arrived takes a message of the peer that has a place in the sequence. It is for handlers of
// streams, and returns when the message is taken: what is sent too fast waits there. ctx ends the
// waiting. Errors: those of the message's body, and the cause of ctx.
func (q *Sequence) Arrived(ctx context.Context, m *streamer.Message) error {
	if m.Place.Length != 0 {
		return q.arrivedLong(ctx, m)
	}
	body, err := m.ReadAll(MaxMessage)
	if err != nil {
		return err
	}
	payload := encode(Stored{Head: m.Head, Body: body}, m.Place)
	weight := len(payload) + perMessage
	if err := q.admit(ctx, weight); err != nil {
		return err
	}
	number := m.Place.Number
	if !q.do(func() { q.arrived(number, payload, weight) }) {
		q.free(weight)
		return q.Err()
	}
	return nil
}

// admit waits until there is room for what arrives: an end that keeps to the window never waits for
// long.
func (q *Sequence) admit(ctx context.Context, weight int) error {
	const most = 2 * (hold + window*perMessage)
	q.mu.Lock()
	for q.load > 0 && q.load+weight > most && !q.closed {
		if q.eased == nil {
			q.eased = make(chan struct{})
		}
		eased := q.eased
		q.mu.Unlock()
		select {
		case <-eased:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q.mu.Lock()
	}
	q.load += weight
	q.mu.Unlock()
	return nil
}

// ease wakes who waits for room; under mu.
func (q *Sequence) ease() {
	if q.eased != nil {
		close(q.eased)
		q.eased = nil
	}
}

func (q *Sequence) free(weight int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.load -= weight
	q.ease()
}

// arrived steps the engine. What it delivers weighs until it is done; what it only holds, its own
// bounds hold.
func (q *Sequence) arrived(number uint64, payload []byte, weight int) {
	q.heard(true)
	before := len(q.loop.inbox)
	err := q.step(wsrm.Event{Kind: wsrm.Arrived, Number: number, Message: payload})
	if err != nil && !q.loop.dead {
		q.cfg.Log.Warn("message of a sequence refused", "uri", q.cfg.URI, "number", number, "err", err)
		q.abort(streamer.CloseProtocol,
			"a message of the sequence was refused") // it does not come again on this stream
	}
	delivered := 0
	for _, d := range q.loop.inbox[before:] {
		delivered += len(d.payload) + perMessage
	}
	q.free(weight - delivered)
}

// Acks takes what the peer says of the sequences. It is for [streamer.Config].Acks, and does
// not block: of what comes faster than it is taken in, the last counts.
func (q *Sequence) Acks(octets []byte) {
	q.mu.Lock()
	first := len(q.acks) == 0
	if len(q.acks) == maxAcks {
		q.acks = q.acks[1:]
	}
	q.acks = append(q.acks, octets)
	q.mu.Unlock()
	if first {
		q.do(q.takeAcks)
	}
}

func (q *Sequence) takeAcks() {
	q.mu.Lock()
	list := q.acks
	q.acks = nil
	q.mu.Unlock()
	q.heard(false)
	defer q.meet()
	for _, octets := range list {
		if err := q.step(wsrm.Event{Kind: wsrm.Heard, Message: octets}); err != nil {
			q.cfg.Log.Debug("acknowledgement of a sequence refused", "uri", q.cfg.URI, "err", err)
			q.outdated(err)
		}
	}
}

// outdated ends the sequence if the peer acknowledges what was never sent: an earlier process with
// a newer store has sent it.
func (q *Sequence) outdated(refused error) {
	if q.cfg.Assurance == wsrm.AtMostOnce || !errors.Is(refused, numbers.Fault(numbers.Invalid)) {
		return
	}
	err := &Error{Code: Outdated, Err: fmt.Errorf("%s: %w", q.cfg.URI, refused)}
	q.fail(err, err)
}

// serve handles what was delivered, as far as it may be now.
func (q *Sequence) serve() {
	l := &q.loop
	if l.quitting || !l.retryAt.IsZero() && q.cfg.Clock.Now().Before(l.retryAt) {
		return
	}
	l.retryAt = time.Time{}
	var begin []deliveredMessage
	for len(l.inbox) > 0 && !l.dead {
		d := l.inbox[0]
		m, p, err := q.delivered(d)
		most := maxHandlers
		if q.cfg.Ordered {
			most = 1
		}
		switch {
		case q.abandoned(d.number) && p.Answers == 0: // a reply that is here is of use
			q.free(len(d.payload) + perMessage)
		case err != nil || p.Answers == 0 && q.cfg.Handler == nil:
			q.commit(d, nil)
		case p.Answers != 0:
			q.replied(d, m, p)
		case l.running+len(begin) >= most, q.cfg.Ordered && l.running+len(begin) > 0:
			q.begin(begin)
			return
		case q.cfg.Handler.Transactional(m):
			if !q.transact(d, m, p) {
				q.begin(begin)
				return
			}
		default:
			begin = append(begin, d)
		}
		l.inbox = l.inbox[1:]
	}
	q.begin(begin)
}

// commit is done with a message. The reply to one that the peer has given up is dropped.
func (q *Sequence) commit(d deliveredMessage, reply []byte) bool {
	if q.abandoned(d.number) {
		q.free(len(d.payload) + perMessage)
		return true
	}
	err := q.step(wsrm.Event{Kind: wsrm.Committed, Number: d.number, Message: reply})
	if errors.Is(err, wsrm.Full) {
		return false
	}
	if err != nil {
		q.cfg.Log.Warn("message of a sequence not committed", "uri", q.cfg.URI, "number", d.number, "err", err)
	}
	q.dropArrived(d.number)
	q.free(len(d.payload) + perMessage)
	return true
}

// replied is done with a reply, and hands it over once that is stored.
func (q *Sequence) replied(d deliveredMessage, m Stored, p streamer.Place) {
	if q.cfg.Assurance == wsrm.AtMostOnce && q.loop.sent[p.Answers] == nil && !q.abandoned(d.number) {
		q.loop.tooLate++
	}
	q.parts.forget(d.number) // its body is dropped when it is read
	q.commit(d, nil)
	q.loop.after = append(q.loop.after, func() {
		var err error
		q.handOver(d.number, m)
		if p.Unknown {
			err = &Error{Code: FateUnknown, Err: errors.New("the peer died while it was handled")}
		}
		s := q.loop.sent[p.Answers]
		waits := s != nil && !s.settled && !s.late
		q.settle(p.Answers, m, err)
		switch {
		case (s == nil || s.late && err == nil) && q.cfg.Late != nil && q.cfg.Assurance != wsrm.AtMostOnce:
			q.cfg.Late(p.Answers, m, err)
		case !waits && m.Long != nil:
			q.wait.Go(m.Long.read)
		}
	})
}

// transact has a message handled in a transaction; false: not now.
func (q *Sequence) transact(d deliveredMessage, m Stored, p streamer.Place) bool {
	l := &q.loop
	failed, prepared := false, Stored{}
	actions, err := q.engine.Deliver(q.ctx, q.cfg.Clock.Now(), wsrm.Action{Number: d.number, Message: d.payload},
		handlerFunc(func(ctx context.Context, tx *wsrm.Tx) ([]byte, error) {
			reply, err := q.cfg.Handler.Transact(ctx, tx, m)
			if err == nil {
				prepared, err = q.prepareReply(ctx, reply, p.Wanted)
			}
			if failed = err != nil; failed || !p.Wanted {
				return nil, err
			}
			return encode(prepared, streamer.Place{Answers: d.number}), nil
		}))
	q.sentReply(prepared, err)
	if err := q.act(actions, err); err != nil {
		if failed && q.ctx.Err() == nil {
			q.cfg.Log.Warn("message of a sequence not handled yet", "uri", q.cfg.URI, "number", d.number, "err", err)
		}
		if !errors.Is(err, wsrm.Full) {
			l.retryAt = q.cfg.Clock.Now().Add(retryAfter)
		}
		return false
	}
	q.dropArrived(d.number)
	q.free(len(d.payload) + perMessage)
	return true
}

type handlerFunc func(ctx context.Context, tx *wsrm.Tx) ([]byte, error)

func (f handlerFunc) Deliver(ctx context.Context, tx *wsrm.Tx, _ []byte) ([]byte, error) {
	return f(ctx, tx)
}

// begin runs handlers without a transaction, once it is stored that they run.
func (q *Sequence) begin(list []deliveredMessage) {
	if len(list) == 0 || q.loop.dead {
		return
	}
	if q.cfg.Assurance == wsrm.ExactlyOnce {
		numbers := make([]uint64, len(list))
		for i, d := range list {
			numbers[i] = d.number
		}
		actions, err := q.engine.Begin(context.WithoutCancel(q.ctx), q.cfg.Clock.Now(), numbers...)
		if q.act(actions, err) != nil {
			return
		}
	}
	for _, d := range list {
		q.loop.running++
		q.wait.Go(func() { q.handle(d) })
	}
}

// handle runs the handler of one message, in a goroutine of its own.
func (q *Sequence) handle(d deliveredMessage) {
	m, p, _ := q.delivered(d)
	reply := q.cfg.Handler.Handle(q.ctx, m)
	prepared, err := q.prepareReply(q.ctx, reply, p.Wanted)
	if err != nil {
		q.cfg.Log.Warn("reply of a sequence not stored", "uri", q.cfg.URI, "number", d.number, "err", err)
		prepared = q.cfg.Broken
	}
	cut := q.ctx.Err() != nil
	if cut {
		q.Discard(prepared)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.events = append(q.events, func() {
		q.loop.running--
		if cut {
			return // what it did before it was told to end, nobody knows
		}
		q.loop.answers = append(q.loop.answers, pendingReply{answers: d.number, commits: true, message: prepared,
			wanted: p.Wanted, octets: len(d.payload)})
	})
	q.poke()
}

// answer has the engine take an answer; false: there is no room yet.
func (q *Sequence) answer(a pendingReply) bool {
	payload := encode(a.message, streamer.Place{Answers: a.answers, Unknown: a.unknown})
	if a.commits {
		if !a.wanted {
			payload = nil
		}
		if !q.commit(deliveredMessage{number: a.answers, payload: make([]byte, a.octets)}, payload) {
			return false
		}
		q.sentReply(a.message, nil)
		return true
	}
	return !errors.Is(q.step(wsrm.Event{Kind: wsrm.Send, Message: payload}), &wsrm.Error{Code: wsrm.Full})
}

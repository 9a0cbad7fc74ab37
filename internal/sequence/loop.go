package sequence

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// loop is what the driver alone knows.
type loop struct {
	sent    map[uint64]*Sending // accepted, and not settled
	doneTo  uint64              // the peer is done with all up to there
	outbox  []*Sending          // not accepted yet
	answers []pendingReply      // not accepted yet
	inbox   []deliveredMessage  // delivered, and not handled
	running int                 // handlers
	idle    []chan struct{}     // closed when none runs
	link    *streamLink
	// kept is what the peer has of long messages, as it said last; nil: it never said that it takes
	// any. It may have come before its stream is attached. What is out of date says too little.
	kept     map[uint64]uint64
	bodies   map[uint64]string // of long replies that are accepted, and not done
	timer    clock.Timer
	due      time.Time     // what the timer is set to; zero: it is not
	engine   time.Time     // when the engine wants to be woken; zero: not
	askAt    time.Time     // when the peer is asked for a sign of life, if something is waited for
	patience time.Duration // until the next asking
	retryAt  time.Time     // when the inbox is looked at again after a failure; zero: it may be now
	fresh    []*Sending    // accepted, and not stored
	after    []func()      // what is to be done once the state is stored
	finish   bool          // nothing more is sent behind what waits
	ending   bool          // Close is stepped
	tooLate  int64         // replies to messages that at-most-once gave up
	remote   bool          // the peer's sequence ended
	dead     bool          // the state is broken
	over     bool          // both sequences ended
	quitting bool          // nothing more is handled
}

// do has the driver call f; false: it never will.
func (q *Sequence) do(f func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.doLocked(f)
}

func (q *Sequence) doLocked(f func()) bool {
	if q.closed {
		return false
	}
	q.events = append(q.events, f)
	q.poke()
	return true
}

func (q *Sequence) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run is the driver.
func (q *Sequence) run() {
	defer close(q.ended)
	l := &q.loop
	l.timer = q.cfg.Clock.NewTimer(time.Hour)
	defer l.timer.Stop()
	l.adopt(q.engine)
	// What a crash left unknown is told by the first step, and answered before that is stored.
	_ = q.step(wsrm.Event{Kind: wsrm.Disconnected})
	if l.over = q.engine.Over(); l.over {
		q.fail(errOver, errEnded)
	}
	for quit := false; !quit; {
		q.turn()
		select {
		case <-q.wake:
		case <-l.timer.C():
			l.due = time.Time{}
		case <-q.quit:
			quit = true
		}
	}
	q.settleAll()
}

// adopt expects the acknowledgements of what an earlier process sent.
func (l *loop) adopt(e *wsrm.Engine) {
	l.doneTo, l.remote = e.Last(), e.RemoteEnded()
	e.Undone(func(number uint64, payload []byte, _ bool) bool {
		l.doneTo = min(l.doneTo, number-1)
		_, p, _ := decode(payload) // what is in the store was encoded here
		s := newSending(payload, p.Wanted)
		s.kept, s.late = true, true
		close(s.stored)
		l.sent[number] = s
		return true
	})
}

// turn lets happen what came up, stores it, and then lets it be seen.
func (q *Sequence) turn() {
	l := &q.loop
	defer l.rest()
	q.mu.Lock()
	events := q.events
	q.events = nil
	q.mu.Unlock()
	for _, f := range events {
		f()
	}
	if l.dead {
		return
	}
	q.send()
	q.serve()
	q.finish()
	q.ask()
	if q.runs.on {
		q.engine.SetEffect(q.runs.append(nil))
	}
	_ = q.step(wsrm.Event{Kind: wsrm.Wake})
	if l.dead {
		return
	}
	for _, s := range l.fresh {
		s.keep()
	}
	l.fresh = l.fresh[:0]
	after := l.after
	l.after = nil
	for _, f := range after {
		f()
	}
	q.alarm()
}

// rest tells who waits for it that no handler runs.
func (l *loop) rest() {
	if l.running > 0 {
		return
	}
	for _, idle := range l.idle {
		close(idle)
	}
	l.idle = nil
}

// heard notes a sign of life, and news if it brought some: an end that only answers when asked is
// asked less often.
func (q *Sequence) heard(news bool) {
	l := &q.loop
	if news {
		l.patience = askAfter
	}
	l.askAt = q.cfg.Clock.Now().Add(l.patience)
}

// waits reports whether the peer has something to say.
func (l *loop) waits() bool { return l.link != nil && (len(l.sent) > 0 || l.ending && !l.over) }

// ask asks for a sign of life when there was none for long.
func (q *Sequence) ask() {
	l := &q.loop
	if now := q.cfg.Clock.Now(); l.waits() && !now.Before(l.askAt) {
		_ = q.step(wsrm.Event{Kind: wsrm.Ask}) // refused if both sequences have ended
		l.patience = min(2*l.patience, maxAskAfter)
		l.askAt = now.Add(l.patience)
	}
}

// step steps the engine and does what it wants.
func (q *Sequence) step(ev wsrm.Event) error {
	if q.loop.dead {
		return errDead
	}
	actions, err := q.engine.Step(context.WithoutCancel(q.ctx), q.cfg.Clock.Now(), ev)
	if err == nil && (ev.Kind == wsrm.Arrived || ev.Kind == wsrm.Heard || ev.Kind == wsrm.Disconnected ||
		ev.Kind == wsrm.Wake) {
		q.note() // before anybody is told: whoever asks then finds it counted
	}
	return q.act(actions, err)
}

var (
	errDead   = &Error{Code: Unstored}
	errEnded  = &Error{Code: Unsent, Err: errors.New("the sequence is over")}
	errClosed = &Error{Code: Unsent, Err: errors.New("the sequence was closed here")}
	errTaken  = &Error{Code: FateUnknown, Err: errors.New("the stream that it was sent on ended")}
	errOver   = &Error{Code: FateUnknown, Err: errors.New("a reply did not come before the sequence ended")}
)

// act does what an engine wants, and gives up if its state could not be stored.
func (q *Sequence) act(actions []wsrm.Action, err error) error {
	l := &q.loop
	if errors.Is(err, wsrm.Unstored) {
		q.cfg.Log.Error("state of a sequence not stored", "uri", q.cfg.URI, "err", err)
		l.dead = true
		q.abort(streamer.CloseInternal, storeFailed)
		q.fail(&Error{Code: Unstored, Err: err}, &Error{Code: Unstored, Err: err})
		return err
	}
	for _, a := range actions {
		switch a.Kind {
		case wsrm.Transmit, wsrm.Say:
			if l.link != nil {
				l.link.queue(a)
			}
		case wsrm.WakeAt:
			l.engine = a.At
		case wsrm.Deliver:
			l.inbox = append(l.inbox, deliveredMessage{number: a.Number, payload: slices.Clone(a.Message)})
		case wsrm.Acknowledged:
			if l.link != nil {
				l.link.settled(a.Number)
			}
			q.runs.settled(a.Number)
			q.dropReplies(a.Number)
			for ; l.doneTo < a.Number; l.doneTo++ {
				q.acknowledged(l.doneTo + 1)
			}
		case wsrm.Unknown:
			if !a.Remote {
				q.runs.settled(a.Number + a.Count - 1)
			}
			for n := a.Number; n < a.Number+a.Count; n++ {
				if a.Remote {
					l.answers = append(l.answers, pendingReply{answers: n, unknown: true})
				} else {
					q.settle(n, Stored{}, &Error{Code: FateUnknown,
						Err: errors.New("the sequence ended before it was known to be done")})
				}
			}
		case wsrm.Unsent:
			q.runs.drop(a.Number)
			for n := a.Number; n < a.Number+a.Count; n++ {
				q.settle(n, Stored{}, &Error{Code: Unsent, Err: errors.New("the sequence ended before it was sent")})
			}
		case wsrm.Ended:
			q.end(a)
		case wsrm.Lost:
			for n := a.Number; n < a.Number+a.Count; n++ {
				q.taken(n)
			}
		}
	}
	return err
}

// note keeps what Status tells: what is stored, and what the peer said.
func (q *Sequence) note() {
	e := q.engine
	accepted, done, received := e.Positions()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.status = Status{Accepted: accepted, Done: done, Received: received, Resent: e.Resent(),
		GivenUp: e.GivenUp() + q.loop.tooLate, Closed: e.Closed(), Over: e.Over()}
}

// alarm sets the timer to what comes first.
func (q *Sequence) alarm() {
	l := &q.loop
	at := l.engine
	if !l.retryAt.IsZero() && (at.IsZero() || l.retryAt.Before(at)) {
		at = l.retryAt
	}
	if l.waits() && (at.IsZero() || l.askAt.Before(at)) {
		at = l.askAt
	}
	if at.IsZero() || at.Equal(l.due) {
		return
	}
	l.due = at
	if !l.timer.Stop() {
		select {
		case <-l.timer.C():
		default:
		}
	}
	l.timer.Reset(max(at.Sub(q.cfg.Clock.Now()), 0))
}

package sequence

import (
	"errors"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/wsrm"
)

// finish closes the sequence of this end behind what waits, if that is wanted, or if the peer
// sends nothing more that could be answered.
func (q *Sequence) finish() {
	l := &q.loop
	if !l.finish && !l.remote || l.ending || l.running > 0 || len(l.inbox) > 0 || len(l.outbox) > 0 ||
		len(l.answers) > 0 {
		return
	}
	l.ending = true
	_ = q.step(wsrm.Event{Kind: wsrm.Close}) // refused if an earlier process has closed it
}

// end notes the end of a sequence.
func (q *Sequence) end(a wsrm.Action) {
	l := &q.loop
	if a.Remote {
		l.remote = true
	}
	if a.Reason != wsrm.Complete {
		q.cfg.Log.Warn("a sequence ended before its time", "uri", q.cfg.URI, "remote", a.Remote, "why",
			a.Reason.String())
	}
	if l.over = q.engine.Over(); l.over || a.Reason == wsrm.Unrecognized {
		l.after = append(l.after, func() { q.fail(errOver, errEnded) })
	}
}

// lose is [Sequence.Lose].
func (q *Sequence) lose(again bool) (list []*Sending) {
	l := &q.loop
	if l.dead {
		return nil
	}
	first := q.engine.Last() + 1
	q.engine.Undone(func(n uint64, m []byte, sent bool) bool {
		s := l.sent[n]
		switch {
		case s != nil && !s.settled && (again || !sent):
			first = min(first, n)
			list = append(list, s)
			delete(l.sent, n)
		case len(list) > 0:
			last := list[len(list)-1]
			last.behind = append(last.behind, m)
		}
		return true
	})
	q.runs.drop(first)
	_ = q.step(wsrm.Event{Kind: wsrm.Abort})
	list = append(list, l.outbox...)
	l.outbox = nil
	q.fail(&Error{Code: FateUnknown, Err: errors.New("the peer knows nothing of the sequence")}, errEnded)
	return list
}

// fail settles all that waits with err, and lets nothing more be sent: that is then the error for
// others.
func (q *Sequence) fail(err, others *Error) {
	l := &q.loop
	q.mu.Lock()
	first := q.broken == nil
	if first {
		q.broken, q.why = others, err
	}
	q.mu.Unlock()
	for _, n := range slices.Sorted(maps.Keys(l.sent)) {
		q.settle(n, Stored{}, err)
	}
	for _, s := range l.outbox {
		q.refuse(s, &Error{Code: Unsent, Err: err})
	}
	l.outbox = nil
	if first {
		close(q.over)
	}
}

// settleAll is the end of the driver: whoever waits is told that the sequence goes on another time.
func (q *Sequence) settleAll() {
	l := &q.loop
	grace := q.cfg.Clock.AfterFunc(closeGrace, q.cancel)
	defer grace.Stop()
	l.quitting = true
	for l.running > 0 {
		<-q.wake
		q.turn()
	}
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.turn() // what came up meanwhile
	q.detach(l.link)
	q.cancel()
	kept := &Error{Code: Kept}
	if q.cfg.Assurance == wsrm.AtMostOnce {
		kept = errClosed // what was sent is settled
	}
	for _, n := range slices.Sorted(maps.Keys(l.sent)) {
		if l.sent[n].answered { // nobody handles the reply any more
			q.settle(n, Stored{}, errTaken)
			continue
		}
		q.settle(n, Stored{}, kept)
	}
	for _, s := range l.outbox {
		q.refuse(s, errClosed)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.broken == nil {
		q.broken, q.why = errClosed, kept
		close(q.over)
	}
	q.ease()
}

// Abandon settles messages that a sequence handed over and no other takes: those that were accepted
// have an unknown fate.
func Abandon(list []*Sending) {
	for _, s := range list {
		code := Unsent
		if s.Accepted() {
			code = FateUnknown
		}
		s.settled, s.err = true, &Error{Code: code,
			Err: errors.New("the peer lost the sequence, and no other could be begun")}
		close(s.done)
		s.keep()
	}
}

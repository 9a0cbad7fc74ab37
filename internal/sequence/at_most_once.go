package sequence

import (
	"errors"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// post is a message that a stream was handed.
type post struct {
	number uint64
	posted *streamer.Posted
}

// abandon is the end of a stream under at-most-once: what it took along, messages and replies, has
// an unknown fate. What it did not write, and what is here already, is none of that.
func (q *Sequence) abandon(l *streamLink) {
	q.answered()
	_ = q.step(wsrm.Event{Kind: wsrm.Disconnected, Number: l.stop()}) // never refused
	for _, n := range slices.Sorted(maps.Keys(q.loop.sent)) {
		if q.loop.sent[n].acked { // the peer is done with it, and the reply is lost
			q.taken(n)
		}
	}
}

// answered notes whose reply is here, and will be handed over.
func (q *Sequence) answered() {
	if q.loop.quitting {
		return
	}
	for _, d := range q.loop.inbox {
		if _, p, err := decode(d.payload); err == nil && q.loop.sent[p.Answers] != nil {
			q.loop.sent[p.Answers].answered = true
		}
	}
}

// taken settles a message that a stream took along, or the reply to it.
func (q *Sequence) taken(number uint64) {
	if s := q.loop.sent[number]; s != nil && !s.answered {
		q.settle(number, Stored{}, errTaken)
	}
}

// abandoned reports whether the peer has given up a message that was delivered and is not done,
// as at-most-once does when a stream ends.
func (q *Sequence) abandoned(number uint64) bool {
	_, _, done := q.engine.Positions()
	return q.cfg.Assurance == wsrm.AtMostOnce && number <= done
}

// handed notes what became of handing a message to the stream.
func (l *streamLink) handed(number uint64, posted *streamer.Posted, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.posted = append(l.posted, post{number, posted})
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}) && l.taken == number:
		l.taken--
	}
}

// settled forgets what is done.
func (l *streamLink) settled(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.posted) > 0 && l.posted[0].number <= to {
		l.posted = l.posted[1:]
	}
}

// stop hands the stream nothing more, and gives the number from which on it has written nothing.
func (l *streamLink) stop() uint64 {
	select {
	case <-l.stream.Done():
		<-l.idle // which is at once
	default: // it hangs, and may have written anything
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.units = nil
	from := l.taken + 1
	for i := len(l.posted) - 1; i >= 0 && l.posted[i].number == from-1 &&
		errors.Is(l.posted[i].posted.Err(), &streamer.Error{Code: streamer.Unsent}); i-- {
		from--
	}
	return from
}

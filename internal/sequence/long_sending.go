package sequence

import (
	"context"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Kept takes what the peer has of long messages. It is for [streamer.Config].Kept, and does not
// block.
func (q *Sequence) Kept(parts []streamer.KeptPart) {
	kept := make(map[uint64]uint64, len(parts))
	for _, p := range parts {
		kept[p.Number] = p.Octets
	}
	q.do(func() { q.loop.kept = kept })
}

// meet notes that the peer was heard on the stream at hand.
func (q *Sequence) meet() {
	l := q.loop.link
	if l == nil || l.isMet() {
		return
	}
	l.kept = q.loop.kept
	close(l.met)
}

func (l *streamLink) isMet() bool {
	select {
	case <-l.met:
		return true
	default:
		return false
	}
}

// takes tells why the peer does not take a long message over this stream; nil if it does. It has
// been heard.
func (l *streamLink) takes(m Stored) error {
	if l.kept == nil {
		return &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes, and the peer takes %d: it has a version without "+
			"long messages, or takes none", m.Long.length, MaxMessage)}
	}
	if n, most := uint64(m.Long.length)+uint64(len(m.Head)), l.stream.Hello().Limits.MaxMessage; n > most {
		return &Error{Code: TooLarge, Err: fmt.Errorf("%d bytes, and the peer takes %d", n, most)}
	}
	return nil
}

// mayBeLong refuses a long message that the peer does not take, as far as it can be asked.
func (q *Sequence) mayBeLong(ctx context.Context, m Stored) error {
	l := q.last()
	if m.Long == nil || l == nil {
		return nil // it is kept until the peer can be asked
	}
	select {
	case <-l.met:
		return l.takes(m)
	case <-l.stream.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refusesLong reports whether the peer has been heard, and does not take a long reply.
func (q *Sequence) refusesLong(m Stored) bool {
	l := q.last()
	return m.Long != nil && l != nil && l.isMet() && l.takes(m) != nil
}

// last is the last stream; nil if there was none.
func (q *Sequence) last() *streamLink {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.linked
}

// postLong sends what the peer does not have of a long message.
func (l *streamLink) postLong(q *Sequence, m Stored, place streamer.Place) error {
	select {
	case <-l.met:
	case <-l.stream.Done():
		return nil
	case <-q.ctx.Done():
		return nil
	}
	select {
	case l.long <- struct{}{}:
		defer func() { <-l.long }()
	case <-l.stream.Done():
		return nil
	case <-q.ctx.Done():
		return nil
	}
	if q.hasArrived(place.Number) {
		return nil
	}
	if err := l.takes(m); err != nil {
		return err
	}
	m.Long.in = q.sent
	place.Length, place.From = uint64(m.Long.length), min(l.kept[place.Number], uint64(m.Long.length))
	out := &streamer.Message{
		Head: m.Head, Body: m.Long.Open(q.ctx, int64(place.From)),
		Length: m.Long.length - int64(place.From), Place: place,
	}
	_, err := l.stream.Lane(0).Post(q.ctx, out)
	if errors.Is(err, pieces.ErrGap) && q.hasArrived(place.Number) {
		return nil // it was done meanwhile, and dropped
	}
	return err
}

// hasArrived reports whether the peer has said that it has a message.
func (q *Sequence) hasArrived(number uint64) (has bool) {
	asked := make(chan struct{})
	if !q.do(func() {
		_, done, _ := q.engine.Positions()
		has = number <= done || q.engine.HasArrived(number)
		close(asked)
	}) {
		return true // nothing is sent any more
	}
	select {
	case <-asked:
		return has
	case <-q.ended:
		return true
	}
}

package streamer

import (
	"context"
	"errors"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Posted is a one-way message that was queued. Its method may be called at any time, concurrently.
type Posted struct {
	s   *Stream
	out *outgoing
}

// Post sends a one-way message as [Lane.Send] does, and tells later what became of it. One that the other end refuses on a lane where messages have a [Place] breaks the stream, with what was said: no sequence can
// do without it.
func (l *Lane) Post(ctx context.Context, m *Message) (*Posted, error) {
	out := &outgoing{lane: l, oneway: true, claim: &claim{}, place: m.Place}
	if m.Place.Number != 0 {
		l.s.mu.Lock()
		l.placed = true
		l.s.mu.Unlock()
	}
	if err := l.enter(ctx, out, m, false); err != nil {
		return nil, err
	}
	if err := out.send(ctx, m); err != nil {
		return nil, err
	}
	return &Posted{l.s, out}, nil
}

// Err is what is known against the message, nil if nothing is. It is final once the stream is over (see [Stream.Done]); nil then means that the other end has read all of the message and
// refused none of it; whether it was processed is not told. Errors are *[Error]: [Unsent], if nothing of it was written; with Remote what the other end said; [FateUnknown] if it was written
// to a stream that broke, or that the other end closed first: then it may have arrived or not.
func (p *Posted) Err() error {
	s, out := p.s, p.out
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.dropped != nil {
		return out.dropped
	}
	if e := s.refusals[out.key]; e != nil && out.begun {
		return e
	}
	select {
	case <-s.done:
	default:
		return nil
	}
	switch {
	case !out.begun:
		return s.overLocked(Unsent)
	case !out.whole || s.err != nil || !s.readAll:
		return s.overLocked(FateUnknown)
	case s.refusedMore:
		return &Error{Code: FateUnknown, Err: errors.New("too many messages were refused to tell which")}
	}
	return nil
}

// refusedLocked takes note of a refusal of a message that is whole and wants no reply.
func (s *Stream) refusedLocked(key frame.Key, e *Error) {
	l := s.lanes[key.Lane]
	switch {
	case l == nil || key.Exchange == 0 || key.Exchange > l.last:
	case len(s.refusals) >= maxRefusals:
		s.refusedMore = true
	default:
		if s.refusals == nil {
			s.refusals = map[frame.Key]*Error{}
		}
		s.refusals[key] = e
	}
}

package streamer

import (
	"context"
	"errors"
)

// Posted is a one-way message that was queued. Its method may be called at any time, concurrently.
type Posted struct {
	s   *Stream
	out *outbound
}

// Post sends a one-way message as [Lane.Send] does, and tells later what became of it. One that the
// peer refuses on a lane where messages have a [Place] breaks the stream, with what was said: no
// sequence can do without it.
func (l *Lane) Post(ctx context.Context, m *Message) (*Posted, error) {
	out, err := l.post(ctx, m, true)
	if err != nil {
		return nil, err
	}
	return &Posted{l.s, out}, nil
}

// post sends a one-way message. kept: somebody wants to know what became of it.
func (l *Lane) post(ctx context.Context, m *Message, kept bool) (*outbound, error) {
	out := newOutbound(1, kept)
	out.holds.Store(1)
	out.message.OneWay, out.message.Place = true, m.Place
	if m.Place.Number != 0 {
		e := &l.s.exchanges
		e.mu.Lock()
		l.placed = true
		e.mu.Unlock()
	}
	if err := l.admit(ctx, out); err != nil {
		closeBody(m.Body)
		return nil, err
	}
	if err := l.s.sendAll(ctx, out, m, false); err != nil {
		return nil, err
	}
	return out, nil
}

// Err is what is known against the message, nil if nothing is. It is final once the stream is over
// (see [Stream.Done]); nil then means that the peer has read all of the message and refused none of
// it; whether it was processed is not told. Errors are *[Error]: [Unsent], if nothing of it was
// written; with Remote what the peer said; [FateUnknown] if it was written to a stream that broke,
// or that the peer closed first: then it may have arrived or not.
func (p *Posted) Err() error {
	s, out := p.s, p.out
	q, e := s.queue, &s.exchanges
	e.mu.Lock()
	defer e.mu.Unlock()
	q.mu.Lock()
	dropped, begun, whole, key := out.dropped, out.begun, out.whole, out.message.Key
	q.mu.Unlock()
	if dropped != nil {
		return dropped
	}
	if refused := e.refusals[key]; refused != nil && begun {
		return refused
	}
	if !s.Over() {
		return nil
	}
	why := s.ending.failure()
	switch {
	case !begun:
		return why.took(Unsent)
	case !whole || why != nil || !e.readAll:
		return why.took(FateUnknown)
	case e.forgot:
		return &Error{Code: FateUnknown, Err: errors.New("too many messages were refused to tell which")}
	}
	return nil
}

// Send sends a one-way message. It returns when the message is queued as a whole, and waits and
// fails as [Lane.Call] does. It is not known whether the message was processed; [Lane.Post] reports
// whether it arrived.
func (l *Lane) Send(ctx context.Context, m *Message) error {
	_, err := l.post(ctx, m, false)
	return err
}

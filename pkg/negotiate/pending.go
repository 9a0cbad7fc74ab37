package negotiate

import (
	"context"
	"io"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Pending is a request on its way, whose reply is not there yet.
type Pending struct {
	s      *Session
	head   []byte
	body   *kept
	stream *streamer.Pending // nil: plain SOAP
	plain  chan outcome
}

type outcome struct {
	reply *streamer.Message
	err   error
}

// Begin sends a request and leaves its reply to [Pending.Reply], which must be called. On a stream, requests that one goroutine begins leave in that order; in plain
// SOAP each has a connection of its own or waits for one, and there is no order. The rest is as with [Session.Call].
func (s *Session) Begin(ctx context.Context, m *streamer.Message) (*Pending, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	p := &Pending{s: s, head: m.Head, body: keep(m.Body)}
	if !s.streaming() {
		p.post(ctx, m.Body)
		return p, nil
	}
	head, err := s.implicit.forWire(m.Head)
	if err != nil {
		return nil, err
	}
	p.stream, err = s.lane.Begin(ctx, &streamer.Message{Head: head, Body: p.body.reader()})
	unsent, failure := s.judge(ctx, err)
	switch {
	case failure != nil:
		p.body.release()
		return nil, failure
	case unsent:
		return p, p.again(ctx, err)
	}
	return p, nil
}

// post sends the request as plain SOAP.
func (p *Pending) post(ctx context.Context, body io.Reader) {
	m := &streamer.Message{Head: p.head, Body: body}
	p.stream, p.plain = nil, make(chan outcome, 1)
	go func() {
		reply, err := p.s.post(ctx, m)
		p.plain <- outcome{reply, err}
	}()
}

// again sends a request that the stream did not carry as plain SOAP.
func (p *Pending) again(ctx context.Context, cause error) error {
	body, ok := p.body.again(ctx)
	if !ok {
		return &Error{Code: Unsent, At: -1, Err: cause}
	}
	p.post(ctx, body)
	return nil
}

// Reply waits for the first octets of the reply; see [Session.Call].
func (p *Pending) Reply(ctx context.Context) (*streamer.Message, error) {
	if p.stream != nil {
		reply, err := p.stream.Reply(ctx)
		unsent, failure := p.s.judge(ctx, err)
		if !unsent {
			p.body.release()
			return reply, failure
		}
		if err := p.again(ctx, err); err != nil {
			return nil, err
		}
	}
	o := <-p.plain // ends with the context that Begin got
	return o.reply, o.err
}

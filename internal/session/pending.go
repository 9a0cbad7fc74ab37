package session

import (
	"context"
	"io"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// PendingReply is a request in flight, whose reply has not arrived yet.
type PendingReply struct {
	s      *Session
	head   []byte
	body   httpmsg.KeptBody
	link   *sessionStream
	stream *streamer.Pending // nil: plain SOAP
	plain  chan outcome
	queued *sequence.Sending // with an assurance
}

type outcome struct {
	reply *streamer.Message
	err   error
}

// Begin sends a request and leaves its reply to [PendingReply.Reply], which must be called. On a
// stream, requests that one goroutine begins leave in that order. In plain SOAP each request has a
// connection of its own or waits for one, and there is no order. Otherwise it is like
// [Session.Call].
func (s *Session) Begin(ctx context.Context, m *streamer.Message) (*PendingReply, error) {
	p := &PendingReply{s: s, head: m.Head}
	if s.outbox != nil {
		var err error
		p.queued, err = s.enqueue(ctx, m, true)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
	if err := p.begin(ctx, m.Body); err != nil {
		return nil, err
	}
	return p, nil
}

// begin sends the request by the path there is.
func (p *PendingReply) begin(ctx context.Context, from io.Reader) error {
	for {
		l, err := p.s.current(ctx)
		if err != nil {
			_ = httpmsg.CloseReader(from)
			return err
		}
		if l == nil {
			p.post(ctx, from)
			return nil
		}
		head, err := p.s.headFor(l, p.head)
		if err != nil {
			_ = httpmsg.CloseReader(from)
			return err
		}
		p.link, p.body = l, httpmsg.Keep(from)
		p.stream, err = l.lane.Begin(ctx, &streamer.Message{Head: head, Body: p.body.Reader()})
		if err == nil {
			return nil
		}
		unsent, failure := p.s.judge(ctx, l, &p.body, err)
		if !unsent {
			p.body.Release()
			return failure
		}
		var ok bool
		if from, ok = p.body.Again(ctx); !ok {
			return coded(negotiate.Unsent, err)
		}
	}
}

// post sends the request as plain SOAP.
func (p *PendingReply) post(ctx context.Context, body io.Reader) {
	m := &streamer.Message{Head: p.head, Body: body}
	p.stream, p.plain = nil, make(chan outcome, 1)
	go func() {
		reply, err := p.s.post(ctx, m)
		p.plain <- outcome{reply, err}
	}()
}

// Reply waits for the first bytes of the reply; see [Session.Call].
func (p *PendingReply) Reply(ctx context.Context) (*streamer.Message, error) {
	if p.queued != nil {
		return p.s.replyTo(ctx, p.queued)
	}
	for p.stream != nil {
		reply, err := p.stream.Reply(ctx)
		unsent, failure := p.s.judge(ctx, p.link, &p.body, err)
		if !unsent {
			p.body.Release()
			return reply, failure
		}
		from, ok := p.body.Again(ctx)
		if !ok {
			return nil, coded(negotiate.Unsent, err)
		}
		if err := p.begin(ctx, from); err != nil {
			return nil, err
		}
	}
	o := <-p.plain // ends with the context that Begin got
	return o.reply, o.err
}

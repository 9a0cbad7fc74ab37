package soaprm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// heardAnswer is what a service answered to a request.
type heardAnswer struct {
	ReceivedReply
	isEnvelope bool
	body       soap.Name              // the first child of the Body
	at         *addressing.Properties // nil: it has none
	b          *header.Blocks         // nil: it says nothing of sequences
	more       bool                   // more messages wait for who polls
	refused    error                  // by the chain
}

// why is what such an answer says against a request.
func (a *heardAnswer) why() error {
	if a.refused != nil {
		return a.refused
	}
	if a.isEnvelope {
		if e, err := whole(a.Envelope); err == nil {
			if f, ok := e.Fault(); ok {
				return peerFault{f}
			}
		}
	}
	return fmt.Errorf("status %d", a.Status)
}

// post makes one request.
func (s *SequenceSource) post(ctx context.Context, action string, octets []byte) (*heardAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, bytes.NewReader(octets))
	if err != nil {
		return nil, err
	}
	fields, err := soap.RequestFields(s.cfg.SOAP, action)
	if err != nil {
		return nil, err
	}
	for name, values := range s.cfg.Fields {
		r.Header[name] = values
	}
	for _, f := range fields {
		r.Header[f.Name] = []string{f.Value} // with its case
	}
	response, err := s.cfg.Client.Do(r)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, headers.MaxMessage+1))
	if err == nil && len(body) > headers.MaxMessage {
		err = &Error{Code: TooLarge, Err: fmt.Errorf("a reply of more than %d bytes", headers.MaxMessage)}
	}
	if err != nil {
		return nil, err
	}
	return s.hear(&ReceivedReply{response.StatusCode, response.Header.Get("Content-Type"), body}), nil
}

// hear has the chain look at an answer.
func (s *SequenceSource) hear(reply *ReceivedReply) *heardAnswer {
	a := &heardAnswer{ReceivedReply: *reply}
	if soap.Recognize(reply.Envelope).Version == soap.None {
		return a
	}
	a.isEnvelope = true
	ctx, in, err := s.chain.In(s.ctx, reply.Envelope)
	if err != nil {
		a.refused = err
		return a
	}
	a.body, a.at, a.b, a.more = in.Body, addressing.Of(ctx), said(ctx), isPending(ctx)
	isProtocol := in.Body.Space == s.cfg.Version.Namespace()
	if isProtocol || in.Body.Local == "Fault" {
		if e, err := whole(reply.Envelope); err == nil {
			a.b = header.Parse(e)
		}
	}
	if !isProtocol {
		a.Envelope = in.Message
	}
	return a
}

// take takes in the answer to a request, that of t if it is not nil. acknowledged: the request said
// which replies came.
func (s *SequenceSource) take(a *heardAnswer, t *SentMessage, acknowledged bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	if acknowledged && a.Status < http.StatusBadRequest {
		s.ackDue = false
	}
	if a.refused != nil {
		if t != nil {
			s.settleLocked(t, nil, &Error{Code: Refused, Err: a.refused})
		}
		return a.refused
	}
	if a.b != nil {
		if err := s.protocolLocked(a, t != nil); err != nil {
			return err
		}
	}
	if a.isEnvelope {
		s.heard = s.cfg.Clock.Now()
	}
	if err := s.replyLocked(a, t); err != nil {
		return err
	}
	err := s.stepLocked(wsrm.Event{Kind: wsrm.Wake})
	if err == nil && !a.isEnvelope && a.Status >= http.StatusBadRequest {
		return fmt.Errorf("status %d", a.Status)
	}
	return err
}

// protocolLocked takes in what an answer says of sequences; toMessage: it answers a message in one.
func (s *SequenceSource) protocolLocked(a *heardAnswer, toMessage bool) error {
	for i := range a.b.Acknowledgements {
		ack := &a.b.Acknowledgements[i]
		if ack.Sequence != s.record.Identifier {
			continue
		}
		s.heard = s.cfg.Clock.Now()
		err := s.stepLocked(wsrm.Acknowledgement(ack.Ranges, ack.Nacks, false))
		if errors.Is(err, wsrm.Refused) {
			s.cfg.Log.Warn("the service acknowledges what was never sent",
				"sequence", ack.Sequence, "ranges", ack.Ranges)
			s.complain(neverSent, acknowledgementBlock(s.record.Version, *ack))
			continue
		}
		if err != nil {
			return err
		}
	}
	for _, block := range a.b.Invalid {
		if identifierOf(block) == s.record.Identifier {
			s.cfg.Log.Warn("the service acknowledges against the rules", "rule", brokenRule(a.b))
			s.complain(brokenRule(a.b), block)
		}
	}
	switch a.b.Fault {
	case unknownSequence, sequenceTerminated, sequenceClosed, lastExceeded:
		if toMessage { // what answers an acknowledgement is about the sequence of replies
			return s.lostLocked(a)
		}
	case "":
	default:
		s.cfg.Log.Warn("fault of the service", "fault", a.b.Fault)
	}
	return nil
}

// lostLocked is the end of a sequence that the service does not take messages of any more.
func (s *SequenceSource) lostLocked(a *heardAnswer) error {
	why := a.why()
	s.cfg.Log.Warn("the sequence is lost", "sequence", s.record.Identifier, "err", why)
	s.broken = &Error{Code: Unsent, Err: fmt.Errorf("the sequence is lost: %w", why)}
	if err := s.stepLocked(wsrm.Acknowledgement(nil, nil, true)); err != nil {
		return err
	}
	for _, t := range s.sent { // acknowledged, and without a reply
		s.settleLocked(t, nil, &Error{Code: ReplyLost, Err: why})
	}
	return s.forget(context.WithoutCancel(s.ctx))
}

// complain tells the service of an acknowledgement that cannot be (1.1, section 4.4).
func (s *SequenceSource) complain(why string, block soap.Element) {
	v := s.cfg.Version
	r := invalidAcknowledgement(s.cfg.SOAP, v, why, block)
	p := s.properties(v.faultAction(s.cfg.Addressing))
	e := r.Fault.Envelope(s.cfg.SOAP)
	e.Header = append(append(p.Blocks(), r.Blocks...), e.Header...)
	octets, err := soap.Build(e)
	if err != nil {
		return
	}
	s.goLocked(func() { _, _ = s.post(s.ctx, p.Action, octets) })
}

// replyLocked takes in the reply in an answer, if there is one.
func (s *SequenceSource) replyLocked(a *heardAnswer, t *SentMessage) error {
	isProtocol := a.body.Space == s.cfg.Version.Namespace() || a.body.Local == "" || a.b != nil && a.b.Fault != ""
	if !a.isEnvelope || isProtocol {
		return nil
	}
	to := t
	if a.at != nil && a.at.RelatesTo != "" && (t == nil || t.id != a.at.RelatesTo) {
		to = s.byIDLocked(a.at.RelatesTo)
	}
	if a.b == nil || a.b.Number == 0 || a.b.Sequence != s.record.Offered {
		if to != nil {
			s.settleLocked(to, &a.ReceivedReply, nil)
		}
		return nil
	}
	if err := s.stepLocked(wsrm.Event{Kind: wsrm.Arrived, Number: a.b.Number, Message: nil}); err != nil {
		return err
	}
	for _, d := range s.inbox {
		if err := s.stepLocked(wsrm.Event{Kind: wsrm.Committed, Number: d.number}); err != nil {
			return err
		}
	}
	s.inbox = s.inbox[:0]
	s.dueLocked()
	if to != nil {
		s.settleLocked(to, &a.ReceivedReply, nil)
	}
	return nil
}

func (s *SequenceSource) byIDLocked(id string) *SentMessage {
	for _, t := range s.sent {
		if t.id == id {
			return t
		}
	}
	return nil
}

// dueLocked has the replies acknowledged in a while, if no request does it first.
func (s *SequenceSource) dueLocked() {
	s.ackDue, s.ackFrom = true, s.cfg.Clock.Now().Add(s.cfg.AckDelay)
	if !s.acking {
		s.acking = true
		s.goLocked(s.acknowledgeLater)
	}
}

// acknowledgeLater acknowledges replies when no other came for a while.
func (s *SequenceSource) acknowledgeLater() {
	for {
		s.mu.Lock()
		wait := s.ackFrom.Sub(s.cfg.Clock.Now())
		s.acking = wait > 0
		s.mu.Unlock()
		if wait <= 0 {
			break
		}
		if s.cfg.Clock.Sleep(s.ctx, wait) != nil {
			return
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.MaxResend)
	defer cancel()
	_ = s.acknowledge(ctx) // the next reply says it again
}

// acknowledge says which replies came, in a message of its own, if nothing else has.
func (s *SequenceSource) acknowledge(ctx context.Context) error {
	s.mu.Lock()
	due, list := s.ackDue, s.ackLocked()
	s.mu.Unlock()
	if !due || len(list) == 0 || s.ctx.Err() != nil {
		return nil
	}
	p := s.properties(s.cfg.Version.action(acknowledgementOnly))
	p.ReplyTo = nil
	octets, err := message(s.cfg.SOAP, p, &header.Blocks{Version: string(s.cfg.Version), Acknowledgements: list})
	if err != nil {
		return err
	}
	a, err := s.post(ctx, p.Action, octets)
	if err != nil {
		return err
	}
	return s.take(a, nil, true)
}

package soaprm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// Finish waits until all messages are settled, acknowledges the replies, and ends the sequence:
// close, then terminate (1.1, sections 3.5 and 3.6), or a last message, then terminate (1.0,
// sections 3.1 and 3.5). If the service does not answer that any more, nothing is lost: it has all
// messages, and the next source has another sequence. Errors: of the first message that is not
// acknowledged, Unstored, the cause of ctx.
func (s *SequenceSource) Finish(ctx context.Context) error {
	if err := s.drain(ctx); err != nil {
		return err
	}
	if err := s.closeRecord(ctx); err != nil {
		return err
	}
	if s.record.Version == V10 {
		p := s.properties(V10.action(lastMessage))
		if s.isDecoupled() {
			// Nothing answers it. Apache CXF (Destination.ackImmediately) would wait for an answer
			// to take the acknowledgement along.
			p.ReplyTo = nil
		}
		envelope, err := message(s.cfg.SOAP, p, &header.Blocks{Version: string(V10)})
		if err != nil {
			return err
		}
		t, err := s.accept(ctx, encodeTransfer(flagLast|flagOneWay, p.MessageID, p.Action, envelope))
		if err != nil {
			return err
		}
		_, err = t.Reply(ctx)
		if errors.Is(err, Unanswered) && s.ctx.Err() == nil { // it is the last one, and nothing else
			s.cfg.Log.Warn("the last message is not acknowledged", "sequence", s.record.Identifier, "err", err)
			err = nil
		}
		if err != nil {
			return err
		}
	}
	if err := s.acknowledgeAll(ctx); err != nil {
		s.cfg.Log.Warn("acknowledgement of replies", "err", err)
	}
	if err := s.terminate(ctx); err != nil {
		s.cfg.Log.Warn("the end of the sequence", "err", err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = &Error{Code: Closed}
	return s.forget(context.WithoutCancel(ctx))
}

// closeRecord notes that nothing more is sent in the sequence, whatever comes of its end.
func (s *SequenceSource) closeRecord(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record.Closed = true
	return s.record.put(context.WithoutCancel(ctx), s.cfg.Store, s.uri, 0)
}

// isOver reports whether an earlier source has closed the sequence, and all messages of it are
// acknowledged: one that says no more than that it is the last one need not be.
func (s *SequenceSource) isOver(ctx context.Context) (over bool, err error) {
	if !s.record.Closed {
		return false, nil
	}
	e, err := states{store: s.cfg.Store}.engine(ctx, engineConfig(false), s.record.State)
	if err != nil {
		return false, err
	}
	over = true
	e.Undone(func(number uint64, payload []byte, _ bool) bool {
		over = newTransfer(number, payload, s.bodies).last
		return over
	})
	return over, nil
}

// drain waits until all messages are settled.
func (s *SequenceSource) drain(ctx context.Context) error {
	for {
		s.mu.Lock()
		left, eased, broken := len(s.sent), s.eased, s.broken
		accepted, done, _ := s.engine.Positions()
		s.mu.Unlock()
		switch {
		case broken != nil:
			return broken
		case left == 0 && done < accepted:
			return &Error{Code: Unanswered, Err: fmt.Errorf("%d messages are not acknowledged", accepted-done)}
		case left == 0:
			return nil
		}
		select {
		case <-eased:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		}
	}
}

// acknowledgeAll says which replies came, if no request has, until the service gets that: nobody
// takes what it would send again once the source is closed.
func (s *SequenceSource) acknowledgeAll(ctx context.Context) error {
	began, pause := s.cfg.Clock.Now(), s.cfg.Resend
	for {
		attempt, cancel := context.WithTimeout(ctx, 4*pause)
		err := s.acknowledge(attempt)
		cancel()
		lost := &url.Error{}
		if !errors.As(err, &lost) || s.cfg.Clock.Since(began) > s.cfg.GiveUp {
			return err
		}
		if s.cfg.Clock.Sleep(ctx, pause) != nil {
			return err
		}
		pause = min(2*pause, s.cfg.MaxResend)
	}
}

// terminate ends the sequence.
func (s *SequenceSource) terminate(ctx context.Context) error {
	s.mu.Lock()
	last, _, _ := s.engine.Positions()
	s.mu.Unlock()
	for _, name := range []string{closeSequence, terminateSequence} {
		if name == closeSequence && s.record.Version == V10 {
			continue
		}
		p := s.properties(s.cfg.Version.action(name))
		a, err := s.ask(ctx, p, &header.Blocks{
			Version: string(s.cfg.Version), Control: name, Sequence: s.record.Identifier, LastNumber: last,
		})
		if err != nil {
			return err
		}
		if a.Status >= http.StatusBadRequest {
			return a.why()
		}
	}
	return nil
}

package soaprm

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// ask sends a message of the protocol until it is answered: on the connection, or by a message that
// comes to where replies go.
func (s *SequenceSource) ask(ctx context.Context, p *addressing.Properties, b *header.Blocks) (*heardAnswer, error) {
	octets, err := message(s.cfg.SOAP, p, b)
	if err != nil {
		return nil, err
	}
	oneWay := b.Version == string(V10) && b.Control == terminateSequence // (1.0, section 3.5)
	came := s.expect(p.MessageID)
	defer s.expectNoMore(p.MessageID)
	began, pause := s.cfg.Clock.Now(), s.cfg.Resend
	for {
		attempt, cancel := context.WithTimeout(ctx, 4*pause)
		a, err := s.post(attempt, p.Action, octets)
		cancel()
		if err == nil && a.isEnvelope && a.answers(p.MessageID) {
			return a, nil
		}
		if err == nil && a.Status < http.StatusInternalServerError {
			if !s.isDecoupled() || oneWay {
				return a, nil
			}
			err = errNoAnswer
		} else if err == nil {
			err = a.why()
		}
		switch a, waited := s.await(ctx, came, pause); {
		case a != nil:
			return a, nil
		case waited != nil:
			return nil, waited
		case s.cfg.Clock.Since(began) > s.cfg.GiveUp:
			return nil, &Error{Code: Unanswered, Err: err}
		}
		pause = min(2*pause, s.cfg.MaxResend)
	}
}

var errNoAnswer = errors.New("the service took the message, and nothing came to where its answer goes")

// answers reports whether an envelope that came on the connection of a request answers it, and does
// not only acknowledge something beside.
func (a *heardAnswer) answers(id string) bool {
	return a.at == nil || a.at.RelatesTo == "" || a.at.RelatesTo == id
}

// await waits for an answer, or until it is time to ask again.
func (s *SequenceSource) await(ctx context.Context, came <-chan *heardAnswer, d time.Duration) (*heardAnswer, error) {
	timer := s.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case a := <-came:
		return a, nil
	case <-timer.C():
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// expect has the message that answers one go to who asked.
func (s *SequenceSource) expect(id string) <-chan *heardAnswer {
	came := make(chan *heardAnswer, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[id] = came
	return came
}

func (s *SequenceSource) expectNoMore(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asked, id)
}

// isDecoupled reports whether replies and acknowledgements do not come on the connections of
// requests.
func (s *SequenceSource) isDecoupled() bool { return s.replyTo != "" }

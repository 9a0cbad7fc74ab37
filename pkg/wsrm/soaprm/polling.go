package soaprm

import (
	"context"
	"net/http"
)

// poll asks the service for what waits, while something is awaited.
func (s *SequenceSource) poll() {
	for s.ctx.Err() == nil {
		more := false
		if s.awaits() {
			ctx, cancel := context.WithTimeout(s.ctx, s.cfg.MaxResend)
			var err error
			if more, err = s.pollOnce(ctx); err != nil {
				s.cfg.Log.Debug("poll", "err", err) // the next one asks again
			}
			cancel()
		}
		if !more && s.cfg.Clock.Sleep(s.ctx, s.cfg.Poll) != nil {
			return
		}
	}
}

func (s *SequenceSource) awaits() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sent)+len(s.asked) > 0
}

// pollOnce asks once; more: something else waits.
func (s *SequenceSource) pollOnce(ctx context.Context) (more bool, err error) {
	p := s.properties(makeConnectionAction)
	p.ReplyTo = nil
	octets, err := makeConnection(s.cfg.SOAP, p, s.replyTo)
	if err != nil {
		return false, err
	}
	a, err := s.post(ctx, p.Action, octets)
	if err != nil || !a.isEnvelope {
		return false, err
	}
	a.Status = http.StatusOK
	return a.more, s.arrive(a)
}

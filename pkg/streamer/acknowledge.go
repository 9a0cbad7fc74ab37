package streamer

import (
	"context"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Acknowledge tells the other end about a sequence: octets go ahead of all messages that are queued, to its [Config.Acks]; at most 65 536. It returns when they are queued, which the same room bounds as messages.
// Errors are *[Error]: Unsent, and that of ctx.
func (s *Stream) Acknowledge(ctx context.Context, octets []byte) error {
	n := int64(len(octets))
	if t := s.queue.enter(n); t != nil {
		if err := s.await(ctx, nil, t, false); err != nil {
			s.queue.leave(t)
			return unsent(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed || s.said {
		s.queue.release(n)
		return s.overLocked(Unsent)
	}
	s.acks.push(frame.Ack{Octets: octets})
	s.wakeWriter()
	return nil
}

package streamer

import (
	"context"

	"github.com/hhfr/hhfr/internal/frame"
)

// Acknowledge tells the peer about a sequence: bytes go ahead of all messages that are queued, to
// its [Config.Acks]; at most 65,536. It returns when they are queued, which the same room bounds as
// messages. Errors are *[Error]: Unsent, and that of ctx.
func (s *Stream) Acknowledge(ctx context.Context, octets []byte) error {
	return s.tell(ctx, sequenceNote{octets: octets})
}

// Keep tells the peer what this end has of the long messages of a sequence, as Acknowledge does, to
// its [Config.Kept].
func (s *Stream) Keep(ctx context.Context, parts []KeptPart) error {
	return s.tell(ctx, sequenceNote{kept: &frame.Kept{Messages: parts}})
}

func (s *Stream) tell(ctx context.Context, note sequenceNote) error {
	q := s.queue
	n := note.cost()
	if t := q.gate.enter(n); t != nil {
		if err := q.await(ctx, nil, t.ready); err != nil {
			q.gate.leave(t)
			return unsent(err)
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.hasEnded() || q.said {
		q.gate.release(n)
		return q.why.out.took(Unsent)
	}
	q.acks.push(note)
	q.wakeForData()
	return nil
}

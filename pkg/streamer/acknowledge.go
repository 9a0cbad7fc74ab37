package streamer

import "context"

// Acknowledge tells the peer about a sequence: bytes go ahead of all messages that are queued, to
// its [Config.Acks]; at most 65,536. It returns when they are queued, which the same room bounds as
// messages. Errors are *[Error]: Unsent, and that of ctx.
func (s *Stream) Acknowledge(ctx context.Context, octets []byte) error {
	q := s.queue
	n := int64(len(octets))
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
		return q.ended.took(Unsent)
	}
	q.acks.push(octets)
	q.wakeWriter()
	return nil
}

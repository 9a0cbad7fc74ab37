package arq

import "time"

// silence is how long the silence of a peer is borne of which something is awaited.
type silence struct {
	awaits bool
	since  time.Duration // when that began
}

// attend notes when something begins to be awaited.
func (e *Endpoint) attend() {
	s := &e.out
	awaits := e.cfg.Unanswered > 0 && s.phase <= phaseClosing && (e.awaited || s.Last > s.Done)
	if awaits && !e.silence.awaits {
		e.silence.since = e.now
	}
	e.silence.awaits = awaits
}

// askAt is when a sign of life is asked for, beside what is sent again: that happens less often the
// longer the silence lasts, and not at all when the peer has all.
func (q *silence) askAt(e *Endpoint) time.Duration {
	if !q.awaits {
		return never
	}
	return max(max(e.heard, q.since)+e.cfg.Unanswered/4, e.out.spokeAt+e.cfg.Unanswered/8)
}

// unansweredAt is when the peer is given up while something is awaited.
func (e *Endpoint) unansweredAt() time.Duration {
	if !e.silence.awaits {
		return never
	}
	return max(e.heard, e.silence.since) + e.cfg.Unanswered
}

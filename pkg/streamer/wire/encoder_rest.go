package wire

import (
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Restart has what comes next on a lane build on nothing that was sent on it before: since the peer
// gave up messages of it without reading them, or since the lane is another client's from now on.
func (e *Encoder) Restart(lane uint64) { delete(e.lanes.lanes, lane) }

// Rest makes the memories of lanes small on which nothing was sent since a moment. Those that are
// too large for that are given back, and the peer is told. It returns when to call it next, zero if
// no memory is in use.
func (e *Encoder) Rest(since time.Time) (next time.Time) {
	var given []uint64
	for lane, s := range e.lanes.lanes {
		switch {
		case s.memory == nil || s.memory.open == nil:
		case s.used.After(since):
			if next.IsZero() || s.used.Before(next) {
				next = s.used
			}
		default:
			if s.memory.fold(); s.memory.folded.Size() > mostFolded {
				delete(e.lanes.lanes, lane)
				given = append(given, lane)
			}
		}
	}
	if len(given) > 0 {
		slices.Sort(given)
		e.append(frame.Idle{Lanes: given})
	}
	return next
}

package wire

import (
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// Restart has what comes next on a lane build on nothing that was sent on it before: since the peer
// gave up messages of it without reading them, or since the lane is another client's from now on.
func (e *Encoder) Restart(lane uint64) { e.lanes.forget(lane) }

// Fold makes the memories of lanes small on which nothing was sent since a moment, until something
// is. It returns when the first of the others was used last, zero if there is none.
func (e *Encoder) Fold(since time.Time) (used time.Time) {
	for _, s := range e.lanes.lanes.All {
		switch {
		case !s.open():
		case !s.used.After(since):
			s.fold()
		case used.IsZero() || s.used.Before(used):
			used = s.used
		}
	}
	if used.IsZero() {
		e.shapes.bases.rest()
	}
	return used
}

// Rest folds likewise, and gives back what is large all the same: the peer is told. It returns when
// the first of the lanes was used last that are left for later, zero if there is none.
func (e *Encoder) Rest(since time.Time) (used time.Time) {
	var given []uint64
	most := e.lanes.folded()
	for lane, s := range e.lanes.lanes.All {
		if !s.open() && s.small <= most {
			continue
		}
		if s.used.After(since) {
			if used.IsZero() || s.used.Before(used) {
				used = s.used
			}
			continue
		}
		if s.open() {
			s.fold()
		}
		if s.small > most {
			e.lanes.forget(lane)
			given = append(given, lane)
		}
	}
	if len(given) > 0 {
		slices.Sort(given)
		e.append(frame.Idle{Lanes: given})
	}
	return used
}

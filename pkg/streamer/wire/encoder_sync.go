package wire

import (
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// syncIfDue appends a sync if size further octets would go beyond what may stand without one, or if
// it is time for one.
func (e *Encoder) syncIfDue(size int, now time.Time) {
	since := e.at - e.syncEnd
	if since > 0 && (since+int64(size) > e.cfg.SyncBytes || e.checks.Messages() >= uint64(e.cfg.SyncMessages)) ||
		e.timeForSync(since, now) {
		e.Sync(now)
	}
}

// timeForSync reports whether a sync is due by time, since octets behind the last one: at the
// latest when the one before the next message would come too late, if messages go on coming as the
// last two did; earlier if it is cheap.
func (e *Encoder) timeForSync(since int64, now time.Time) bool {
	interval := e.cfg.SyncInterval
	passed := now.Sub(e.syncedAt)
	switch {
	case interval < 0:
		return false
	case passed >= interval, passed+now.Sub(e.before) >= interval && e.checks.Messages() > 0:
		return true
	case passed < soonestSync || since < e.worth || e.checks.Messages() == 0:
		return false
	}
	e.worth = syncShare * (e.shapes.price() + e.lanes.price() + syncOctets + laneOctets*int64(e.numbering.Len()))
	return since >= e.worth
}

// Sync appends a sync frame: a decoder can begin there. Memories of lanes end, and announcements
// but those it lists.
func (e *Encoder) Sync(now time.Time) {
	f := frame.Sync{Word: e.cfg.Word, Offset: uint64(e.at), Responder: e.cfg.Origin.Responder,
		Session:        e.cfg.Origin.Session,
		Representation: e.cfg.Origin.Representation, Stages: e.cfg.Origin.Stages, Messages: e.checks.Messages(),
		Check:  e.checks.Check(),
		Shapes: e.shapes.epoch(), Lanes: e.numbering.Lanes(maxSyncLanes), Open: e.checks.Open()}
	e.append(f)
	e.numbering.Sync(f)
	e.checks.Next(f)
	e.lanes.next()
	e.syncEnd, e.syncedAt, e.worth = e.at, now, 0
}

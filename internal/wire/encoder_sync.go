package wire

import (
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/shape"
)

// syncIfDue appends a sync if size further octets would go beyond what may stand without one, or if
// it is time for one.
func (e *Encoder) syncIfDue(size int, now time.Time) {
	if since := e.at - e.syncEnd; since > 0 && e.full(since+int64(size)) || e.timeForSync(now) ||
		e.mayBeSoon(since+int64(size), now) && e.cheap(since) {
		e.Sync(now)
	}
}

// full reports whether no more may stand without a sync than so many octets, and what there is.
func (e *Encoder) full(octets int64) bool {
	return octets > e.cfg.SyncBytes || e.checks.Messages() >= uint64(e.cfg.SyncMessages) ||
		e.numbering.Active() >= frame.MaxSyncLanes
}

// timeForSync reports whether a sync is due by time: when the one before the next message would
// come too late, if messages go on coming as the last two did. Where they are few, it waits for
// more, since lanes would remember nothing from one to the next.
func (e *Encoder) timeForSync(now time.Time) bool {
	interval, passed, messages := e.cfg.SyncInterval, now.Sub(e.syncedAt), e.checks.Messages()
	if messages > 0 {
		passed += now.Sub(e.before)
	}
	return interval > 0 && passed >= interval && (messages >= fewMessages || passed >= latestIntervals*interval)
}

// mayBeSoon reports whether a sync is welcome behind so many octets, if it is cheap.
func (e *Encoder) mayBeSoon(octets int64, now time.Time) bool {
	messages := e.checks.Messages()
	return octets > soonestSyncBytes || messages >= soonestSyncMessages ||
		messages > 0 && e.cfg.SyncInterval > 0 && now.Sub(e.syncedAt) >= soonestSync
}

// cheap reports whether a sync adds little to the octets since the last one.
func (e *Encoder) cheap(since int64) bool {
	if since < e.priceAt {
		return false
	}
	price := syncShare * e.price()
	e.priceAt = min(price, since+max(priceStep, since/priceShare))
	return since >= price
}

// price estimates what a sync costs now, in octets: its frame, what is announced again, and until
// lanes remember again what it ends. That is the part that they still have of what they learned.
func (e *Encoder) price() int64 {
	var announced, learnt, fresh int64
	for _, s := range e.shapes.byNumber.All {
		switch {
		case !s.announced:
		case s.times > 1:
			announced += listedOctets
		default:
			announced += referenceOctets
		}
		learnt += s.learned.price()
		fresh += s.learned.fresh.parts
	}
	if left := int64(e.lanes.remembered()); left < fresh {
		learnt = learnt * left / fresh
	}
	return syncOctets + announced + learnt + e.lanes.texts() + laneOctets*int64(e.numbering.Len())
}

// Resync appends a sync at which a decoder can begin that has no store: from there on every shape
// is announced in full, once, before it is used. Where the peer asks for it that is done at most
// once in 5 seconds.
func (e *Encoder) Resync(asked bool, now time.Time) {
	if asked && e.resynced != nil && now.Sub(e.resynced.at) < minResync {
		return
	}
	e.resynced = &resynced{at: now, shapes: map[shape.Fingerprint]struct{}{}}
	for _, s := range e.shapes.byNumber.All {
		s.announced = false // open messages go on under their numbers
	}
	e.shapes.bases.resync()
	e.Sync(now)
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
	e.lanes.next(now)
	e.syncEnd, e.syncedAt, e.priceAt = e.at, now, 0
}

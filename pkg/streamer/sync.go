package streamer

import (
	"fmt"
	"maps"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// syncIfDue writes a sync frame if size further octets would go beyond what may stand without one, or if it is time for one.
func (w *writer) syncIfDue(size int64) {
	s := w.s
	since := w.at - w.syncEnd
	if since > 0 && (since+size > s.cfg.SyncBytes || w.checks.Messages() >= uint64(s.cfg.SyncMessages)) || w.timeForSync(since) {
		w.sync()
	}
}

// timeForSync reports whether a sync is due by time, since octets behind the last one: at the latest when the one before the
// next message would come too late, if messages go on coming as the last two did; earlier if it is cheap.
func (w *writer) timeForSync(since int64) bool {
	interval := w.s.cfg.SyncInterval
	passed := w.now.Sub(w.syncedAt)
	switch {
	case interval < 0:
		return false
	case passed >= interval, passed+w.now.Sub(w.before) >= interval && w.checks.Messages() > 0:
		return true
	case passed < soonestSync || since < w.worth || w.checks.Messages() == 0:
		return false
	}
	price := w.s.coder.Price() + syncOctets + laneOctets*int64(w.numbering.Len())
	w.worth = syncShare * price
	return since >= w.worth
}

// sync writes a sync frame.
func (w *writer) sync() {
	s := w.s
	s.mu.Lock()
	open := maps.Clone(s.uses)
	s.mu.Unlock()
	for number := range w.jobs {
		open[number]++ // not given up while its shape is on its way
	}
	f := frame.Sync{Word: s.word, Offset: uint64(w.at), Responder: s.hello.Responder, Session: s.hello.Session, Representation: s.hello.Representation, Stages: s.hello.Stages,
		Messages: w.checks.Messages(), Check: w.checks.Check(), Lanes: w.numbering.Lanes(maxSyncLanes), Open: w.checks.Open()}
	s.coder.Epoch(open, func(number uint64, fp [32]byte) {
		if job := w.jobs[number]; job == nil || job.referred {
			f.Shapes = append(f.Shapes, frame.Announced{Number: number, Name: frame.NameOf(fp)})
		}
	})
	if len(f.Shapes) > maxSyncShapes {
		s.fail(&Error{Code: Internal, Err: fmt.Errorf("coder keeps %d shapes announced", len(f.Shapes))})
		return
	}
	w.append(f, Event{})
	w.numbering.Sync(f)
	w.checks.Next(f)
	clear(w.used)
	w.syncEnd, w.syncedAt, w.worth = w.at, w.now, 0
}

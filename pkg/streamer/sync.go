package streamer

import (
	"fmt"
	"maps"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// syncIfDue writes a sync frame if size further octets would go beyond what may stand without one.
func (w *writer) syncIfDue(size int64) {
	s := w.s
	if since := w.at - w.syncEnd; since > 0 && (since+size > s.cfg.SyncBytes || w.checks.Messages() >= uint64(s.cfg.SyncMessages)) {
		w.sync()
	}
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
	w.syncEnd = w.at
}

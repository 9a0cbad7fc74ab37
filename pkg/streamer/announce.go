package streamer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// announce has a number announced before the message of t uses it, in its first fragment or a later one. It is false if the message must wait: it goes on when the shape is through.
func (w *writer) announce(number uint64, t turn, first bool) bool {
	s := w.s
	if job := w.jobs[number]; job != nil {
		w.park(job, t, first)
		return false
	}
	fp, full, ok := s.coder.Announce(number)
	if !ok {
		return true
	}
	w.names[number] = frame.NameOf(fp)
	if full == nil {
		w.refer(number, fp)
		return true
	}
	job := &shapeJob{number: number, full: full}
	s.forgetReference(number)
	w.jobs[number] = job
	if w.piece(job); w.jobs[number] == nil {
		return true // one piece was enough
	}
	w.park(job, t, first)
	return false
}

// nameOf is how a sync names the shape behind a number that was announced.
func (w *writer) nameOf(number uint64) (name [8]byte, known bool) {
	name, known = w.names[number]
	return name, known
}

// refer announces a shape by reference.
func (w *writer) refer(number uint64, fp [32]byte) {
	w.s.mu.Lock()
	w.s.referred[number] = true
	w.s.mu.Unlock()
	w.append(frame.Shape{Number: number, Form: frame.Reference, Fingerprint: fp}, Event{})
}

// park has a message wait for a shape. Requests that begin on its lane later wait behind it: they leave in the order in which they were queued.
func (w *writer) park(job *shapeJob, t turn, first bool) {
	job.parked = append(job.parked, t)
	if first && t.out.x == nil {
		w.behind[t.out.key.Lane] = job
	}
}

// lacks has a shape sent in full whose fingerprint told the other end nothing. That end holds the
// messages that use it; later ones wait here.
func (w *writer) lacks(number uint64) {
	full, err := w.s.coder.Lacks(number)
	if err == nil && len(full) == 0 {
		err = fmt.Errorf("no serialization of shape number %d", number)
	}
	if err != nil {
		w.s.fail(&Error{Code: Internal, Err: err})
		return
	}
	w.s.forgetReference(number) // what else the other end asks, it asked before it has this
	if w.jobs[number] == nil {
		w.jobs[number] = &shapeJob{number: number, full: full, referred: true}
		w.piece(w.jobs[number])
	}
}

// piece writes the next piece of a shape, or all those of a short one. Behind the last one the messages that waited have their turn.
func (w *writer) piece(job *shapeJob) {
	s := w.s
	for again := true; again; again = job.at < len(job.full) && len(job.full) <= shapeAtOnce {
		n := min(len(job.full)-job.at, s.maxPayload)
		w.syncIfDue(int64(n + frame.ShapeOverhead))
		w.append(frame.Shape{Number: job.number, Form: frame.Full, Total: uint64(len(job.full)), Offset: uint64(job.at), Piece: job.full[job.at : job.at+n]}, Event{})
		job.at += n
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if job.at < len(job.full) {
		s.ring.push(turn{job: job})
		return
	}
	delete(w.jobs, job.number)
	maps.DeleteFunc(w.behind, func(_ uint64, j *shapeJob) bool { return j == job })
	for _, t := range slices.Backward(job.parked) {
		s.ring.unpop(t)
	}
}

// forgetReference has the other end's "unknown" for a number mean nothing from now on.
func (s *Stream) forgetReference(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.referred, number)
}

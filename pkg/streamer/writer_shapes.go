package streamer

import (
	"slices"

	"github.com/hhfr/hhfr/internal/wire"
)

// The side of the writer that sees to it that the shapes of messages stand before them.

// asItIs reports whether a piece can be written as it is: its shapes are announced, and no request
// of its lane waits for one. The queue calls it with its lock held.
func (w *streamWriter) asItIs(out *outbound, p *outboundPiece) bool {
	if p.first && w.behind.Len() > 0 && w.behind.Get(out.message.Lane) != nil {
		return false
	}
	for _, part := range [...]*wire.Part{&p.head, &p.body} {
		if part.There && part.First && !w.enc.IsAnnounced(part.Program) {
			return false
		}
	}
	return true
}

// waits writes what must stand before a piece, and reports whether that takes a while: its message
// is parked then. Requests that begin on its lane later wait behind it: they leave in the order in
// which they were queued.
func (w *streamWriter) waits(t turn, p *outboundPiece) bool {
	request := t.out.lane != nil && p.first
	if job := w.behind.Get(t.out.message.Lane); job != nil && request {
		job.parked = append(job.parked, t)
		return true
	}
	for i, part := range [...]*wire.Part{&p.head, &p.body} {
		if !part.There || !part.First {
			continue
		}
		shape := w.enc.Announce(t.out.message.Lane, part, i == 0, w.now)
		w.note(nil, false, false)
		if shape == nil {
			continue
		}
		job := w.job(shape)
		job.parked = append(job.parked, t)
		if request {
			w.behind.Put(t.out.message.Lane, job)
		}
		return true
	}
	return false
}

// job has a shape that is on its way take its turns.
func (w *streamWriter) job(shape *wire.Transfer) *transfer {
	job := w.jobs.Get(shape)
	if job == nil {
		job = &transfer{shape: shape}
		w.jobs.Put(shape, job)
		push(w.s.queue, &w.s.queue.ring, turn{job: job})
	}
	return job
}

// piece writes the next piece of a shape. Behind the last one the turns that waited are
// taken.
func (w *streamWriter) piece(job *transfer) {
	done := w.enc.Piece(job.shape, w.now)
	w.note(nil, false, false)
	if !done {
		push(w.s.queue, &w.s.queue.ring, turn{job: job})
		return
	}
	w.jobs.Delete(job.shape)
	for lane, j := range w.behind.All {
		if j == job {
			w.behind.Delete(lane)
		}
	}
	w.s.queue.again(job.parked)
}

// lacks has a shape sent in full whose fingerprint told the peer nothing. The peer holds the
// messages that use it; later ones wait here.
func (w *streamWriter) lacks(number uint64) {
	shape := w.enc.Lacks(number)
	if shape == nil || w.jobs.Get(shape) != nil {
		return
	}
	job := &transfer{shape: shape}
	w.jobs.Put(shape, job)
	w.piece(job) // at once: other shapes may stand on a short one from now on
}

// restart has what follows on a lane build on nothing that was sent on it before; behind messages
// of the lane that wait for a shape.
func (w *streamWriter) restart(t turn) {
	for _, job := range w.jobs.All {
		if slices.ContainsFunc(job.parked, func(p turn) bool {
			return p.out != nil &&
				p.out.message.Lane == t.restart.number
		}) {
			job.parked = append(job.parked, t)
			return
		}
	}
	w.enc.Restart(t.restart.number)
}

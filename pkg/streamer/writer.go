package streamer

import (
	"slices"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// streamWriter is what the goroutine that writes alone knows.
type streamWriter struct {
	s      *Stream
	enc    *wire.Encoder
	noted  int // how many of the frames that were encoded are noted
	now    time.Time
	task   task    // at hand
	begun  []begun // messages that begin in the batch
	jobs   map[*wire.Transfer]*transfer
	behind map[uint64]*transfer // lanes whose next request waits for a shape
	idle   *time.Timer
	restAt time.Time // when the memory of a lane may be idle; zero: none is in use
}

func newWriter(s *Stream, peer frame.Limits) *streamWriter {
	now := time.Now()
	return &streamWriter{s: s, now: now, jobs: map[*wire.Transfer]*transfer{}, behind: map[uint64]*transfer{},
		enc: wire.NewEncoder(wire.EncoderConfig{Origin: s.hello.Origin(), Word: s.hello.Word, Peer: s.coder,
			Compression: s.coder.Compression(), Limits: peer,
			SyncBytes: s.cfg.SyncBytes, SyncMessages: s.cfg.SyncMessages, SyncInterval: s.cfg.SyncInterval},
			len(s.hello.AppendTo(nil)), now)}
}

// run writes frames as long as there are any, and sleeps otherwise, until the direction ends.
func (w *streamWriter) run() {
	s := w.s
	defer close(s.mute)
	for {
		last := w.fill()
		if batch := w.enc.Bytes(); len(batch) > 0 {
			if n, err := s.conn.Write(batch); err != nil {
				s.queue.neverLeft(w.begun, n)
				s.fail(&Error{Code: Closed, Err: err})
				return
			}
			clear(w.begun)
			w.begun = w.begun[:0]
			w.enc.Reset()
			w.noted = 0
			if last {
				s.wrote()
			}
		} else if !last {
			w.sleep()
		}
		if last {
			w.endDirection()
			return
		}
	}
}

// endDirection ends our direction of the connection of a stream that failed, which is closed soon:
// the peer is to read why. One that ends in order has said so by its close frame, and waits for the
// peer's, which HTTP proxies that upgraded the connection would not pass once a direction has
// ended.
func (w *streamWriter) endDirection() {
	if w.s.ending.hasFailed() {
		_ = w.s.conn.CloseWrite()
	}
}

// sleep waits until there may be something to write, or lanes are idle.
func (w *streamWriter) sleep() {
	wake := w.s.queue.wake
	if w.restAt.IsZero() {
		<-wake
		return
	}
	wait := time.Until(w.restAt)
	if w.idle == nil {
		w.idle = time.NewTimer(wait)
	} else {
		w.idle.Reset(wait)
	}
	select {
	case <-wake:
		w.idle.Stop()
	case <-w.idle.C:
	}
}

// rest makes the memories of idle lanes small.
func (w *streamWriter) rest() {
	if w.restAt.IsZero() || w.now.Before(w.restAt) {
		return
	}
	used := w.enc.Rest(w.now.Add(memoryRest - memoryIdle))
	w.restAt = time.Time{}
	if !used.IsZero() {
		w.restAt = used.Add(memoryIdle)
	}
	w.note(nil, false, false)
}

// fill collects frames until it has a batch, or nothing more is ready; last: the direction ends
// with them.
func (w *streamWriter) fill() (last bool) {
	s := w.s
	w.now = time.Now()
	w.rest()
	for len(w.enc.Bytes()) < batchOctets {
		if word, failed := s.ending.lastWord(); failed {
			if word != nil {
				w.enc.Close(word.Code, word.Text)
				w.note(nil, false, false)
			}
			return true
		}
		switch {
		case s.queue.next(&w.task):
			w.do(&w.task)
		case s.exchanges.drained() && s.queue.close():
			w.enc.Close(frame.CloseDone, "")
			w.note(nil, false, false)
			return true
		default:
			return false
		}
	}
	return false
}

func (w *streamWriter) do(t *task) {
	switch t.step {
	case stepTurn:
		w.turn(t.turn)
		return
	case stepControl:
		w.control(&t.control)
		return
	case stepGrant:
		w.enc.Grant(t.grant)
	case stepAsked:
		w.lacks(t.asked)
	case stepAck:
		w.enc.Ack(t.ack)
	case stepNone:
	}
	w.note(nil, false, false)
}

func (w *streamWriter) control(c *priorityItem) {
	switch {
	case c.ask > 0:
		w.enc.Ask(c.ask)
		w.note(nil, false, false)
		return
	case c.limits != nil:
		w.enc.Limit(*c.limits)
		return
	case c.restart != nil:
		w.enc.Restart(c.restart.number)
		return
	case c.drop != nil:
		w.enc.Drop(&c.drop.message, c.code)
		w.note(c.drop, false, false)
		return
	}
	w.enc.Cancel(c.cancel)
	w.note(&outbound{message: wire.Outgoing{Key: c.cancel.Message}}, false, false)
}

// turn writes one frame of a message or of a shape.
func (w *streamWriter) turn(t turn) {
	switch {
	case t.job != nil:
		w.piece(t.job)
		return
	case t.restart != nil:
		w.restart(t)
		return
	}
	out := t.out
	p, ok := w.s.queue.front(out)
	if !ok || w.waits(t, &p) {
		return
	}
	if p, ok = w.s.queue.commit(t); !ok {
		return
	}
	if p.flush {
		w.flush(out, p.settled)
		return
	}
	if p.first {
		w.s.exchanges.began(out)
		w.begun = append(w.begun, begun{out, len(w.enc.Bytes())})
	}
	if err := w.enc.Data(&out.message, &p.head, &p.body, p.last, w.now); err != nil {
		w.s.fail(&Error{Code: Internal, Err: err})
		return
	}
	if w.restAt.IsZero() && p.first && p.last {
		w.restAt = w.now.Add(memoryIdle)
	}
	if cost := w.note(out, p.first, p.last); cost != p.cost() {
		w.s.queue.charge(out, cost-p.cost())
	}
	switch {
	case !p.last:
	case w.s.queue.written(out):
		out.over(nil)
	case out.asks: // it was given up while it was written as a whole: its reply is not wanted
		w.s.exchanges.say(frame.Cancel{Message: replyTo(out.message.Key), Refused: true, Code: frame.Aborted})
	}
}

// flush tells the peer that the sender of a message waits.
func (w *streamWriter) flush(out *outbound, settled int64) {
	if err := w.enc.Flush(&out.message, settled, w.now); err != nil {
		w.s.fail(&Error{Code: Internal, Err: err})
		return
	}
	w.s.queue.charge(out, w.note(out, false, false))
}

// waits writes what must stand before a piece, and reports whether that takes a while: its message
// is parked then. Requests that begin on its lane later wait behind it: they leave in the order in
// which they were queued.
func (w *streamWriter) waits(t turn, p *outboundPiece) bool {
	request := t.out.lane != nil && p.first
	if job := w.behind[t.out.message.Lane]; job != nil && request {
		job.parked = append(job.parked, t)
		return true
	}
	for _, part := range [...]*wire.Part{&p.head, &p.body} {
		if !part.There || !part.First {
			continue
		}
		shape := w.enc.Announce(part.Program, w.now)
		w.note(nil, false, false)
		if shape == nil {
			continue
		}
		job := w.job(shape)
		job.parked = append(job.parked, t)
		if request {
			w.behind[t.out.message.Lane] = job
		}
		return true
	}
	return false
}

// job has a shape that is on its way take its turns.
func (w *streamWriter) job(shape *wire.Transfer) *transfer {
	job := w.jobs[shape]
	if job == nil {
		job = &transfer{shape: shape}
		w.jobs[shape] = job
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
	delete(w.jobs, job.shape)
	for lane, j := range w.behind {
		if j == job {
			delete(w.behind, lane)
		}
	}
	w.s.queue.again(job.parked)
}

// lacks has a shape sent in full whose fingerprint told the peer nothing. The peer holds the
// messages that use it; later ones wait here.
func (w *streamWriter) lacks(number uint64) {
	shape := w.enc.Lacks(number)
	if shape == nil || w.jobs[shape] != nil {
		return
	}
	job := &transfer{shape: shape}
	w.jobs[shape] = job
	w.piece(job) // at once: other shapes may stand on a short one from now on
}

// restart has what follows on a lane build on nothing that was sent on it before; behind messages
// of the lane that wait for a shape.
func (w *streamWriter) restart(t turn) {
	for _, job := range w.jobs {
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

// note takes note of the frames encoded since the last time; first and last are of the data frames
// among them, and out, which may be nil, is what they are about. It gives what they cost of the
// credit of out.
func (w *streamWriter) note(out *outbound, first, last bool) (cost int64) {
	all := w.enc.Written()
	for ; w.noted < len(all); w.noted++ {
		f := &all[w.noted]
		ev := Event{Dir: Sent, Kind: f.Kind, At: f.At, Octets: f.Octets}
		if out != nil && (f.Kind == frame.KindData || f.Kind == frame.KindCancel) {
			ev.Lane, ev.Exchange, ev.Reply = out.message.Lane, out.message.Exchange, out.message.Reply
		}
		if f.Kind == frame.KindData {
			cost += int64(f.Content + pieceCost)
			out.payload += int64(f.Payload)
			ev.First, ev.Last = first, last && w.noted == len(all)-1
			ev.OneWay, ev.Payload, ev.Message = out.message.OneWay, f.Payload, out.payload
			first = false
		}
		w.s.note(ev)
	}
	return cost
}

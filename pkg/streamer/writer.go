package streamer

import (
	"runtime"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

func newWriter(h *handshake, peer frame.Limits) *streamWriter {
	s, now := h.s, time.Now()
	w := &streamWriter{s: s, now: now,
		enc: wire.NewEncoder(wire.EncoderConfig{Origin: s.origin, Word: h.hello.Word, Peer: s.coder,
			Compression: s.coder.Compression(), Limits: peer,
			SyncBytes: h.cfg.SyncBytes, SyncMessages: h.cfg.SyncMessages, SyncInterval: h.cfg.SyncInterval},
			len(h.hello.AppendTo(nil)), now)}
	w.start = w.run
	if s.cfg.FlushDelay > 0 {
		w.hurry = make(chan struct{}, 1)
	}
	return w
}

// The goroutine of a writer.
const (
	writerSleeps = iota // there is none
	writerRuns
	writerRunsOn // there is something that it may not have seen
)

// wake has what is queued written, by a goroutine that there is as long as there is something.
// hurry: also where Config.FlushDelay has what is queued wait for more. It may be called at any
// time.
func (w *streamWriter) wake(hurry bool) {
	if hurry && w.hurry != nil {
		select {
		case w.hurry <- struct{}{}:
		default:
		}
	}
	if w.state.Load() != writerRunsOn && w.state.Swap(writerRunsOn) == writerSleeps {
		go w.start()
	}
}

// run writes frames as long as there are any. When the direction ends, no other run follows.
func (w *streamWriter) run() {
	growStack(false)
	for {
		w.state.Store(writerRuns)
		w.gather()
		if w.writeAll() {
			w.s.mute.give()
			w.s.directionEnded()
			return
		}
		if w.state.CompareAndSwap(writerRuns, writerSleeps) {
			return
		}
	}
}

// gather waits until what is about to be queued is there: with others at work they are given their
// turn, so that what they have to say goes with the first that woke the writer.
func (w *streamWriter) gather() {
	if w.hurry == nil {
		if w.s.exchanges.crowded() {
			runtime.Gosched()
		}
		return
	}
	wait := time.NewTimer(w.s.cfg.FlushDelay)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-w.hurry:
	}
}

// writeAll writes what there is, and reports whether the direction has ended.
func (w *streamWriter) writeAll() (ended bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.enc.Wake()
	ended = w.write()
	w.enc.Sleep()
	if !ended {
		w.watch()
	} else if w.idle != nil {
		w.idle.Stop()
	}
	return ended
}

// write writes batches until nothing more is ready, or the direction has ended.
func (w *streamWriter) write() (ended bool) {
	s := w.s
	w.lookAnew()
	for {
		batch := w.batch()
		if len(batch) > 0 {
			if n, err := s.conn.Write(batch[w.sent:]); err != nil {
				s.queue.neverLeft(w.begun, w.sent+n)
				s.fail(&Error{Code: Closed, Err: err})
				return true
			}
			w.left()
			if w.last {
				s.wrote()
			}
		}
		if w.last {
			w.endDirection()
			return true
		}
		if len(batch) == 0 {
			return false
		}
	}
}

// watch has the writer look for idle lanes when there may be some.
func (w *streamWriter) watch() {
	switch {
	case w.restAt.IsZero():
		if w.idle != nil {
			w.idle.Stop()
			w.idle, w.begun, w.ended = nil, nil, nil // until there is something
		}
	case w.restAt.Equal(w.watched):
		return
	case w.idle == nil:
		w.idle = time.AfterFunc(time.Until(w.restAt), func() { w.wake(true) })
	default:
		w.idle.Reset(time.Until(w.restAt))
	}
	w.watched = w.restAt
}

// left is called when a batch is written.
func (w *streamWriter) left() {
	clear(w.begun)
	for _, out := range w.ended {
		out.leave()
	}
	clear(w.ended)
	w.begun, w.ended = w.begun[:0], w.ended[:0]
	w.enc.Reset()
	w.sent, w.stuck, w.content, w.noted, w.told, w.late = 0, false, 0, 0, 0, true
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

// lookAnew is look for who comes to write, unless it was looked when what waits was encoded.
func (w *streamWriter) lookAnew() {
	w.late = w.late || len(w.enc.Bytes()) == 0
	w.look()
}

// look looks what time it is, unless nothing was written since it did, and has what is idle rest.
func (w *streamWriter) look() {
	if w.late {
		w.now, w.late = time.Now(), false
		w.rest()
	}
}

// rest makes the memories of idle lanes small.
func (w *streamWriter) rest() {
	if w.restAt.IsZero() || w.now.Before(w.restAt) {
		return
	}
	w.restAt = time.Time{}
	if open := w.enc.Fold(w.now.Add(-w.quiet)); !open.IsZero() {
		w.restAt = open.Add(w.quiet)
	}
	if large := w.enc.Rest(w.now.Add(memoryRest - memoryIdle)); !large.IsZero() && w.restAt.IsZero() {
		w.restAt = large.Add(memoryIdle)
	}
	w.note(nil, false, false)
}

// batch gives the frames that are to be written next, the first of which may be written in part.
func (w *streamWriter) batch() []byte {
	w.last = w.last || w.fill()
	all := w.enc.Written()
	w.s.wroteFrames(all[w.told:], w.whole)
	w.told, w.whole = int32(len(all)), 0
	return w.enc.Bytes()
}

// fill collects frames until it has a batch, or nothing more is ready; last: the direction ends
// with them.
func (w *streamWriter) fill() (last bool) {
	s := w.s
	var t task
	for !w.isFull() {
		if word, failed := s.ending.lastWord(); failed {
			if word != nil {
				w.enc.Close(word.Code, word.Text)
				w.note(nil, false, false)
			}
			return true
		}
		switch {
		case s.queue.next(&t, w.asItIs):
			w.look()
			w.do(&t)
		case s.exchanges.drained() && !s.ending.hasFailed() && s.queue.close(): // one that fails drains, too
			w.enc.Close(frame.CloseDone, "")
			w.note(nil, false, false)
			return true
		default:
			return false
		}
	}
	return false
}

// isFull reports whether the batch is to be written. What takes much work comes to few bytes, and
// others wait for it.
func (w *streamWriter) isFull() bool {
	return len(w.enc.Bytes()) >= batchOctets || w.content >= batchContent
}

func (w *streamWriter) do(t *task) {
	switch t.step {
	case stepTurn:
		w.turn(t)
		return
	case stepPiece:
		w.data(t.turn.out, &t.piece)
		return
	case stepControl:
		w.control(&t.control)
		return
	case stepGrant:
		w.enc.Grant(t.grant)
	case stepAsked:
		w.lacks(t.asked)
	case stepAck:
		t.ack.write(w.enc)
	case stepResync:
		w.resync(t.resync)
	case stepNone:
	}
	w.note(nil, false, false)
}

func (w *streamWriter) resync(which resyncs) {
	if which&(resyncOwn|resyncAsked) != 0 {
		w.enc.Resync(which&resyncOwn == 0, w.now)
	}
	if which&resyncPeer != 0 {
		w.enc.Want()
	}
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
func (w *streamWriter) turn(t *task) {
	switch {
	case t.turn.job != nil:
		w.piece(t.turn.job)
		return
	case t.turn.restart != nil:
		w.restart(t.turn)
		return
	}
	if p, ok := w.s.queue.front(t.turn.out); !ok || w.waits(t.turn, &p) {
		return
	}
	if w.s.queue.commit(t.turn, &t.piece) {
		w.data(t.turn.out, &t.piece)
	}
}

// data writes a piece of a message, which was taken out of the queue.
func (w *streamWriter) data(out *outbound, p *outboundPiece) {
	if p.flush {
		w.flush(out, p.settled)
		return
	}
	if p.first {
		w.s.exchanges.began(out)
		w.begun = append(w.begun, begun{out, len(w.enc.Bytes())})
	}
	w.content += p.cost()
	err := w.enc.Data(&out.message, &p.head, &p.body, p.last, w.now)
	p.free()
	if err != nil {
		w.s.fail(&Error{Code: Internal, Err: err})
		return
	}
	if all := w.enc.Written(); len(all) > 0 {
		w.quiet = quietAt(all[len(all)-1].At)
	}
	if at := w.now.Add(w.quiet); p.first && p.last && (w.restAt.IsZero() || w.restAt.After(at)) {
		w.restAt = at
	}
	if cost := w.note(out, p.first, p.last); cost != p.cost() {
		w.s.queue.charge(out, cost-p.cost())
	}
	if p.last {
		out.over(nil)
		w.ended = append(w.ended, out)
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

package streamer

import (
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// turn is one place in the writer's round: a message, or a shape that is sent in full. Each turn writes one frame of it.
type turn struct {
	out *outgoing
	job *shapeJob
}

// shapeJob is a shape on its way in full, with the messages that wait for its last piece.
type shapeJob struct {
	number   uint64
	full     []byte
	at       int
	referred bool // the number is announced by fingerprint
	parked   []turn
}

// writer is what the writer goroutine alone knows.
type writer struct {
	s         *Stream
	numbering frame.Numbering
	checks    frame.Checks
	jobs      map[uint64]*shapeJob // by number
	names     map[uint64][8]byte   // what syncs name the shapes behind the numbers that were announced
	behind    map[uint64]*shapeJob // lanes whose next request waits for a shape
	buf       []byte
	begun     []begun // messages that begin in buf
	payload   []byte  // what was packed
	segment   []byte  // of a head, while it is packed
	idle      *time.Timer
	used      map[uint64]time.Time // when the memory of a lane was used last
	idleAt    time.Time            // when the first of them is idle, or some time before
	at        int64                // the offset of the frame after buf
	syncEnd   int64
	syncedAt  time.Time
	worth     int64     // how many octets there must be for a sync to be cheap
	now       time.Time // when the batch began
	before    time.Time // when the one before did
}

// begun is a message whose first frame begins at an octet of the batch.
type begun struct {
	out *outgoing
	at  int
}

// step is what the writer does next.
type step uint8

const (
	stepWait step = iota
	stepControl
	stepLacks
	stepTurn
	stepClose
)

// run writes frames as long as there are any, and sleeps otherwise, until the direction ends.
func (w *writer) run() {
	s := w.s
	defer close(s.mute)
	for {
		w.rest()
		last := w.fill()
		if len(w.buf) > 0 {
			if n, err := s.conn.Write(w.buf); err != nil {
				w.neverLeft(n)
				s.fail(&Error{Code: Closed, Err: err})
				return
			}
			clear(w.begun)
			w.buf, w.begun = w.buf[:0], w.begun[:0]
			w.wrote(last)
		} else if !last {
			w.sleep()
		}
		if last {
			if half, ok := s.conn.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
	}
}

// neverLeft takes note that the connection took no more than n octets of the batch: what begins behind them is not sent.
func (w *writer) neverLeft(n int) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	for _, b := range w.begun {
		if b.at >= n {
			b.out.begun = false
		}
	}
}

// sleep waits until there may be something to write, or lanes are idle.
func (w *writer) sleep() {
	s := w.s
	if len(w.used) == 0 {
		<-s.wake
		return
	}
	wait := time.Until(w.idleAt)
	if w.idle == nil {
		w.idle = time.NewTimer(wait)
	} else {
		w.idle.Reset(wait)
	}
	select {
	case <-s.wake:
		w.idle.Stop()
	case <-w.idle.C:
	}
}

// wrote takes note that our last octet is written.
func (w *writer) wrote(last bool) {
	if last {
		w.s.mu.Lock()
		w.s.wrote = true
		w.s.mu.Unlock()
	}
}

// fill collects frames until it has a batch, or nothing more is ready; last tells that the direction ends with them.
func (w *writer) fill() (last bool) {
	w.now = time.Now()
	defer func() {
		if len(w.buf) > 0 {
			w.before = w.now
		}
	}()
	for len(w.buf) < batchOctets {
		switch what, job := w.next(); what {
		case stepWait:
			return false
		case stepControl:
			w.control(job.control)
		case stepLacks:
			w.lacks(job.number)
		case stepTurn:
			w.turn(job.turn)
		case stepClose:
			if job.control != nil {
				w.close(job.control.(frame.Close))
			}
			return true
		}
	}
	return false
}

// task is what a step is about.
type task struct {
	control frame.Frame
	number  uint64
	turn    turn
}

// next takes the next task: a stream that failed ends; control frames go first; then messages and shapes in turn; then, if the stream drains, its end.
func (w *writer) next() (step, task) {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.failed:
		if s.farewell == nil {
			return stepClose, task{}
		}
		return stepClose, task{control: *s.farewell}
	case s.control.len() > 0:
		return stepControl, task{control: s.control.pop()}
	case s.acks.len() > 0:
		ack := s.acks.pop()
		s.queue.release(int64(len(ack.Octets)))
		return stepControl, task{control: ack}
	case s.lacks.len() > 0:
		return stepLacks, task{number: s.lacks.pop()}
	case s.ring.len() > 0:
		return stepTurn, task{turn: s.ring.pop()}
	case s.closing && s.live == 0 && s.running == 0 && len(s.calls) == 0:
		s.said = true
		return stepClose, task{control: frame.Close{Code: frame.CloseDone}}
	}
	return stepWait, task{}
}

// append puts a frame into the batch and accounts for it.
func (w *writer) append(f frame.Frame, ev Event) {
	before := len(w.buf)
	w.buf = f.AppendTo(w.buf)
	ev.Dir, ev.Kind, ev.At, ev.Octets = Sent, f.Kind(), w.at, len(w.buf)-before
	w.at += int64(ev.Octets)
	w.s.note(ev)
}

func (w *writer) control(f frame.Frame) {
	if c, ok := f.(frame.Cancel); ok {
		w.cancel(c)
	} else {
		w.append(f, Event{})
	}
}

func (w *writer) cancel(c frame.Cancel) {
	w.checks.Cancel(c)
	w.append(c, Event{Lane: c.Message.Lane, Exchange: c.Message.Exchange, Reply: c.Message.Reply})
}

func (w *writer) close(f frame.Close) {
	f.Messages, f.Check = w.checks.Messages(), w.checks.Check()
	w.append(f, Event{})
}

// turn writes one frame of a message or of a shape.
func (w *writer) turn(t turn) {
	if t.job != nil {
		w.piece(t.job)
		return
	}
	f, ok := w.front(t.out)
	if !ok {
		return
	}
	if job := w.behind[t.out.key.Lane]; job != nil && f.first && t.out.x == nil {
		w.park(job, t, true)
		return
	}
	if !w.prepare(t, f) {
		return
	}
	d, out, ok := w.commit(t)
	if !ok {
		return
	}
	parts, err := w.checks.Cut(&d, w.at, w.at)
	if err != nil {
		w.s.fail(&Error{Code: Internal, Err: err})
		return
	}
	if w.s.packer != nil {
		w.pack(&d, &parts, out)
	}
	w.numbering.Choose(&d)
	w.checks.Add(&d, &parts, w.nameOf)
	before := len(w.buf)
	if d.First {
		w.begun = append(w.begun, begun{out, before})
	}
	w.buf = d.AppendTo(w.buf)
	n := len(w.buf) - before
	w.s.note(Event{Dir: Sent, Kind: frame.KindData, At: w.at, Octets: n, Lane: d.Lane, Exchange: d.Exchange, Reply: d.Reply,
		First: d.First, Last: d.Last, OneWay: out.oneway, Payload: len(d.Payload), Message: out.octets})
	w.at += int64(n)
}

// prepare writes what must stand before a fragment. It is false if that must wait.
func (w *writer) prepare(t turn, f fragment) bool {
	size := int64(len(f.payload) + frame.DataOverhead)
	w.syncIfDue(size)
	for _, number := range f.names {
		if number != 0 && !w.announce(number, t, f.first) {
			return false
		}
	}
	w.syncIfDue(size)
	return true
}

// front is the fragment whose turn it is, if its message is still wanted.
func (w *writer) front(out *outgoing) (fragment, bool) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if out.frags.len() == 0 {
		out.inRing = false
		return fragment{}, false
	}
	return *out.frags.front(), true
}

// commit takes the fragment out and makes a frame of it: from here on it is written. A request gets its exchange with its first fragment.
func (w *writer) commit(t turn) (frame.Data, *outgoing, bool) {
	s, out := w.s, t.out
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.frags.len() == 0 || s.failed {
		out.inRing = false
		return frame.Data{}, nil, false
	}
	f := out.frags.pop()
	s.queue.release(int64(len(f.payload)))
	out.octets += int64(len(f.payload))
	if f.first {
		s.beginOutLocked(out, f.last)
	}
	if f.last {
		out.whole = true
		s.overOutLocked(out)
	}
	if out.inRing = out.frags.len() > 0; out.inRing {
		s.ring.push(t)
	}
	d := frame.Data{First: f.first, Last: f.last, Reply: out.key.Reply, Head: f.head, OneWay: f.first && out.oneway, Text: f.text,
		Lane: out.key.Lane, Exchange: out.key.Exchange, Payload: f.payload}
	if f.first {
		d.Place = out.place
	}
	return d, out, true
}

// beginOutLocked numbers a request, and has its reply expected.
func (s *Stream) beginOutLocked(out *outgoing, only bool) {
	out.begun = true
	if out.lane != nil {
		out.lane.last++
		out.key.Exchange = out.lane.last
	}
	if out.call != nil {
		s.calls[out.key] = out.call
		if len(s.calls) == 1 {
			s.awaitLocked(true)
		}
	}
	if !only {
		s.outs[out.key] = out
	}
}

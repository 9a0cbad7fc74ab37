package streamer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// unorderedWriter is what the writer of an unordered stream knows besides.
type unorderedWriter struct {
	ends    []int  // of the messages in the batch
	frames  uint64 // cut so far, behind the hello
	last    uint64 // the number of the last message that the connection took
	seals   frame.Seals
	sealed  []byte // the payload of a data frame
	delayed fifo[delayed]
	since   int // data frames since the last sync

	known     map[uint64]bool // numbers that were announced, or wait for it
	queue     fifo[*shapeJob] // shapes to be announced, in order
	announced *announced      // what is on its way
	owed      int             // shapes in queue that the other end asked for
}

// delayed is a cancel, which leaves when all that was cut before is acknowledged: so it comes behind that.
type delayed struct {
	cancel frame.Cancel
	behind behind
}

// announced is a message with announcements; the next one leaves when it is acknowledged.
type announced struct {
	numbers []uint64 // those whose announcement is complete with it
	behind  behind
}

// behind is a message of the connection, by its number, which one in the batch does not have yet.
type behind struct {
	last   uint64
	queued bool
}

func (s *Stream) acknowledged(b *behind) bool {
	return !b.queued && b.last <= s.unordered.acknowledged.Load()
}

// cut ends a message of the connection.
func (w *writer) cut(frames int) {
	if u := w.unordered; u != nil {
		u.ends = append(u.ends, len(w.buf))
		u.frames += uint64(frames)
	}
}

// write writes the batch.
func (w *writer) write() (n int, err error) {
	u := w.unordered
	if u == nil {
		return w.s.conn.Write(w.buf)
	}
	n, last, err := w.s.unordered.conn.WriteMessages(w.buf, u.ends)
	u.ends = u.ends[:0]
	if err != nil {
		return n, err
	}
	u.last = last
	for i := u.delayed.len() - 1; i >= 0; i-- {
		b := &u.delayed.items[u.delayed.head+i].behind
		if !b.queued {
			break
		}
		*b = behind{last: last}
	}
	if u.announced != nil && u.announced.behind.queued {
		u.announced.behind = behind{last: last}
	}
	return n, nil
}

// nextUnordered is what goes before all messages: a cancel whose time has come, or announcements, one message after the other.
func (w *writer) nextUnordered() (step, bool) {
	s, u := w.s, w.unordered
	if u == nil {
		return stepWait, false
	}
	if u.announced != nil && s.acknowledged(&u.announced.behind) {
		for _, number := range u.announced.numbers {
			s.unordered.good[number] = true
		}
		u.announced = nil
	}
	switch {
	case u.delayed.len() > 0 && s.acknowledged(&u.delayed.front().behind):
		return stepDelayed, true
	case u.announced == nil && (u.queue.len() > 0 || s.unordered.wanted.len() > 0):
		return stepAnnounce, true
	}
	return stepWait, false
}

// delay has a cancel wait.
func (w *writer) delay(c frame.Cancel) {
	if s := w.s; w.unordered.delayed.len() >= s.maxControl {
		s.fail(&Error{Code: BeyondLimits, Err: fmt.Errorf("%d cancelled messages wait for acknowledgements", s.maxControl)})
		return
	}
	w.unordered.delayed.push(delayed{c, behind{last: w.unordered.last, queued: len(w.buf) > 0}})
}

// announceNext writes a message with announcements, as many as it has room for.
func (w *writer) announceNext() {
	s, u := w.s, w.unordered
	s.mu.Lock()
	for s.unordered.wanted.len() > 0 {
		if number := s.unordered.wanted.pop(); !u.known[number] {
			u.known[number] = true
			u.queue.push(&shapeJob{number: number})
		}
	}
	s.mu.Unlock()
	start, frames := len(w.buf), 0
	var complete []uint64
	for u.queue.len() > 0 {
		job, room := *u.queue.front(), announceOctets-(len(w.buf)-start)
		if room < minAnnounceOctets {
			break
		}
		if job.full == nil {
			fp, full, ok := s.coder.Announce(job.number)
			if job.full = full; full == nil {
				if u.queue.pop(); ok {
					w.refer(job.number, fp)
					frames++
					complete = append(complete, job.number)
				}
				continue
			}
		}
		n := min(len(job.full)-job.at, s.maxPayload, room-frame.ShapeOverhead)
		w.add(frame.Shape{Number: job.number, Form: frame.Full, Total: uint64(len(job.full)), Offset: uint64(job.at), Piece: job.full[job.at : job.at+n]}, Event{})
		frames++
		if job.at += n; job.at < len(job.full) {
			break
		}
		complete = append(complete, job.number)
		if u.queue.pop(); job.asked {
			u.owed--
		}
	}
	if frames > 0 {
		w.cut(frames)
		u.announced = &announced{complete, behind{queued: true}}
	}
}

// refer announces a shape by reference.
func (w *writer) refer(number uint64, fp [32]byte) {
	w.s.mu.Lock()
	w.s.referred[number] = true
	w.s.mu.Unlock()
	w.add(frame.Shape{Number: number, Form: frame.Reference, Fingerprint: fp}, Event{})
}

// lacksUnordered has a shape announced in full that the other end lacks; until that is acknowledged, messages do without.
func (w *writer) lacksUnordered(number uint64, full []byte) {
	w.s.mu.Lock()
	delete(w.s.unordered.good, number)
	w.s.mu.Unlock()
	u := w.unordered
	if u.announced != nil {
		u.announced.numbers = slices.DeleteFunc(u.announced.numbers, func(n uint64) bool { return n == number })
	}
	u.owed++
	u.queue.push(&shapeJob{number: number, full: full, asked: true})
}

// seal makes a data frame one of an unordered direction.
func (w *writer) seal(d *frame.Data) {
	u := w.unordered
	u.sealed = u.seals.Seal(d, u.sealed[:0])
	u.since++
}

// syncUnorderedIfDue writes a sync frame, which lets a decoder begin: it says whose stream this is, and what numbers stand for.
func (w *writer) syncUnorderedIfDue() {
	s, u := w.s, w.unordered
	if w.at-w.syncEnd < s.cfg.SyncBytes && u.since < s.cfg.SyncMessages {
		return
	}
	s.mu.Lock()
	good, open := maps.Clone(s.unordered.good), maps.Clone(s.uses)
	for _, number := range s.unordered.wanted.items[s.unordered.wanted.head:] {
		open[number]++
	}
	s.mu.Unlock()
	for number := range u.known {
		open[number]++ // a number keeps its shape for the life of the stream
	}
	f := frame.Sync{Word: s.word, Session: s.hello.Session, Representation: s.hello.Representation, Stages: s.hello.Stages}
	s.coder.Epoch(open, func(number uint64, fp [32]byte) {
		if good[number] && len(f.Shapes) < maxUnorderedShapes {
			f.Shapes = append(f.Shapes, frame.Announced{Number: number, Name: frame.NameOf(fp)})
		}
	})
	w.append(f, Event{})
	w.syncEnd, u.since = w.at, 0
}

// owes tells whether something is to leave before the direction is closed: a cancel that waits for its time, or a shape that messages at the other end wait for.
func (w *writer) owes() bool {
	return w.unordered != nil && (w.unordered.delayed.len() > 0 || w.unordered.owed > 0)
}

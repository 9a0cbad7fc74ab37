package estimate

import (
	"bytes"
	"time"

	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/wire"
)

// writing is a message that one end writes to a stream, as the writer of a stream does on a link
// that is idle.
type writing struct {
	h   *halfSent
	out wire.Outgoing
	now time.Time

	split   wire.SplitStep
	held    wire.Part // of the head, which goes with the first of the body, if both fit
	holds   bool
	dirty   bool // something was written since all of it went
	settled int64
	written int // fragments
	writes  []write
}

func (w *writing) message(m *proxy.Said) error {
	w.split = w.h.coder.Split(w.out.Lane, w.h.enc.MaxSegment(), w.emit)
	defer w.split.Free()
	if len(m.Head) > 0 {
		if err := w.split.Head(m.Head); err != nil {
			return err
		}
	}
	if m.Whole {
		err := w.split.All(m.Steps[0].Octets)
		w.leave(m.Steps[0].At)
		return err
	}
	at := time.Duration(0)
	for _, step := range m.Steps {
		if err := w.wait(at, step.At, wire.Pause(m.Length)); err != nil {
			return err
		}
		at = step.At
		if step.Flush {
			if err := w.flush(true); err != nil {
				return err
			}
		} else {
			w.dirty = true
			if err := w.split.Write(step.Octets); err != nil {
				return err
			}
		}
		w.leave(at)
	}
	err := w.split.Close()
	w.leave(at)
	return err
}

// wait has go what was written at a time, if nothing follows for a while.
func (w *writing) wait(from, to, pause time.Duration) error {
	for ; w.dirty && to-from >= pause; pause = wire.LongPause {
		if err := w.flush(pause == wire.LongPause); err != nil {
			return err
		}
		w.leave(from + pause)
	}
	return nil
}

// flush has go what was written, as a flush of the writer does.
func (w *writing) flush(force bool) error {
	w.dirty = w.dirty && !force
	settled, err := w.split.Flush(force)
	if err == nil {
		err = w.release()
	}
	if err == nil && settled != w.settled {
		w.settled = settled
		err = w.h.enc.Flush(&w.out, settled, w.now)
	}
	return err
}

// emit takes a segment of the message.
func (w *writing) emit(head bool, p wire.Part) error {
	if head {
		if err := w.release(); err != nil {
			return err
		}
		p.Content = bytes.Clone(p.Content)
		w.held, w.holds = p, true
		return nil
	}
	if w.holds && len(w.held.Content)+len(p.Content) <= w.h.enc.MaxSegment() {
		w.holds = false
		return w.data(&w.held, &p)
	}
	if err := w.release(); err != nil {
		return err
	}
	return w.data(new(wire.Part), &p)
}

// release writes what is held.
func (w *writing) release() error {
	if !w.holds {
		return nil
	}
	w.holds = false
	return w.data(&w.held, new(wire.Part))
}

func (w *writing) data(head, body *wire.Part) error {
	w.settled = 0
	w.written++
	w.h.announce(w.out.Lane, head, true, w.now)
	w.h.announce(w.out.Lane, body, false, w.now)
	return w.h.enc.Data(&w.out, head, body, body.There && body.Last, w.now)
}

// leave has what was encoded leave at a time, with what leaves then already.
func (w *writing) leave(at time.Duration) {
	n, last := int64(len(w.h.enc.Bytes())), len(w.writes)-1
	w.h.enc.Reset()
	switch {
	case n == 0:
	case last >= 0 && w.writes[last].after == at:
		w.writes[last].octets += n
	default:
		w.writes = append(w.writes, write{at, n})
	}
}

package streamer

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// Writer writes the body of a message as it comes. What is written goes out in segments of some
// kilobytes, and all of it at a Flush, or when nothing more has been written for 20 ms and the link
// is idle. Its methods may be called concurrently, but the order of concurrent writes is anybody's
// guess. Errors are *[Error] as with [Lane.Call]; after one, the message is given up.
type Writer struct {
	ctx context.Context
	s   *Stream
	out *outbound

	mu       sync.Mutex
	emitting wire.Emit // emit, without an allocation for each message
	split    wire.SplitStep
	body     taken          // the whole of it
	form     io.WriteCloser // what makes of the body what travels of it; nil: it travels as it is
	left     int64          // bytes that the message may still have
	most     int64          // left, when there was nothing of it
	pause    time.Duration  // that of package wire
	held     outboundPiece  // a segment of the head, which may go with the first of the body
	holds    bool
	quick    bool  // a message that is one piece may be encoded here
	direct   bool  // see outbound
	begun    bool  // a piece was queued
	told     int64 // what the receiver was told is settled, since the last piece
	dirty    time.Time
	timer    *time.Timer
	put      error // why the stream took no more
	err      error
	closed   bool
}

// send begins a message of a known length, or -1, and sends its head.
func (s *Stream) send(ctx context.Context, out *outbound, head []byte, length int64) (*Writer, error) {
	w := new(Writer)
	w.emitting = w.emit
	w.mu.Lock()
	defer w.mu.Unlock()
	return w, w.beginLocked(ctx, s, out, head, length)
}

// beginLocked has a writer that is new, or done, write a message.
func (w *Writer) beginLocked(ctx context.Context, s *Stream, out *outbound, head []byte, length int64) error {
	w.ctx, w.s, w.out, w.form = ctx, s, out, nil
	w.most, w.pause = bounded(s.peer.Load().Limits.MaxMessage), wire.Pause(length)
	w.left = w.most - int64(len(head))
	if len(head) == 0 {
		w.most += s.cfg.Implied.of(out.message.Reply)
	}
	w.holds, w.begun, w.told, w.dirty, w.put, w.err, w.closed = false, false, 0, time.Time{}, nil, nil, false
	w.split = s.coder.Split(out.message.Lane, int(s.peer.Load().Limits.MaxFragment)-wire.SegmentRoom, w.emitting)
	if s.inForm {
		w.form = s.cfg.Outgoing(splitting{w})
	}
	var err error
	switch {
	case w.left < 0:
		err = errTooLong
	case len(head) > 0:
		err = w.split.Head(head)
	}
	if err != nil {
		return w.giveUp(err)
	}
	return nil
}

// splitting is a Writer below its form.
type splitting struct{ *Writer }

func (w splitting) Write(p []byte) (int, error) {
	if err := w.split.Write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// emit queues the segments of the message, or has them encoded at once.
func (w *Writer) emit(head bool, p wire.Part) error {
	most := int(w.s.peer.Load().Limits.MaxFragment) - wire.SegmentRoom
	if head || !w.holds || len(w.held.head.Content)+len(p.Content) > most {
		if err := w.release(); err != nil {
			return err
		}
		w.held = outboundPiece{}
	}
	if head {
		w.held.head, w.holds = p, true
		w.held.keep(0, &w.held.head)
		return nil
	}
	w.held.body, w.held.last, w.holds = p, p.Last, false
	if w.held.first = !w.begun; w.quick && w.held.first && p.Last && w.s.queue.take(w.out, &w.held) {
		w.out = nil // the writer's, who may be done with it
		if w.begun = true; !w.direct {
			w.s.queue.wakeForData()
		}
		return nil
	}
	w.held.keep(1, &w.held.body)
	return w.queue(w.held)
}

// release queues the piece that is held.
func (w *Writer) release() error {
	if !w.holds {
		return nil
	}
	w.holds = false
	return w.queue(w.held)
}

func (w *Writer) queue(p outboundPiece) error {
	w.told = 0
	p.first, w.begun = !w.begun, true
	w.put = w.s.queue.put(w.ctx, w.out, &p)
	return w.put
}

// Write goes on with the body.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return 0, w.unusable()
	}
	err := error(errTooLong)
	if w.left -= int64(len(p)); w.left >= 0 {
		if w.form != nil {
			_, err = w.form.Write(p)
		} else {
			err = w.split.Write(p)
		}
	}
	if err != nil {
		return 0, w.giveUp(err)
	}
	w.wait()
	return len(p), nil
}

func (w *Writer) unusable() error {
	if w.err != nil {
		return w.err
	}
	return &Error{Code: Aborted, Err: errors.New("body is closed")}
}

// wait has the timer look after what was written.
func (w *Writer) wait() {
	w.dirty = time.Now()
	if w.timer == nil {
		w.timer = time.AfterFunc(w.pause, w.paused)
	} else {
		w.timer.Reset(w.pause)
	}
}

// expect has the head go, if nothing of the body comes for a while.
func (w *Writer) expect() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds {
		w.wait()
	}
}

// paused is called by the timer.
func (w *Writer) paused() {
	if !w.mu.TryLock() {
		return // somebody writes, and will wait anew
	}
	defer w.mu.Unlock()
	if w.err != nil || w.closed || w.dirty.IsZero() || w.timer == nil {
		return
	}
	silent := time.Since(w.dirty)
	switch {
	case silent < w.pause:
		w.timer.Reset(w.pause - silent)
	case silent < wire.LongPause && !w.s.queue.isIdle():
		w.timer.Reset(w.pause)
	default:
		force := silent >= wire.LongPause
		if w.flush(force) == nil && !force {
			w.timer.Reset(wire.LongPause - silent)
		}
	}
}

// Flush sends what was written so far; the peer hands it out at once.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return w.unusable()
	}
	return w.flush(true)
}

func (w *Writer) flush(force bool) error {
	settled, err := w.split.Flush(force)
	if err == nil {
		err = w.release()
	}
	if err == nil && settled != w.told {
		err = w.queue(outboundPiece{flush: true, settled: settled})
		w.told = settled
	}
	if err != nil {
		return w.giveUp(err)
	}
	if force {
		w.dirty = time.Time{}
	}
	return nil
}

// Close ends the message. It returns when the last of it is queued.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil || w.closed {
		return w.err
	}
	if w.form != nil {
		if err := w.form.Close(); err != nil {
			return w.giveUp(err)
		}
	}
	if err := w.split.Close(); err != nil {
		return w.giveUp(err)
	}
	w.ended()
	return nil
}

// ended is the end of a message that is queued as a whole.
func (w *Writer) ended() {
	if c := w.s.cfg.Carried; c != nil {
		c.Sent.Messages.Add(1)
		c.Sent.Bytes.Add(w.most - w.left)
	}
	w.free()
}

// wholeLocked is a body in memory, and its end.
func (w *Writer) wholeLocked(body []byte) error {
	err := error(errTooLong)
	switch w.left -= int64(len(body)); {
	case w.left < 0:
	case w.form != nil:
		if _, err = w.form.Write(body); err == nil {
			err = w.form.Close()
		}
		if err == nil {
			err = w.split.Close()
		}
	default:
		err = w.split.All(body)
	}
	if err != nil {
		return w.giveUp(err)
	}
	w.ended()
	return nil
}

// Abort gives the message up, for a reason, if it is not whole. It does not wait.
func (w *Writer) Abort(why error) {
	if !w.mu.TryLock() { // who writes may wait for the peer
		_ = w.drop(why, nil)
		w.mu.Lock()
	}
	defer w.mu.Unlock()
	if w.err == nil && !w.closed {
		_ = w.giveUp(why)
	}
}

func (w *Writer) free() {
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.split.Free()
	w.held = outboundPiece{}
}

// giveUp drops the message for an error of its sender's, or why the stream took no more, and
// returns that as an [Error].
func (w *Writer) giveUp(err error) error {
	var own *Error
	errors.As(w.put, &own)
	w.err = w.drop(err, own)
	w.free()
	return w.err
}

// drop drops the message, for an error of its sender's, or with own for that.
func (w *Writer) drop(err error, own *Error) *Error {
	code := frame.Aborted
	if own == nil && errors.Is(err, errTooLong) {
		code = frame.MessageTooLarge
	}
	own, dropped := w.s.queue.giveUp(w.out, func(begun bool) *Error {
		switch {
		case own != nil:
			return own
		case code == frame.MessageTooLarge:
			return &Error{Code: TooLarge, Err: err}
		case begun:
			return &Error{Code: Aborted, Err: err}
		}
		return &Error{Code: Unsent, Err: err}
	}, code)
	if dropped {
		w.out.over(own)
	}
	return own
}

// sendAll sends a message whose body is read. direct: nothing else is to be done here before there
// is a reply, or after it.
func (s *Stream) sendAll(ctx context.Context, out *outbound, m *Message, direct bool) error {
	defer closeBody(m.Body)
	w := writers.Get().(*Writer)
	defer writers.Put(w)
	w.mu.Lock()
	defer w.recycleLocked()
	if err := w.beginLocked(ctx, s, out, m.Head, m.length()); err != nil {
		return err
	}
	if inMemory(m.Body) {
		return w.sendWholeLocked(w.body.take(m.Body), direct)
	}
	if b, ok := m.Body.(*body); ok {
		if all, ok := b.rest(); ok {
			err := w.sendWholeLocked(all, direct)
			b.discard()
			return err
		}
	}
	return w.readFromLocked(m.Body)
}

// sendWholeLocked sends a body in memory. direct: the sender writes it as well, if nobody else is
// at work whose messages might go with it.
func (w *Writer) sendWholeLocked(body []byte, direct bool) error {
	w.quick = w.s.mayEncodeHere()
	w.direct = direct && w.quick && !w.s.queue.gathers() && !w.s.exchanges.crowded()
	w.out.direct = w.direct
	err := w.wholeLocked(body)
	if w.direct {
		w.s.queue.now()
	}
	w.quick, w.direct = false, false
	return err
}

// writers are those of messages that are sent as they are read. The timer of the message before may
// fire late: that is no harm.
var writers = sync.Pool{New: func() any {
	w := new(Writer)
	w.emitting = w.emit
	return w
}}

// recycleLocked forgets the message of a writer that is done, and the stream that it wrote to, and
// gives up the lock.
func (w *Writer) recycleLocked() {
	w.ctx, w.s, w.out, w.split, w.body, w.form, w.put, w.err = nil, nil, nil, nil, nil, nil, nil, nil
	w.mu.Unlock()
}

var copying = sync.Pool{New: func() any { b := make([]byte, 16<<10); return &b }}

// readFromLocked sends a body as it is read, without the lock meanwhile.
func (w *Writer) readFromLocked(body io.Reader) error {
	w.mu.Unlock()
	defer w.mu.Lock()
	w.expect()
	buf := copying.Get().(*[]byte)
	defer copying.Put(buf)
	for {
		n, err := body.Read(*buf)
		if n > 0 {
			if _, err := w.Write((*buf)[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return w.Close()
		case err != nil:
			w.Abort(err)
			return w.err
		}
	}
}

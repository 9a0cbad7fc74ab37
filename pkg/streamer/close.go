package streamer

import (
	"context"
	"errors"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// Close ends the stream in order: nothing new begins on either side; what is queued is written;
// handlers end and their replies are written; calls that wait get their replies. Then both ends say
// "done". What takes longer than 5 s is given up. Close returns when all goroutines of the stream
// have ended; its error is that of [Stream.Err].
//
// A one-way message whose shape the peer turns out to lack is lost when the close overtakes the
// asking; the peer says so by a cancel "unprocessed".
func (s *Stream) Close() error {
	s.endSoon()
	return s.ended()
}

// Drain lets nothing new begin on either side, as Close does, but gives what is under way as long
// as it takes, and does not wait for it. A Close that follows bounds it.
func (s *Stream) Drain() {
	if s.exchanges.close() {
		s.queue.wakeWriter()
	}
}

// Abort ends the stream at once, and tells the peer why if the connection takes it; of a stream
// that is ending already, the first reason counts. It returns when all goroutines of the stream
// have ended.
func (s *Stream) Abort(code frame.CloseCode, text string) {
	e := &Error{Code: closeBase + Code(code)}
	if text != "" {
		e.Err = errors.New(text)
	}
	if code == frame.CloseDone {
		e.Code = Closed
	}
	s.failWith(e, &frame.Close{Code: code, Text: text})
	_ = s.ended()
}

func (s *Stream) ended() error {
	<-s.done.wait()
	s.tasks.Wait()
	return s.Err()
}

// endSoon lets nothing new begin; the writer says "done" when all is written, and a timer sees to
// it that this comes.
func (s *Stream) endSoon() {
	s.Drain()
	s.ending.mu.Lock()
	defer s.ending.mu.Unlock()
	s.lingerLocked()
}

// lingerLocked has a timer end the stream, unless one does already.
func (s *Stream) lingerLocked() {
	if s.ending.linger == nil && !s.ending.over {
		s.ending.linger = time.AfterFunc(closeLinger, func() {
			s.fail(&Error{Code: GoingAway, Err: context.DeadlineExceeded})
		})
	}
}

// fail ends the stream at once: who waits is told, the connection is given a moment to carry the
// reason, and reader and writer end. Of several reasons the first counts.
func (s *Stream) fail(e *Error) {
	if s.refused.Load() {
		e.unprocessed = true
	}
	var lastFrame *frame.Close
	if !e.Remote && e.Code != Closed {
		lastFrame = &frame.Close{Code: frame.CloseInternal, Text: e.Error()}
		if e.Code >= closeBase {
			lastFrame.Code = frame.CloseCode(e.Code - closeBase)
		}
	}
	s.failWith(e, lastFrame)
}

func (s *Stream) failWith(e *Error, lastFrame *frame.Close) {
	if !s.ending.begin(e, lastFrame) {
		return
	}
	s.ctx.end()
	s.exchanges.fail(e)
	s.queue.end(e)
	until := time.Now()
	if lastFrame != nil {
		until = until.Add(failLinger)
	}
	s.ending.mu.Lock() // the reader sets no deadline any more
	_ = s.conn.SetDeadline(until)
	s.ending.mu.Unlock()
	s.queue.wakeWriter()
}

// deafen tells that nothing more will be received.
func (s *Stream) deafen() {
	s.ending.mu.Lock()
	s.ending.deaf = true
	why := s.ending.err
	s.ending.mu.Unlock()
	s.exchanges.deafen(why)
	s.queue.deafen(why)
	s.endSoon()
	s.queue.wakeWriter()
}

// wrote tells that our last byte is written. The peer, which may be gone, has the time of Close for
// its own.
func (s *Stream) wrote() {
	s.ending.mu.Lock()
	s.ending.wrote = true
	s.lingerLocked()
	s.ending.mu.Unlock()
}

// directionEnded is called when reader or writer have ended. The one that ends last finishes the
// stream: no goroutine waits for both.
func (s *Stream) directionEnded() {
	if s.running.Add(-1) == 0 {
		s.finish()
	}
}

// finish is called when reader and writer have ended.
func (s *Stream) finish() {
	_ = s.conn.Close()
	if s.awaited != nil {
		s.awaited.Stop()
	}
	after, why := s.ending.finish()
	s.queue.end(why)
	s.ctx.end()
	s.done.give()
	if after != nil {
		go after()
	}
}

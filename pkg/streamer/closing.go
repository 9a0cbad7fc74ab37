package streamer

import (
	"context"
	"errors"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Close ends the stream in order: nothing new begins on either side; what is queued is written; handlers end and their replies are written; calls that wait get their
// replies. Then both ends say "done". What takes longer than 5 s is given up. Close returns when all goroutines of the stream have ended; its error is that of [Stream.Err].
//
// A one-way message whose shape the other end turns out to lack is lost when the close overtakes the asking; that end says so by a cancel "unprocessed".
func (s *Stream) Close() error {
	s.mu.Lock()
	s.drainLocked()
	s.mu.Unlock()
	return s.ended()
}

// Abort ends the stream at once, and tells the other end why if the connection takes it; of a stream that is ending already, the first reason counts. It returns when all goroutines of the stream have ended.
func (s *Stream) Abort(code frame.CloseCode, text string) {
	s.mu.Lock()
	e := &Error{Code: closeBase + Code(code)}
	if text != "" {
		e.Err = errors.New(text)
	}
	if code == frame.CloseDone {
		e.Code = Closed
	}
	first := !s.failed
	s.failLocked(e)
	if first && s.farewell != nil && !s.said {
		s.farewell.Code, s.farewell.Text = code, text
	}
	s.mu.Unlock()
	_ = s.ended()
}

func (s *Stream) ended() error {
	<-s.done
	s.tasks.Wait()
	return s.Err()
}

// drainLocked lets nothing new begin; the writer says "done" when all is written, and a timer sees to it that this comes.
func (s *Stream) drainLocked() {
	if s.closing {
		return
	}
	s.closing = true
	s.linger = time.AfterFunc(closeLinger, func() {
		s.fail(&Error{Code: GoingAway, Err: context.DeadlineExceeded})
	})
	s.wakeWriter()
}

func (s *Stream) fail(e *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(e)
}

// failLocked ends the stream at once with e: who waits is told, the connection is given a moment to carry the reason, and reader and writer end.
func (s *Stream) failLocked(e *Error) {
	if s.failed || s.isOverLocked() {
		return
	}
	s.failed, s.closing, s.err = true, true, e
	if !e.Remote && !s.said && e.Code != Closed {
		s.farewell = &frame.Close{Code: frame.CloseInternal, Text: e.Error()}
		if e.Code >= closeBase {
			s.farewell.Code = frame.CloseCode(e.Code - closeBase)
		}
	}
	close(s.broken)
	s.cancel()
	for _, in := range s.in {
		s.failInLocked(in, s.overLocked(FateUnknown))
	}
	for _, out := range s.outs {
		s.dropLocked(out, s.overLocked(out.fateLocked()), frame.Aborted)
	}
	until := time.Now()
	if s.farewell != nil {
		until = until.Add(failLinger)
	}
	_ = s.conn.SetDeadline(until)
	s.wakeWriter()
}

// isOverLocked tells that both directions have ended in order, so that nothing is left to fail.
func (s *Stream) isOverLocked() bool { return s.wrote && s.isDeaf }

// deafenLocked tells that nothing more will be received.
func (s *Stream) deafenLocked() {
	s.isDeaf = true
	close(s.deaf)
	for _, in := range s.in {
		e := s.overLocked(FateUnknown)
		s.failInLocked(in, e)
		s.overInLocked(in, e)
	}
	for _, c := range s.calls {
		if !c.woken {
			s.endCallLocked(c, s.overLocked(c.out.fateLocked())) // maybe nobody waits who would
		}
	}
	s.drainLocked()
	s.wakeWriter()
}

// finish is called when reader and writer have ended.
func (s *Stream) finish() {
	_ = s.conn.Close()
	s.mu.Lock()
	if s.linger != nil {
		s.linger.Stop()
	}
	if !s.failed {
		close(s.broken)
	}
	s.cancel()
	s.mu.Unlock()
	close(s.done)
}

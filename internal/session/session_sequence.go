package session

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// sequence returns the session's current sequence, nil if it has none.
func (s *Session) sequence() *sequence.Sequence {
	if s.outbox == nil {
		return nil
	}
	return s.outbox.sequence()
}

// enqueue sends a message in the session's sequence.
func (s *Session) enqueue(ctx context.Context, m *streamer.Message, wanted bool) (*sequence.Sending, error) {
	defer func() { _ = httpmsg.CloseReader(m.Body) }()
	head, err := s.implicit.ForWire(m.Head)
	if err != nil {
		return nil, err
	}
	compared, err := s.compare(ctx, head, m.Body, wanted)
	if err != nil {
		return nil, err
	}
	message, err := s.sequence().Prepare(ctx, head, m.Body)
	if err != nil {
		return nil, unprepared(err)
	}
	sending, err := s.sendPrepared(ctx, message, wanted, compared)
	if err != nil {
		s.sequence().Discard(message)
	}
	return sending, err
}

// compare compares a message with those of an earlier run before anything of it is stored, if it
// can be read twice, and reports whether it did. The error is that it is left out.
func (s *Session) compare(ctx context.Context, head []byte, body io.Reader, wanted bool) (done bool, err error) {
	again, ok := body.(io.ReadSeeker)
	if !ok || !s.outbox.compares() {
		return false, nil
	}
	at, err := again.Seek(0, io.SeekCurrent)
	if err != nil {
		return false, nil // it can be read once
	}
	message, err := s.sequence().Measure(ctx, head, again)
	if err == nil {
		_, err = again.Seek(at, io.SeekStart)
	}
	if err != nil {
		return false, unprepared(err)
	}
	return true, s.take(ctx, message, wanted)
}

// take has a message be one of the session's run. The error is that it is left out.
func (s *Session) take(ctx context.Context, message sequence.Stored, wanted bool) error {
	leftOut, err := s.outbox.take(ctx, message, wanted)
	if err == nil && leftOut {
		return errAccepted
	}
	return err
}

// sendPrepared sends a message in the sequence that there is. compared: it is one of the run.
func (s *Session) sendPrepared(
	ctx context.Context, message sequence.Stored, wanted, compared bool,
) (*sequence.Sending, error) {
	if !compared {
		if err := s.take(ctx, message, wanted); err != nil {
			return nil, err
		}
	}
	for {
		q := s.sequence()
		sending, err := q.Send(ctx, message, wanted)
		if err != nil && ctx.Err() == nil && s.outbox.after(ctx, q) != q {
			continue // the peer had lost that sequence
		}
		return sending, s.sequenceError(err)
	}
}

// unprepared is the error of a message that cannot be sent.
func unprepared(err error) error { return coded(negotiate.Unsent, err) }

// replyTo waits for the reply to a message of the sequence. If the wait for a message that is in no
// store is canceled, the fate of the message is unknown.
func (s *Session) replyTo(ctx context.Context, sending *sequence.Sending) (*streamer.Message, error) {
	m, err := sending.Wait(ctx)
	if err != nil && !s.cfg.kept() {
		if settled, _ := sending.Settled(); !settled {
			return nil, coded(negotiate.FateUnknown, err)
		}
		m, err = sending.Wait(context.Background())
	}
	if err != nil {
		return nil, s.sequenceError(err)
	}
	return m.Message(ctx), nil
}

// sequenceError also reports why there is no stream any more, if that is the cause.
func (s *Session) sequenceError(err error) error {
	err = sequenceError(err)
	var e *negotiate.Error
	if errors.As(err, &e) {
		if a := s.Agreed(); a.Why != "" {
			e.Err = fmt.Errorf("%w; %s", e.Err, a.Why)
		}
	}
	return err
}

// Sequence returns the progress of the session's sequence; zero without one.
func (s *Session) Sequence() (status sequence.Status) {
	if q := s.sequence(); q != nil {
		status = q.Status()
	}
	return status
}

// Finish waits until all messages of the session's sequence, including those of earlier processes,
// are committed, their replies have arrived, and both ends know that. Nothing can be sent any more
// then. A session without a sequence has nothing to wait for.
//
// Errors: the cause of ctx; Kept if no stream can be had any more (at-most-once: Unsent);
// FateUnknown if the peer lost the sequence; and OtherRun, at once, if there were fewer messages
// than the run that Config.Resume continues had accepted.
func (s *Session) Finish(ctx context.Context) error {
	q := s.sequence()
	if q == nil {
		return nil
	}
	if err := s.outbox.noMore(); err != nil {
		return err
	}
	for {
		err := q.Finish(ctx)
		if err == nil {
			s.outbox.finish(q)
		}
		next := s.outbox.after(ctx, q)
		if err == nil || next == q || ctx.Err() != nil {
			return s.sequenceError(err)
		}
		q = next
	}
}

// Resumed reports what became of the messages so far, with [Config].Resume.
func (s *Session) Resumed() Resumed {
	if s.outbox == nil {
		return Resumed{}
	}
	s.outbox.entryMu.Lock()
	defer s.outbox.entryMu.Unlock()
	if s.outbox.resume == nil {
		return Resumed{}
	}
	return s.outbox.resume.found
}

// EndRun records in the store that the messages of the session were a whole run, after
// [Session.Finish], and that whoever started it knows. The next session with the same store and URL
// then has messages of another run. EndRun may be called after [Session.Close]. A session that is
// not finished has no run to end; one without messages had none.
func (s *Session) EndRun(ctx context.Context) error {
	o := s.outbox
	if o == nil || !s.cfg.kept() {
		return nil
	}
	o.entryMu.Lock()
	defer o.entryMu.Unlock()
	e := o.entry
	switch {
	case o.finished != nil:
		e.Ended, e.At = o.finished.ID, s.cfg.Clock.Now()
		alike := func(r negotiate.Run) bool { return r.First == o.finished.First }
		e.Interrupted = slices.DeleteFunc(slices.Clone(e.Interrupted), alike)
	case !o.over || !o.fresh:
		return nil
	}
	e.Behind = [16]byte{}
	if err := o.save(ctx, e); err != nil {
		return fmt.Errorf("all messages are committed, but that could not be recorded: %w", err)
	}
	return nil
}

// isPending reports whether the session has messages in a sequence that its peer has not taken, and
// goes on with them.
func (s *Session) isPending() bool {
	if s.outbox == nil || !s.streaming() {
		return false
	}
	accepted, done := s.Sequenced()
	return s.sequence().Err() == nil && done < accepted
}

// Sequenced is how many messages the session's sequence has accepted, and how many of these the
// peer is done with, in all processes that had it; 0 without a sequence.
func (s *Session) Sequenced() (accepted, done uint64) {
	status := s.Sequence()
	return status.Accepted, status.Done
}

package session

import (
	"context"
	"errors"
	"fmt"
	"io"

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
func unprepared(err error) error { return &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err} }

// replyTo waits for the reply to a message of the sequence. If the wait for a message that is in no
// store is canceled, the fate of the message is unknown.
func (s *Session) replyTo(ctx context.Context, sending *sequence.Sending) (*streamer.Message, error) {
	m, err := sending.Wait(ctx)
	if err != nil && !s.cfg.kept() {
		if settled, _ := sending.Settled(); !settled {
			return nil, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: err}
		}
		m, err = sending.Wait(context.Background())
	}
	if err != nil {
		return nil, s.sequenceError(err)
	}
	return m.Message(ctx), nil
}

// sequenceError returns an error of a sequence as an error of this package.
func sequenceError(err error) error {
	var e *sequence.Error
	if !errors.As(err, &e) {
		return err
	}
	code := negotiate.Unsent
	switch e.Code {
	case sequence.Kept, sequence.Unstored:
		code = negotiate.Kept
	case sequence.FateUnknown, sequence.Outdated:
		code = negotiate.FateUnknown
	case sequence.BadConfig:
		code = negotiate.BadConfig
	case sequence.Unsent, sequence.TooLarge:
	}
	return &negotiate.Error{Code: code, At: -1, Err: err}
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

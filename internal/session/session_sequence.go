package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/sequence"
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
	body, err := m.ReadAll(sequence.MaxMessage)
	if errors.Is(err, &streamer.Error{Code: streamer.TooLarge}) {
		return nil, &negotiate.Error{
			Code: negotiate.Unsent,
			At:   -1,
			Err:  fmt.Errorf("longer than the %d bytes that a sequence takes: %w", sequence.MaxMessage, err),
		}
	}
	if err != nil {
		return nil, &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err}
	}
	message := sequence.Message{Head: head, Body: body}
	switch leftOut, err := s.outbox.take(ctx, message, wanted); {
	case err != nil:
		return nil, err
	case leftOut:
		return nil, errAccepted
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
	return streamer.NewMessage(m.Head, m.Body), nil
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
	case sequence.FateUnknown:
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

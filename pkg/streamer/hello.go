package streamer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// meet exchanges hellos (docs/wire-format.md, section 3).
func (s *Stream) meet(ctx context.Context) (*input, error) {
	if _, err := io.ReadFull(s.cfg.Rand, s.hello.Word[:]); err != nil {
		return nil, &Error{Code: Internal, Err: err}
	}
	_ = s.conn.SetDeadline(time.Now().Add(s.cfg.HelloTimeout))
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	in := &input{conn: s.conn}
	err := s.introduce(ctx, in)
	if !stop() {
		return nil, &Error{Code: Unsent, Err: ctx.Err()}
	}
	if err != nil {
		return nil, err
	}
	_ = s.conn.SetDeadline(time.Time{})
	return in, nil
}

func (s *Stream) introduce(ctx context.Context, in *input) error {
	s.hello = frame.Hello{Responder: !s.cfg.Initiator, Session: s.cfg.Session, Word: s.hello.Word,
		Representation: s.cfg.Representation, Limits: s.cfg.Limits.stated()}
	if s.cfg.Initiator {
		s.hello.Token = s.cfg.Token
		s.hello.Stages = s.cfg.Coder.Stages()
		if s.cfg.Outgoing != nil {
			s.hello.Stages |= frame.Headers
		}
		if err := s.say(nil); err != nil {
			return err
		}
	}
	if err := s.hear(in); err != nil {
		var f *frame.Error
		if !s.cfg.Initiator && errors.As(err, &f) && f.Code == frame.Unsupported {
			_ = s.say(&frame.Close{Code: frame.CloseUnsupported, Text: f.Error()})
		}
		return err
	}
	if s.cfg.Initiator {
		err := s.agree(in)
		var e *Error
		if errors.As(err, &e) && !e.Remote {
			_, _ = s.conn.Write(frame.Close{Code: frame.CloseCode(e.Code - closeBase), Text: e.Err.Error()}.AppendTo(nil))
		}
		return err
	}
	refusal, err := s.judge(ctx)
	if refusal != nil {
		_ = s.say(refusal)
		return err
	}
	return s.say(nil)
}

// say writes our hello, and with it, if not nil, why that is all.
func (s *Stream) say(last *frame.Close) error {
	b := s.hello.AppendTo(nil)
	s.note(Event{Dir: Sent, Kind: frame.KindHello, Octets: len(b)})
	if last != nil {
		b = last.AppendTo(b)
	}
	if _, err := s.conn.Write(b); err != nil {
		return &Error{Code: Closed, Err: fmt.Errorf("sending hello: %w", err)}
	}
	return nil
}

// hear reads the peer's hello, and leaves it where it is for the decoder.
func (s *Stream) hear(in *input) error {
	for {
		f, n, err := frame.Parse(in.ahead(), 0, 0)
		if err != nil {
			return broke(err, 0)
		}
		if n > 0 {
			h, ok := f.(frame.Hello)
			if !ok || h.Responder != s.cfg.Initiator {
				return &Error{Code: Protocol, Err: errors.New("does not begin with the peer's hello")}
			}
			h.Token = append([]byte(nil), h.Token...)
			s.peer, in.hello = h, n
			return nil
		}
		if err := in.more(); err != nil {
			return &Error{Code: Closed, At: int64(len(in.ahead())), Err: fmt.Errorf("waiting for hello: %w", err)}
		}
	}
}

// agree is the initiator's look at the responder's hello. A refusal usually comes in the same segment.
func (s *Stream) agree(in *input) error {
	if f, n, err := frame.Parse(in.ahead()[in.hello:], int64(in.hello), 0); err == nil && n > 0 {
		if c, ok := f.(frame.Close); ok && c.Code != frame.CloseDone {
			return &Error{Code: closeBase + Code(c.Code), Remote: true, Err: said(c.Text)}
		}
	}
	switch {
	case s.peer.Session != s.cfg.Session:
		return &Error{Code: Protocol, Err: errors.New("hello of another session")}
	case s.peer.Representation != s.cfg.Representation || s.peer.Stages != s.hello.Stages:
		return &Error{Code: Unsupported, Err: fmt.Errorf("representation %d, stages %#x", s.peer.Representation, s.peer.Stages)}
	}
	s.inForm = s.peer.Stages&frame.Headers != 0
	return nil
}

// judge is the responder's look at the initiator's hello.
func (s *Stream) judge(ctx context.Context) (*frame.Close, error) {
	s.hello.Session = s.peer.Session
	unsupported := func() (*frame.Close, error) {
		e := &Error{Code: Unsupported, Err: fmt.Errorf("representation %d, stages %#x", s.peer.Representation, s.peer.Stages)}
		return &frame.Close{Code: frame.CloseUnsupported, Text: e.Err.Error()}, e
	}
	if want := s.cfg.Representation; want != 0 && want != s.peer.Representation {
		return unsupported()
	}
	s.hello.Representation = s.peer.Representation
	coder, handler, err := s.cfg.Accept(ctx, s.peer)
	if err == nil {
		s.inForm = s.peer.Stages&frame.Headers != 0
		if s.inForm && s.cfg.Outgoing == nil || s.peer.Stages&^frame.Headers&^coder.Stages() != 0 {
			return unsupported()
		}
		s.coder, s.handler, s.hello.Stages = coder, handler, s.peer.Stages
		return nil, nil
	}
	refusal := &Refusal{CloseCode: frame.CloseInternal}
	errors.As(err, &refusal)
	return &frame.Close{Code: refusal.CloseCode, Text: refusal.Text}, &Error{Code: closeBase + Code(refusal.CloseCode), Err: err}
}

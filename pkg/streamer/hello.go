package streamer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// Admission is what a responder agrees to for the hello of an initiator.
type Admission struct {
	// Coder and Handler are those of the stream.
	Coder   Coder
	Handler Handler
	// Token is the one by which the initiator may join the session next, within Lifetime; nil: it may not.
	Token    []byte
	Lifetime time.Duration
	// Promised is what an earlier hello in the session stated: an initiator may keep to it until it has read
	// this one, so that it holds beside Config.Limits.
	Promised frame.Limits
}

// meet exchanges hellos as far as the stream needs them to begin (docs/wire-format.md, section 3).
func (s *Stream) meet(ctx context.Context, by func(context.Context, *input) error) (*input, error) {
	_ = s.conn.SetDeadline(time.Now().Add(s.cfg.HelloTimeout))
	stop := context.AfterFunc(ctx, func() { _ = s.conn.SetDeadline(time.Unix(1, 0)) })
	in := &input{conn: s.conn}
	err := by(ctx, in)
	if !stop() {
		return nil, &Error{Code: Unsent, Err: ctx.Err()}
	}
	if err != nil {
		return nil, err
	}
	_ = s.conn.SetDeadline(time.Time{})
	return in, nil
}

// compose fills in our hello but for what an initiator's decides.
func (s *Stream) compose() error {
	if _, err := io.ReadFull(s.cfg.Rand, s.hello.Word[:]); err != nil {
		return &Error{Code: Internal, Err: err}
	}
	s.hello = frame.Hello{Responder: !s.cfg.Initiator, Proxy: s.cfg.Proxy, Session: s.cfg.Session, Word: s.hello.Word,
		Representation: s.cfg.Representation, Limits: s.cfg.Limits.stated()}
	if s.cfg.Initiator {
		s.hello.Token, s.hello.Target, s.hello.Stages = s.cfg.Token, s.cfg.Target, s.cfg.Coder.Stages()&^s.cfg.Without
		if s.cfg.Outgoing != nil {
			s.hello.Stages |= frame.Headers
		}
	}
	return nil
}

func (s *Stream) introduce(ctx context.Context, in *input) error {
	if err := s.compose(); err != nil {
		return err
	}
	if s.cfg.Initiator {
		return s.join(in)
	}
	if err := s.hear(in); err != nil {
		var f *frame.Error
		if errors.As(err, &f) && f.Code == frame.Unsupported {
			s.refuse(&frame.Close{Code: frame.CloseUnsupported, Text: f.Error()})
		}
		return err
	}
	refusal, err := s.judge(ctx)
	if refusal != nil {
		s.refuse(refusal)
		return err
	}
	s.greeted()
	return s.say(nil)
}

// refuse tells the initiator that its session is not taken. What it has sent meanwhile is read, as closing a connection
// with unread bytes would take back what was written.
func (s *Stream) refuse(why *frame.Close) {
	s.hello.Representation = 0
	if s.say(why) != nil {
		return
	}
	_ = s.conn.CloseWrite()
	_ = s.conn.SetReadDeadline(time.Now().Add(closeLinger))
	_, _ = io.CopyN(io.Discard, s.conn, drainOctets)
}

// join is the initiator's side of a connection that it opened.
func (s *Stream) join(in *input) error {
	if err := s.say(nil); err != nil {
		return err
	}
	if s.cfg.Early != nil {
		s.provisional(*s.cfg.Early)
		return nil
	}
	if err := s.hear(in); err != nil {
		return err
	}
	return s.agreeOrTell(in)
}

// provisional is what is known of the peer until its hello comes.
func (s *Stream) provisional(l frame.Limits) {
	s.peer.Store(&frame.Hello{Responder: s.cfg.Initiator, Session: s.hello.Session,
		Representation: s.hello.Representation, Stages: s.hello.Stages, Limits: l})
	s.inForm = s.hello.Stages&frame.Headers != 0
}

// agreeOrTell is agree for a stream that has not begun.
func (s *Stream) agreeOrTell(in *input) error {
	peer := s.peer.Load()
	if peer.Representation == 0 {
		return s.refusal(in)
	}
	if err := s.agree(peer); err != nil {
		_, _ = s.conn.Write(frame.Close{Code: frame.CloseCode(err.Code - closeBase), Text: err.Err.Error()}.AppendTo(nil))
		return err
	}
	s.greeted()
	return nil
}

// greeted notes that both hellos are there.
func (s *Stream) greeted() {
	s.inForm = s.peer.Load().Stages&frame.Headers != 0
	close(s.met)
}

// say writes our hello, and with it, if not nil, why that is all.
func (s *Stream) say(last *frame.Close) error {
	b := s.hello.AppendTo(nil)
	s.note(Event{Dir: Sent, Kind: frame.KindHello, Octets: len(b)})
	if last != nil {
		b = last.AppendTo(b)
	}
	return s.write(b)
}

func (s *Stream) write(b []byte) error {
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
			h.Token = bytes.Clone(h.Token)
			s.peer.Store(&h)
			in.hello = n
			return nil
		}
		if err := in.more(); err != nil {
			return &Error{Code: Closed, At: int64(len(in.ahead())), Err: fmt.Errorf("waiting for hello: %w", err)}
		}
	}
}

// refusal reads why the responder does not take the session.
func (s *Stream) refusal(in *input) error {
	for {
		f, n, err := frame.Parse(in.ahead()[in.hello:], int64(in.hello), 0)
		if err == nil && n == 0 {
			err = in.more()
		}
		if c, ok := f.(frame.Close); ok && n > 0 {
			return &Error{Code: closedBy(c.Code), Remote: true, Err: said(c.Text), unprocessed: true}
		}
		if err != nil || n > 0 {
			return &Error{Code: UnknownSession, Remote: true, unprocessed: true}
		}
	}
}

// agree is the initiator's look at the responder's hello.
func (s *Stream) agree(peer *frame.Hello) *Error {
	switch {
	case peer.Session != s.hello.Session:
		return &Error{Code: Protocol, Err: errors.New("hello of another session")}
	case peer.Representation != s.hello.Representation || peer.Stages != s.hello.Stages:
		return unsupported(peer)
	}
	return nil
}

func unsupported(peer *frame.Hello) *Error {
	return &Error{Code: Unsupported, Err: fmt.Errorf("representation %d, stages %#x", peer.Representation, peer.Stages)}
}

// judge is the responder's look at the initiator's hello.
func (s *Stream) judge(ctx context.Context) (*frame.Close, error) {
	peer := s.peer.Load()
	s.hello.Session = peer.Session
	refuse := func() (*frame.Close, error) {
		e := unsupported(peer)
		return &frame.Close{Code: frame.CloseUnsupported, Text: e.Err.Error()}, e
	}
	if want := s.cfg.Representation; want != 0 && want != peer.Representation {
		return refuse()
	}
	a, err := s.cfg.Accept(ctx, *peer)
	if err != nil {
		refusal := &Refusal{CloseCode: frame.CloseInternal}
		errors.As(err, &refusal)
		return &frame.Close{Code: refusal.CloseCode, Text: refusal.Text}, &Error{Code: closeBase + Code(refusal.CloseCode), Err: err}
	}
	if peer.Stages&frame.Headers != 0 && s.cfg.Outgoing == nil || peer.Stages&^frame.Headers&^a.Coder.Stages() != 0 {
		return refuse()
	}
	s.coder, s.handler = a.Coder, a.Handler
	s.hello.Representation, s.hello.Stages = peer.Representation, peer.Stages
	s.hello.Token, s.hello.Lifetime = a.Token, seconds(a.Lifetime)
	s.cfg.Limits = s.cfg.Limits.atLeast(&a.Promised)
	return nil, nil
}

func seconds(d time.Duration) uint64 { return uint64(max(d, 0) / time.Second) }

// late takes the hello of a peer that the stream began without.
func (s *Stream) late(peer *frame.Hello) error {
	select {
	case <-s.met:
		return nil // it was there before
	default:
	}
	if peer.Responder != s.cfg.Initiator {
		return errors.New("does not begin with the peer's hello")
	}
	if peer.Responder && peer.Representation == 0 {
		s.refused.Store(true) // a close follows
		return nil
	}
	if err := s.agree(peer); err != nil {
		return err
	}
	own := *peer // the event is overwritten
	own.Token = bytes.Clone(peer.Token)
	s.peer.Store(&own)
	s.awaited.Stop()
	s.exchanges.slots.widen(inFlight(peer.Limits))
	s.queue.meet(peer.Limits)
	close(s.met)
	return nil
}

// mayBegin bounds the exchanges that this end may have in flight, also once the peer's hello is there.
func (s *Stream) mayBegin() int {
	select {
	case <-s.met:
		return int(inFlight(s.peer.Load().Limits))
	default:
		return maxFlight
	}
}

// inFlight is how many exchanges this end begins at a time with a peer of such limits.
func inFlight(peer frame.Limits) int64 { return int64(min(peer.MaxExchanges, maxFlight)) }

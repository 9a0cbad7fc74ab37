package streamer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/netconn"
)

// handshake is the exchange of hellos of a stream that begins (docs/wire-format.md, section 3).
type handshake struct {
	s     *Stream
	cfg   Config
	hello frame.Hello // ours
	in    *readBuffer // what the peer says, from its hello on
}

// newHandshake checks the configuration of a new stream; it closes conn if that does not hold
// together.
func newHandshake(conn net.Conn, cfg Config) (*handshake, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	s := &Stream{conn: netconn.Of(conn), cfg: cfg.lasting(), coder: cfg.Coder, handler: cfg.Handler}
	return &handshake{s: s, cfg: cfg, in: &readBuffer{conn: s.conn}}, nil
}

// meet exchanges hellos as far as the stream needs them to begin.
func (h *handshake) meet(ctx context.Context, by func(context.Context) error) error {
	_ = h.s.conn.SetDeadline(time.Now().Add(h.cfg.HelloTimeout))
	stop := context.AfterFunc(ctx, func() { _ = h.s.conn.SetDeadline(time.Unix(1, 0)) })
	err := by(ctx)
	if !stop() {
		return &Error{Code: Unsent, Err: ctx.Err()}
	}
	if err != nil {
		return err
	}
	_ = h.s.conn.SetDeadline(time.Time{})
	return nil
}

// compose fills in our hello but for what an initiator's decides.
func (h *handshake) compose() error {
	if _, err := io.ReadFull(h.cfg.Rand, h.hello.Word[:]); err != nil {
		return &Error{Code: Internal, Err: err}
	}
	h.hello = frame.Hello{Responder: !h.cfg.Initiator, Proxy: h.cfg.Proxy, Session: h.cfg.Session,
		Word: h.hello.Word, Abilities: h.cfg.Abilities,
		Representation: h.cfg.Representation, Limits: h.cfg.Limits.stated()}
	if h.cfg.Initiator {
		h.hello.Token, h.hello.Target, h.hello.Stages = h.cfg.Token, h.cfg.Target,
			h.cfg.Coder.Stages()&^h.cfg.Without
		h.hello.Description = h.cfg.Description
		if h.cfg.Outgoing != nil {
			h.hello.Stages |= frame.Headers
		}
	}
	return nil
}

func (h *handshake) introduce(ctx context.Context) error {
	if err := h.compose(); err != nil {
		return err
	}
	if h.cfg.Initiator {
		return h.join()
	}
	if err := h.hear(); err != nil {
		// Who says no hello at all would not understand why it is not taken.
		var e *Error
		if errors.As(err, &e) && e.Code != Closed && frame.BeginsStream(h.in.ahead()) {
			h.refuse(&frame.Close{Code: frame.CloseCode(e.Code - closeBase), Text: e.Err.Error()})
		}
		return err
	}
	refusal, err := h.judge(ctx)
	if refusal != nil {
		h.refuse(refusal)
		return err
	}
	h.greeted()
	return h.say(nil)
}

// refuse tells the initiator that its session is not taken. What it has sent meanwhile is read, as
// closing a connection with unread bytes would take back what was written.
func (h *handshake) refuse(why *frame.Close) {
	h.hello.Representation = 0
	if h.say(why) != nil {
		return
	}
	_ = h.s.conn.CloseWrite()
	_ = h.s.conn.SetReadDeadline(time.Now().Add(closeLinger))
	_, _ = io.CopyN(io.Discard, h.s.conn, drainOctets)
}

// join is the initiator's side of a connection that it opened.
func (h *handshake) join() error {
	if err := h.say(nil); err != nil {
		return err
	}
	if h.cfg.Early != nil {
		h.provisional(*h.cfg.Early)
		return nil
	}
	if err := h.hear(); err != nil {
		return err
	}
	return h.agreeOrTell()
}

// provisional is what is known of the peer until its hello comes.
func (h *handshake) provisional(l frame.Limits) {
	h.s.peer.Store(&peerHello{Session: h.hello.Session, Hello: &frame.Hello{Responder: h.cfg.Initiator,
		Representation: h.hello.Representation, Stages: h.hello.Stages, Limits: l}})
	h.s.inForm = h.hello.Stages&frame.Headers != 0
}

// agreeOrTell is agree for a stream that has not begun.
func (h *handshake) agreeOrTell() error {
	peer := h.s.Hello()
	if peer.Representation == 0 {
		return h.refusal()
	}
	if err := agree(frame.OriginOf(h.hello), &peer); err != nil {
		_, _ = h.s.conn.Write(frame.Close{Code: frame.CloseCode(err.Code - closeBase),
			Text: err.Err.Error()}.AppendTo(nil))
		return err
	}
	h.greeted()
	return nil
}

// greeted notes that both hellos are there.
func (h *handshake) greeted() {
	h.s.inForm = h.s.peer.Load().Stages&frame.Headers != 0
	h.s.met.give()
}

// say writes our hello, and with it, if not nil, why that is all.
func (h *handshake) say(last *frame.Close) error {
	b := h.hello.AppendTo(nil)
	h.s.saidHello(len(b))
	if last != nil {
		b = last.AppendTo(b)
	}
	return h.write(b)
}

func (h *handshake) write(b []byte) error {
	if _, err := h.s.conn.Write(b); err != nil {
		return &Error{Code: Closed, Err: fmt.Errorf("sending hello: %w", err)}
	}
	return nil
}

// hear reads the peer's hello, and leaves it where it is for the decoder.
func (h *handshake) hear() error {
	stranger := &Error{Code: Protocol, Err: errors.New("does not begin with the peer's hello")}
	for {
		if !frame.MayOpen(h.in.ahead()) {
			return stranger
		}
		f, n, err := frame.Parse(h.in.ahead(), 0, 0)
		if err != nil {
			return broke(err, 0)
		}
		if n > 0 {
			hello := f.(frame.Hello)
			if hello.Responder != h.cfg.Initiator {
				return stranger
			}
			hello.Token, hello.Description = bytes.Clone(hello.Token), bytes.Clone(hello.Description)
			h.s.peer.Store(keepHello(hello))
			h.in.hello = n
			return nil
		}
		if err := h.in.more(); err != nil {
			return &Error{Code: Closed, At: int64(len(h.in.ahead())), Err: fmt.Errorf("waiting for hello: %w", err)}
		}
	}
}

// refusal reads why the responder does not take the session.
func (h *handshake) refusal() error {
	for {
		f, n, err := frame.Parse(h.in.ahead()[h.in.hello:], int64(h.in.hello), 0)
		if err == nil && n == 0 {
			err = h.in.more()
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
func agree(own frame.Origin, peer *frame.Hello) *Error {
	switch {
	case peer.Session != own.Session:
		return &Error{Code: Protocol, Err: errors.New("hello of another session")}
	case peer.Representation != own.Representation || peer.Stages != own.Stages:
		return unsupported(peer)
	}
	return nil
}

func unsupported(peer *frame.Hello) *Error {
	return &Error{Code: Unsupported, Err: fmt.Errorf("representation %d, stages %#x", peer.Representation, peer.Stages)}
}

// judge is the responder's look at the initiator's hello.
func (h *handshake) judge(ctx context.Context) (*frame.Close, error) {
	peer := h.s.Hello()
	h.hello.Session = peer.Session
	refuse := func() (*frame.Close, error) {
		e := unsupported(&peer)
		return &frame.Close{Code: frame.CloseUnsupported, Text: e.Err.Error()}, e
	}
	if want := h.cfg.Representation; want != 0 && want != peer.Representation {
		return refuse()
	}
	a, err := h.cfg.Accept(ctx, peer)
	if err != nil {
		refusal := &Refusal{CloseCode: frame.CloseInternal}
		errors.As(err, &refusal)
		return &frame.Close{Code: refusal.CloseCode, Text: refusal.Text},
			&Error{Code: closeBase + Code(refusal.CloseCode), Err: err}
	}
	if peer.Stages&frame.Headers != 0 && h.cfg.Outgoing == nil || peer.Stages&^frame.Headers&^a.Coder.Stages() != 0 {
		return refuse()
	}
	h.s.coder, h.s.handler, h.s.quick = a.Coder, a.Handler, a.Quick
	h.hello.Representation, h.hello.Stages = peer.Representation, peer.Stages
	h.hello.Token, h.hello.Lifetime, h.hello.Description = a.Token, seconds(a.Lifetime), a.Description
	h.cfg.Limits, h.cfg.Implied = h.cfg.Limits.atLeast(&a.Promised), a.Implied
	return nil, nil
}

func seconds(d time.Duration) uint64 { return uint64(max(d, 0) / time.Second) }

// late takes the hello of a peer that the stream began without.
func (s *Stream) late(peer *frame.Hello) error {
	if s.met.given.Load() {
		return nil // it was there before
	}
	if peer.Responder == s.origin.Responder {
		return errors.New("does not begin with the peer's hello")
	}
	if peer.Responder && peer.Representation == 0 {
		s.refused.Store(true) // a close follows
		return nil
	}
	if err := agree(s.origin, peer); err != nil {
		return err
	}
	own := *peer // the event is overwritten
	own.Token, own.Description = bytes.Clone(peer.Token), bytes.Clone(peer.Description)
	s.peer.Store(keepHello(own))
	s.awaited.Stop()
	s.awaited = nil
	s.exchanges.slots.widen(inFlight(peer.Limits))
	s.queue.meet(peer.Limits)
	s.met.give()
	return nil
}

// mayBegin bounds the exchanges that this end may have in flight, also once the peer's hello is
// there.
func (s *Stream) mayBegin() int {
	if s.met.given.Load() {
		return int(inFlight(s.peer.Load().Limits))
	}
	return maxFlight
}

package streamer

import (
	"context"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
)

// AcceptUpgraded makes the responder's stream of a connection that began as HTTP and is upgraded by
// a request that was read as a whole (docs/wire-format.md, section 3.1). preface is the head with
// status 101, which goes out at once with our hello; a is what the initiator has, with stages that
// it takes, and [BriefHello] if it reads the short form of hello. first serves the request as
// exchange 1 of lane 0, with request as its message; nil: it is no exchange. conn is owned from now
// on. Config.Session is the new session; Accept is not used. Errors are *[Error].
func AcceptUpgraded(ctx context.Context, conn net.Conn, cfg Config, preface []byte, a Admission, stages uint64,
	request *Message, first ExchangeHandler) (*Stream, error) {
	cfg.Initiator, cfg.Representation = false, frame.Binary
	cfg.Accept = func(context.Context, frame.Hello) (Admission, error) { return a, nil }
	h, err := newHandshake(conn, cfg)
	if err != nil {
		return nil, err
	}
	s := h.s
	s.coder, s.handler, s.quick = a.Coder, a.Handler, a.Quick
	if err := h.compose(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	h.hello.Stages = a.Coder.Stages() & stages
	h.hello.Token, h.hello.Lifetime, h.hello.Description = a.Token, seconds(a.Lifetime), a.Description
	if stages&frame.BriefHello != 0 {
		h.hello.Shorten()
	}
	h.provisional(frame.EarlyLimits)
	b := h.hello.AppendTo(append([]byte(nil), preface...))
	_ = conn.SetWriteDeadline(time.Now().Add(h.cfg.HelloTimeout))
	if err := h.write(b); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetWriteDeadline(time.Time{})
	s.saidHello(len(b) - len(preface))
	return h.start(ctx, func() {
		if first != nil {
			s.exchanges.adopt(request, first)
		}
	}), nil
}

// DialUpgraded makes the initiator's stream of a connection on which a request was answered with
// 101, behind that head. The Pending is for the reply to the request, which must be taken; without
// exchange there is none. Config.Session, Token and Target are not used. conn is owned from now on,
// also when it fails; ctx bounds the hellos. Errors are *[Error]; the fate of the request is then
// unknown.
func DialUpgraded(ctx context.Context, conn net.Conn, cfg Config, exchange bool) (*Stream, *Pending, error) {
	cfg.Initiator, cfg.Token, cfg.Target, cfg.Representation = true, nil, "", frame.Binary
	cfg.Description = nil // the request named it
	// The responder may reply before it has read our hello.
	cfg.Limits = cfg.Limits.atLeast(&frame.Limits{MaxFragment: frame.EarlyLimits.MaxFragment})
	h, err := newHandshake(conn, cfg)
	if err != nil {
		return nil, nil, err
	}
	if err := h.meet(ctx, h.follow); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	var p *Pending
	s := h.start(ctx, func() {
		if exchange {
			p = h.s.exchanges.resume()
		}
	})
	return s, p, nil
}

// follow is the initiator's side of a connection that was upgraded: the responder speaks first.
func (h *handshake) follow(_ context.Context) error {
	if err := h.compose(); err != nil {
		return err
	}
	if err := h.hear(); err != nil {
		return err
	}
	peer := h.s.peer.Load()
	h.hello.Session = peer.Session
	if peer.Stages&^h.hello.Stages == 0 {
		h.hello.Stages = peer.Stages
	}
	if err := h.agreeOrTell(); err != nil {
		return err
	}
	if peer.Brief {
		h.hello.Shorten()
	}
	return h.say(nil)
}

// resume has the reply to the upgraded request expected: it is as if it had been exchange 1 of lane
// 0.
func (e *exchanges) resume() *Pending {
	l := e.lane(0)
	p, out := new(Pending), newOutbound(2, true)
	c := &p.c
	c.s, c.out = e.s, out
	out.owner, out.asks, out.lane, out.slots = c, true, &l.out, &e.slots
	out.message.Exchange, out.begun, out.whole = 1, true, true
	out.holds.Store(1) // its reply
	e.slots.enter(1)
	e.s.queue.mu.Lock()
	l.out.last = 1
	e.s.queue.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls.Put(out.message.Key, c)
	e.s.conn.Await(true)
	return p
}

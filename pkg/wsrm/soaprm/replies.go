package soaprm

import (
	"context"
	"math"
	"time"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// decoupledReplies is what a pair of sequences has to send to other addresses than the connections
// of requests: replies, until they are acknowledged, and acknowledgements.
type decoupledReplies struct {
	at      map[uint64]*posting // by the number of the reply
	ackDue  bool
	ackFrom time.Time // when the acknowledgement goes alone, if nothing took it along
	running bool      // a goroutine sends
	wake    chan struct{}
	lost    bool // the client does not know its sequence of replies
}

// posting is how far one reply is.
type posting struct {
	next  time.Time // when it is sent, or may be asked for, again
	pause time.Duration
}

const (
	// resendReply is how long the acknowledgement of a reply is waited for before it is sent again,
	// twice as long each time, up to maxResendReply.
	resendReply    = 2 * time.Second
	maxResendReply = 30 * time.Second
	// alone is how long an acknowledgement waits for a reply to ride on.
	alone = 100 * time.Millisecond
)

// outgoing is a letter of a pair: the reply under a number, which is yet to be written with b, or
// an acknowledgement alone (0).
type outgoing struct {
	letter
	number uint64
	reply  *storedReply
	b      *header.Blocks
}

// matches reports whether something for an address is for a place: one that polls, or, if that is
// empty, all that are posted to.
func matches(place, address string) bool {
	if place == "" {
		return address != "" && !isPolled(address)
	}
	return place == address
}

// dueNow is what is to be sent to a place: a stored reply, or an acknowledgement alone.
type dueNow struct {
	number uint64
	stored []byte
	ack    bool
}

// findLocked finds what is to be sent to a place now; else wait is how long until something is, and
// the greatest duration if nothing is.
func (s *servedPair) findLocked(place string) (due *dueNow, wait time.Duration) {
	wait = math.MaxInt64
	if s.engine == nil || s.now().UnixNano() > s.forget.Load() {
		return nil, wait
	}
	later := func(at time.Time) bool {
		d := at.Sub(s.now())
		if d > 0 {
			wait = min(wait, d)
		}
		return d > 0
	}
	s.engine.Undone(func(number uint64, stored []byte, _ bool) bool {
		to := decodeReply(stored, s.bodies).place
		p := s.decoupled.at[number]
		if s.decoupled.lost || !matches(place, to) || p != nil && later(p.next) {
			return true
		}
		due = &dueNow{number: number, stored: stored}
		return false
	})
	if due == nil && s.decoupled.ackDue && matches(place, s.record.AcksTo) && !later(s.decoupled.ackFrom) {
		due = &dueNow{ack: true}
	}
	return due, wait
}

// nextLocked makes what is to be sent to a place now.
func (s *servedPair) nextLocked(place string) (out *outgoing, wait time.Duration) {
	for {
		due, wait := s.findLocked(place)
		switch {
		case due == nil:
			return nil, wait
		case due.ack:
			s.decoupled.ackDue = false
			out = s.ackLetterLocked()
		default:
			out = s.replyLetterLocked(due)
		}
		if out != nil {
			return out, 0
		}
	}
}

// replyLetterLocked is a reply with what is to be said beside it.
func (s *servedPair) replyLetterLocked(due *dueNow) *outgoing {
	s.handedOutLocked(due.number)
	r := decodeReply(due.stored, s.bodies)
	b := &header.Blocks{Version: string(s.record.Version)}
	if s.record.Offered != "" {
		b.Sequence, b.Number = s.record.Offered, due.number
	}
	if r.place == s.record.AcksTo {
		b.Acknowledgements = s.ackLocked()
		s.decoupled.ackDue = false
	}
	l := letter{to: r.place, version: s.record.SOAP, contentType: r.contentType}
	return &outgoing{l, due.number, &r, b}
}

// write makes the message of a reply. It reads a long one from the store.
func (s *servedPair) write(ctx context.Context, out *outgoing) error {
	if out.reply == nil {
		return nil
	}
	envelope, err := out.reply.whole(ctx)
	if err != nil {
		return err
	}
	if out.octets, err = with(envelope, s.record.Addressing, out.b); err != nil {
		return err
	}
	if e, err := soap.Split(envelope, soap.Limits{}); err == nil {
		if p, err := addressing.Read(&e.Envelope); err == nil && p != nil {
			out.action = p.Action
		}
	}
	return nil
}

// post sends a message, of which a long one is in memory meanwhile, and returns the envelope that
// comes back.
func (s *servedPair) post(out *outgoing) (answer []byte, err error) {
	o := s.endpoint.outbox
	if out.reply != nil && out.reply.long != nil {
		if err := s.endpoint.slots.take(o.ctx); err != nil {
			return nil, err
		}
		defer s.endpoint.slots.free()
	}
	if err := s.write(o.ctx, out); err != nil {
		return nil, err
	}
	return o.post(out.letter)
}

// handedOutLocked has a reply wait for its acknowledgement, until it is sent again.
func (s *servedPair) handedOutLocked(number uint64) {
	p := s.decoupled.at[number]
	if p == nil {
		p = &posting{pause: resendReply}
		s.decoupled.at[number] = p
	}
	p.next = s.now().Add(p.pause)
	p.pause = min(2*p.pause, maxResendReply)
}

// ackLetterLocked acknowledges in a message of its own; nil: there is no word for nothing.
func (s *servedPair) ackLetterLocked() *outgoing {
	list := s.ackLocked()
	if len(list) == 0 {
		return nil
	}
	v := s.record.Version
	p := &addressing.Properties{Space: s.record.Addressing, Action: v.action(acknowledgementOnly),
		MessageID: addressing.NewID(), To: s.record.AcksTo}
	octets, err := message(s.record.SOAP, p, &header.Blocks{Version: string(v), Acknowledgements: list})
	if err != nil {
		return nil
	}
	contentType, _ := soap.ContentType(s.record.SOAP, p.Action) // an action of ours
	return &outgoing{letter{p.To, p.Action, s.record.SOAP, contentType, octets}, 0, nil, nil}
}

// dueLocked has acknowledgements sent, if they go to another address, and the reply to a message
// that came again. now: at once.
func (s *servedPair) dueLocked(a *admittedRequest, now bool) {
	if s.record.AcksTo != "" {
		s.decoupled.ackDue, s.decoupled.ackFrom = true, s.now().Add(alone)
		if now {
			s.decoupled.ackFrom = time.Time{}
		}
	}
	if a != nil && a.replies != "" {
		s.engine.Undone(func(number uint64, stored []byte, _ bool) bool {
			if decodeReply(stored, s.bodies).to == a.b.Number {
				s.decoupled.at[number] = &posting{pause: resendReply}
			}
			return true
		})
	}
}

// sendDue has sent what is due.
func (s *servedPair) sendDue() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.record.Decoupled {
		s.sendLocked()
	}
}

// sendLocked has a goroutine send what there is to send.
func (s *servedPair) sendLocked() {
	select {
	case s.decoupled.wake <- struct{}{}:
	default:
	}
	if s.decoupled.running {
		return
	}
	s.decoupled.running = true
	s.endpoint.outbox.run(s.send)
}

// send sends one message after the other until there is nothing more.
func (s *servedPair) send() {
	for {
		s.mu.Lock()
		if err := s.openLocked(context.WithoutCancel(s.endpoint.outbox.ctx)); err != nil { // it was given up meanwhile
			s.mu.Unlock()
			s.endpoint.cfg.Log.Error("replies of a sequence", "err", err)
			if !s.rest(resendReply) {
				return
			}
			continue
		}
		out, wait := s.nextLocked("")
		if out == nil && wait == math.MaxInt64 {
			s.decoupled.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		if out == nil {
			if !s.rest(wait) {
				return
			}
			continue
		}
		answer, err := s.post(out)
		if s.endpoint.outbox.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.endpoint.cfg.Log.Debug("not taken", "to", out.to, "number", out.number, "err", err)
		}
		s.sent(out, answer, err)
	}
}

// rest waits; false: the endpoint was closed.
func (s *servedPair) rest(d time.Duration) bool {
	timer := s.endpoint.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C():
	case <-s.decoupled.wake:
	case <-s.endpoint.outbox.ctx.Done():
		return false
	}
	return true
}

// sent takes in what came of sending a letter: who made no Offer cannot acknowledge, so what was
// taken is done; others may acknowledge at once, or say that they lost the sequence.
func (s *servedPair) sent(out *outgoing, answer []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.engine == nil {
		return
	}
	if out.number == 0 {
		if err != nil { // it is not repeated by itself: who lacks it sends again
			s.decoupled.ackDue = s.record.AcksTo != ""
			s.decoupled.ackFrom = s.now().Add(resendReply)
		}
		return
	}
	if err == nil && s.record.Offered == "" {
		s.repliedLocked([][2]uint64{{out.number, out.number}})
	}
	if answer == nil {
		return
	}
	e, err := whole(answer)
	if err != nil {
		return
	}
	b := header.Parse(e)
	if b == nil || b.Version != string(s.record.Version) {
		return
	}
	switch b.Fault {
	case unknownSequence, sequenceTerminated, sequenceClosed:
		s.decoupled.lost = true
		s.endpoint.cfg.Log.Warn("the client takes no replies any more", "sequence", s.record.Offered, "fault", b.Fault)
	}
	for _, ack := range b.Acknowledgements {
		if ack.Sequence == s.record.Offered {
			s.repliedLocked(ack.Ranges)
		}
	}
}

// repliedLocked notes that replies came.
func (s *servedPair) repliedLocked(ranges [][2]uint64) {
	ctx := context.WithoutCancel(s.endpoint.outbox.ctx)
	if err := s.stepLocked(ctx, wsrm.Acknowledgement(ranges, nil, false)); err != nil {
		s.endpoint.cfg.Log.Warn("acknowledgement of replies", "sequence", s.record.Offered, "err", err)
		return
	}
	if err := s.saveLocked(ctx); err != nil {
		s.endpoint.cfg.Log.Warn("acknowledgement of replies", "sequence", s.record.Offered, "err", err)
	}
}

// resume goes on with what an earlier process had to send to other addresses.
func (s *servedPair) resume(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.record.Decoupled || s.now().UnixNano() > s.forget.Load() {
		return nil
	}
	if err := s.openLocked(ctx); err != nil {
		return err
	}
	if !s.record.Terminated {
		s.dueLocked(nil, true)
	}
	s.sendLocked()
	return nil
}

// decoupleLocked notes that something of the pair goes to another address, so that it does after a
// restart.
func (s *servedPair) decoupleLocked(ctx context.Context) error {
	if s.record.Decoupled {
		return nil
	}
	return s.noteLocked(ctx, func(r *pairRecord) { r.Decoupled = true })
}

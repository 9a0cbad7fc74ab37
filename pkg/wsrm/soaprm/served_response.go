package soaprm

import (
	"context"

	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// waitLocked waits until a message had its turn, but no longer than it should.
func (s *servedPair) waitLocked(a *admittedRequest) error {
	timer := s.endpoint.cfg.Clock.NewTimer(s.endpoint.cfg.Patience)
	defer timer.Stop()
	for late := false; !late && !s.doneLocked(a.b.Number); {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-timer.C():
			late = true
		case <-a.ctx.Done():
			late = true
		}
		s.mu.Lock()
		if err := s.openLocked(context.WithoutCancel(a.ctx)); err != nil { // it was given up meanwhile
			return err
		}
	}
	return nil
}

// responseLocked is what goes back for a message on its connection.
func (s *servedPair) responseLocked(a *admittedRequest) *response {
	b := &header.Blocks{Version: string(s.record.Version)}
	if hasConnection(s.record.AcksTo) {
		b.Acknowledgements = s.ackLocked()
		s.decoupled.ackDue = false
	}
	out := &response{b: b}
	s.engine.Undone(func(number uint64, reply []byte, _ bool) bool {
		r := decodeReply(reply, s.bodies)
		if r.to != a.b.Number {
			return true
		}
		if r.place != "" && !s.handOutLocked(number, r.place) {
			return false
		}
		out.reply = &r
		if s.record.Offered != "" {
			b.Sequence, b.Number = s.record.Offered, number
		}
		return false
	})
	if out.reply == nil && s.unknown[a.b.Number] {
		s.uncertain(a, out)
	}
	return out
}

// handOutLocked reports whether a reply to an address that polls goes on the connection of its
// request: if it was not asked for meanwhile, and if the client can acknowledge it. Until it does
// the reply waits to be asked for, in case the connection is lost.
func (s *servedPair) handOutLocked(number uint64, place string) bool {
	p := s.decoupled.at[number]
	if !isPolled(place) || s.record.Offered == "" || p != nil && p.next.After(s.now()) {
		return false
	}
	s.handedOutLocked(number)
	return true
}

// uncertain answers a message that was begun before a crash.
func (s *servedPair) uncertain(a *admittedRequest, out *response) {
	stored := handling{s: s, a: a}.failed("the service was handling the message when it crashed, or when its store " +
		"failed: nobody knows whether it had an effect")
	r := decodeReply(stored, s.bodies)
	if hasConnection(r.place) {
		out.reply = &r
		return
	}
	action := s.record.Version.faultAction(a.at.Space)
	s.endpoint.outbox.send(letter{r.place, action, a.in.Version, r.contentType, r.envelope})
}

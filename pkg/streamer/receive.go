package streamer

import (
	"fmt"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// data takes a data frame: numbers, checks, parts, and on to its message.
func (r *receiver) data(f *frame.Data, n int) error {
	at := r.input.at
	if at-r.syncEnd > frame.MaxSyncOctets || r.checks.Messages() > frame.MaxSyncMessages {
		return &Error{Code: Protocol, At: at, Err: fmt.Errorf("no sync frame for %d octets and %d messages", at-r.syncEnd, r.checks.Messages())}
	}
	if err := r.numbering.Resolve(f, at); err != nil {
		return err
	}
	parts, err := r.checks.Cut(f, at, at+int64(n-len(f.Payload)))
	if err != nil {
		return err
	}
	if err := r.mustBeAnnounced(parts); err != nil {
		return protocol(err, at)
	}
	r.checks.Add(f, &parts, r.nameOf)
	s := r.s
	if open := r.checks.Len(); open > s.maxOpenIn {
		return &Error{Code: BeyondLimits, At: at, Err: fmt.Errorf("%d messages are open", open)}
	}
	in, refused, err := r.message(f, f.Key())
	if err != nil {
		return protocol(err, at)
	}
	if f.First {
		in.hasHead = parts.HasHead
	}
	in.octets += int64(len(f.Payload))
	s.note(Event{Dir: Received, Kind: frame.KindData, At: at, Octets: n, Lane: f.Lane, Exchange: f.Exchange, Reply: f.Reply,
		First: f.First, Last: f.Last, OneWay: in.x != nil && in.x.oneway, Payload: len(f.Payload), Message: in.octets})
	if f.Last {
		s.endIn(in)
	}
	if s.packer != nil {
		return protocol(r.pass(in, parts), at) // one that is refused, too: it changes the memory of its lane
	}
	if refused {
		return nil
	}
	own(&parts, len(f.Payload))
	return protocol(r.pass(in, parts), at)
}

// own copies the segments, which alias the read buffer, to memory of their own.
func own(p *frame.Parts, size int) {
	b := make([]byte, 0, size)
	b = append(b, p.Head.Segment...)
	head := len(b)
	b = append(b, p.Body.Segment...)
	p.Head.Segment, p.Body.Segment = b[:head:head], b[head:]
}

// message finds, or begins, the message of a fragment, and tells whether it is refused already.
func (r *receiver) message(f *frame.Data, key frame.Key) (in *inbound, refused bool, err error) {
	s := r.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !f.First {
		in = s.in[key]
		return in, in.err != nil, nil
	}
	var x *Exchange
	if f.Reply {
		in = new(inbound)
	} else {
		both := new(struct {
			in inbound
			x  Exchange
		})
		in, x = &both.in, &both.x
	}
	in.s, in.key, in.alone = s, key, f.Last
	in.segs.items = in.space[:0]
	if !f.Last {
		s.in[key] = in
	}
	if f.Reply {
		err = s.expectLocked(in)
	} else {
		*x = Exchange{s: s, in: in, oneway: f.OneWay, place: f.Place}
		err = s.takeLocked(x)
	}
	return in, in.err != nil, err
}

// takeLocked begins an exchange, or refuses it.
func (s *Stream) takeLocked(x *Exchange) error {
	in := x.in
	if s.exchanges[in.key] != nil {
		return fmt.Errorf("second %s", in.key)
	}
	in.x = x
	s.exchanges[in.key] = x
	s.flight++
	x.counted = true
	switch {
	case s.handler == nil:
		s.refuseLocked(in, frame.Unserved, &Error{Code: Unserved})
	case s.closing:
		s.refuseLocked(in, frame.Unprocessed, &Error{Code: Unprocessed})
	case s.flight > s.cfg.Limits.MaxExchanges, s.queued.weight > s.maxWeight:
		s.refuseLocked(in, frame.Busy, &Error{Code: Busy})
	}
	return nil
}

// expectLocked binds a reply to its call. One that nobody waits for any more is read and dropped; one to a request that was never sent breaks the rules.
func (s *Stream) expectLocked(in *inbound) error {
	request := in.key
	request.Reply = false
	c := s.calls[request]
	switch l := s.lanes[in.key.Lane]; {
	case c != nil && c.reply == nil:
		in.call = c
		c.reply = in
		s.room.answered(c.out.claim)
	case l == nil || in.key.Exchange > l.last || c != nil:
		return fmt.Errorf("%s answers nothing", in.key)
	default:
		in.err = &Error{Code: Aborted}
	}
	return nil
}

// beginLocked has someone read a message whose first fragment was delivered.
func (s *Stream) beginLocked(in *inbound) {
	if in.err != nil || in.started {
		return
	}
	in.started = true
	if in.x != nil {
		s.startLocked(in.x)
	} else {
		in.call.wakeLocked()
	}
}

// idled gives the memory of lanes back that the other end will reset, unless something held still needs it.
func (r *receiver) idled(lanes []uint64) {
	for _, lane := range lanes {
		if r.s.packer != nil && r.held.lanes[lane] == nil {
			r.s.packer.Idled(lane)
		}
	}
}

// endIn tells that the message is whole. That comes before its last segments are delivered, so that who has read it to its end finds it whole.
func (s *Stream) endIn(in *inbound) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in.whole = true
	delete(s.in, in.key)
	if in.x != nil && in.x.oneway {
		s.uncountLocked(in.x)
		delete(s.exchanges, in.key)
	}
	if in.call != nil && !in.call.over {
		s.overCallLocked(in.call)
	}
}

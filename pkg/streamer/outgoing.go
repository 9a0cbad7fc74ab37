package streamer

import (
	"context"
	"errors"
	"fmt"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// outgoing is a message on its way from a sender to the writer.
type outgoing struct {
	s      *Stream
	lane   *Lane // of a request
	oneway bool
	call   *call     // of a request that wants a reply
	x      *Exchange // of a reply
	claim  *claim    // of a request
	place  Place

	composer composer      // the sender's only
	putErr   error         // the sender's only: why the stream took no more
	first    chan struct{} // the sender closes it when the first fragment is queued; nil: nobody waits
	body     counted       // the sender's only

	// Below: under Stream.mu.
	key     frame.Key // a request has its exchange once begun
	packing packing   // the writer's only
	frags   fifo[fragment]
	space   [1]fragment // what most messages need
	names   [2]uint64   // numbers this message keeps in use, of head and body; 0: none. Only the sender sets them
	octets  int64       // of payload that went to the writer
	inRing  bool
	placed  bool // it has one of Stream.places
	begun   bool // its first fragment went to the writer, and not in vain
	whole   bool // its last one, too
	dropped *Error
	stop    chan struct{} // closed when dropped; made when somebody must wait
}

// admit lets a new request in, if the stream still takes any. async: a goroutine of the stream's tasks will send it.
func (s *Stream) admit(out *outgoing, async bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.admitLocked(out); err != nil {
		return err
	}
	if async {
		s.tasks.Add(1)
	}
	return nil
}

func (s *Stream) admitLocked(out *outgoing) error {
	if s.closing && out.x == nil || s.failed {
		return s.overLocked(Unsent)
	}
	out.s = s
	out.frags.items = out.space[:0]
	out.composer.max = s.maxPayload
	s.live++
	return nil
}

// send splits m and queues it; it returns when the last fragment is queued. After an error the message is dropped, or given up.
func (out *outgoing) send(ctx context.Context, m *Message) error {
	s := out.s
	defer closeBody(m.Body)
	s.mu.Lock()
	lane := out.key.Lane
	s.mu.Unlock()
	body := m.Body
	if body != nil && s.inForm {
		body = s.cfg.Outgoing(body)
	}
	out.body = counted{from: body, left: s.maxMessage - int64(len(m.Head))}
	err := error(errTooLong)
	if out.body.left >= 0 {
		err = s.coder.Split(lane, m.Head, &out.body, s.maxPayload-segmentRoom, func(inHead bool, shape uint64, text bool, data []byte) error {
			out.keep(inHead, shape)
			f, ok, err := out.composer.add(inHead, shape, text, data)
			if err != nil || !ok {
				return err
			}
			out.putErr = out.put(ctx, f)
			return out.putErr
		})
	}
	if err == nil {
		var f fragment
		if f, err = out.composer.end(); err == nil {
			out.putErr = out.put(ctx, f)
			err = out.putErr
		}
	}
	if err == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.giveUpLocked(out, err)
}

// giveUpLocked drops a message for an error of its sender's, and returns that as an [Error].
func (s *Stream) giveUpLocked(out *outgoing, err error) error {
	var own *Error
	code := frame.Aborted
	switch {
	case errors.As(out.putErr, &own):
	case errors.Is(err, errTooLong):
		own, code = &Error{Code: TooLarge, Err: err}, frame.MessageTooLarge
	case out.begun:
		own = &Error{Code: Aborted, Err: err}
	default:
		own = &Error{Code: Unsent, Err: err}
	}
	s.dropLocked(out, own, code)
	return own
}

// put queues a fragment, when there is room for it.
func (out *outgoing) put(ctx context.Context, f fragment) error {
	s, n := out.s, int64(len(f.payload))
	if f.first && !f.last {
		if err := out.takePlace(ctx); err != nil {
			return err
		}
	}
	if out.claim != nil {
		if f.first {
			s.room.begin(out.claim)
		}
		if t := s.room.take(out.claim, n); t != nil {
			if err := s.await(ctx, out, t, f.first); err != nil {
				return err
			}
		}
	}
	if t := s.queue.enter(n); t != nil {
		if err := s.await(ctx, out, t, f.first); err != nil {
			s.queue.leave(t)
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed || out.dropped != nil {
		s.queue.release(n)
		return s.lostLocked(out)
	}
	out.frags.push(f)
	if !out.inRing {
		out.inRing = true
		s.ring.push(turn{out: out})
	}
	s.wakeWriter()
	if f.first && out.first != nil {
		close(out.first)
	}
	return nil
}

// keep has a shape number kept for this message until it is whole or dropped. That begins while the coder still splits by it: the last fragment is
// queued after that, and may wait long for room.
func (out *outgoing) keep(inHead bool, number uint64) {
	i := 1
	if inHead {
		i = 0
	}
	if number == 0 || out.names[i] != 0 {
		return
	}
	s := out.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if out.dropped == nil {
		out.names[i] = number
		s.uses[number]++
	}
}

// await waits for a ticket. out may be nil. mayFail: Config.FailWhenFull applies.
func (s *Stream) await(ctx context.Context, out *outgoing, t *ticket, mayFail bool) error {
	if mayFail && s.cfg.FailWhenFull {
		select {
		case <-t.ready:
			return nil
		default:
			return &Error{Code: Full}
		}
	}
	var stop chan struct{}
	if out != nil {
		s.mu.Lock()
		if out.stop == nil {
			out.stop = make(chan struct{})
			if out.dropped != nil {
				close(out.stop)
			}
		}
		stop = out.stop
		s.mu.Unlock()
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-stop:
	case <-s.broken:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lostLocked(out)
}

// lostLocked is why a message cannot be sent any further.
func (s *Stream) lostLocked(out *outgoing) error {
	switch {
	case out == nil:
		return s.overLocked(Unsent)
	case out.dropped != nil:
		return out.dropped
	}
	return s.overLocked(out.fateLocked())
}

// fateLocked is what the end of the stream makes of a message that is on its way.
func (out *outgoing) fateLocked() Code {
	if out.begun {
		return FateUnknown
	}
	return Unsent
}

// overLocked is the error of a message that the end of the stream took along. A session that the other end never took has processed nothing.
func (s *Stream) overLocked(code Code) *Error {
	if s.err == nil {
		return &Error{Code: code, Err: &Error{Code: Closed}}
	}
	if s.err.Remote && (s.err.Code == UnknownSession || s.err.Code == Unsupported) {
		code = Unsent
	}
	return &Error{Code: code, Err: s.err}
}

// dropLocked takes a message out that is not whole: its queue is emptied, and if it is on the wire already it is given up with code.
func (s *Stream) dropLocked(out *outgoing, why *Error, code frame.CancelCode) {
	if out.whole || out.dropped != nil {
		return
	}
	out.dropped = why
	if out.stop != nil {
		close(out.stop)
	}
	for out.frags.len() > 0 {
		s.queue.release(int64(len(out.frags.pop().payload)))
	}
	if out.begun {
		s.controlLocked(frame.Cancel{Message: out.key, Code: code})
	}
	s.overOutLocked(out)
	s.wakeWriter()
}

// overOutLocked is the end of a message's way: whole or dropped.
func (s *Stream) overOutLocked(out *outgoing) {
	s.live--
	delete(s.outs, out.key)
	if out.placed {
		s.places.release(out.class())
	}
	if out.x != nil {
		s.repliedLocked(out.x, out.dropped)
	}
	for _, number := range out.names {
		if number == 0 {
			continue
		}
		if s.uses[number]--; s.uses[number] == 0 {
			delete(s.uses, number)
		}
	}
	if out.claim == nil {
		return
	}
	if out.dropped == nil && !out.oneway {
		s.room.complete(out.claim)
	} else {
		s.room.answered(out.claim)
	}
	s.settleLocked(out)
}

// settleLocked gives a request's place in flight back, once it needs it no more: it is whole or dropped, and so is its reply.
func (s *Stream) settleLocked(out *outgoing) {
	gone := out.whole || out.dropped != nil
	if gone && (out.call == nil || out.call.over) && out.lane != nil {
		out.lane = nil
		s.slots.release(1)
	}
}

// controlLocked queues a frame that goes before all data. What can cause such frames is bounded by our limits; who goes on all the same ends the stream.
func (s *Stream) controlLocked(f frame.Frame) {
	if s.failed || s.said {
		return
	}
	if s.control.len() >= s.maxControl {
		s.failLocked(&Error{Code: BeyondLimits, Err: fmt.Errorf("%d cancelled messages wait to be told", s.maxControl)})
		return
	}
	s.control.push(f)
	s.wakeWriter()
}

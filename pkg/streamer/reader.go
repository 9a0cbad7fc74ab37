package streamer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
	"github.com/hhfr/hhfr/pkg/streamer/wire"
)

// streamReader is what the goroutine that reads alone knows.
type streamReader struct {
	s      *Stream
	input  *readBuffer
	dec    *wire.Decoder
	closed bool      // the peer's close has come
	restAt time.Time // when to look for idle lanes; zero: no memory is in use
	waits  time.Time // until when the connection waits for bytes
}

func newReader(s *Stream, in *readBuffer) *streamReader {
	own := &s.cfg.Limits
	return &streamReader{s: s, input: in, dec: wire.NewDecoder(wire.DecoderConfig{
		Shapes:         s.coder,
		Compression:    s.coder.Compression(),
		MaxFragment:    own.MaxFragment,
		MaxShapes:      max(own.MaxShapes, int(frame.EarlyLimits.MaxShapes)),
		MaxShapeOctets: max(own.MaxShapeBytes, int64(frame.EarlyLimits.MaxShapeBytes)),
		MaxOpen:        2*(own.MaxExchanges+s.mayBegin()) + 64,
		MaxHeld:        own.MaxHeld,
	})}
}

// run reads frames until the direction ends.
func (r *streamReader) run() {
	s := r.s
	err := r.loop()
	lost := err != nil && err.Code == Closed && !s.ending.hasFailed()
	if err != nil {
		s.fail(err)
	}
	if lost {
		<-s.mute // it finds out now, and knows what never left
	}
	s.deafen()
	if s.ending.hasFailed() && !r.closed && err != nil && err.Code != Closed {
		_, _ = io.CopyN(io.Discard, r.input.conn, drainOctets)
	}
}

func (r *streamReader) loop() *Error {
	in := r.input
	for !r.closed {
		if r.dec.At() == 0 && !frame.MayOpen(in.ahead()) {
			return r.stranger()
		}
		f, err := r.dec.Next(in.ahead())
		if err != nil {
			return broke(err, r.dec.At())
		}
		if f.Octets == 0 {
			if err := r.more(); err != nil {
				return r.ended(err)
			}
			continue
		}
		if err := r.handle(&f); err != nil {
			return broke(err, f.At)
		}
		in.r += f.Octets
	}
	return nil
}

// stranger is the error of a peer that does not begin with a hello, such as an HTTP proxy that was
// taken for the end of a stream: it speaks no hhfr, and has processed no message.
func (r *streamReader) stranger() *Error {
	return &Error{Code: Protocol, Err: errors.New("does not begin with the peer's hello"), unprocessed: true}
}

// more waits for at least one further byte, and makes the memories of idle lanes small meanwhile.
func (r *streamReader) more() error {
	for {
		r.rest()
		err := r.input.more()
		if !errors.Is(err, os.ErrDeadlineExceeded) || r.s.ending.hasFailed() {
			return err
		}
		if r.waits.IsZero() {
			r.wake(time.Time{}) // somebody else's deadline
		}
	}
}

// rest looks now and then for lanes that are idle, as long as any memory is in use.
func (r *streamReader) rest() {
	if now := time.Now(); !r.restAt.IsZero() && !now.Before(r.restAt) {
		r.restAt = time.Time{}
		if r.dec.Rest() {
			r.restAt = now.Add(memoryIdle / 2)
		}
	}
	if !r.waits.Equal(r.restAt) {
		r.waits = r.restAt
		r.wake(r.restAt)
	}
}

// wake has the reader wait for bytes until then, unless the stream has failed, which sets an end.
func (r *streamReader) wake(at time.Time) {
	d := &r.s.ending
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.failed {
		_ = r.s.conn.SetReadDeadline(at)
	}
}

// ended is what the end of the connection means when no close frame came.
func (r *streamReader) ended(err error) *Error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Code: Closed, At: r.dec.At() + int64(len(r.input.ahead())), Err: err}
}

// handle takes a frame, and what it says.
func (r *streamReader) handle(f *wire.DecodedFrame) error {
	r.note(f)
	for i := range f.Events {
		if err := r.event(f.At, &f.Events[i]); err != nil {
			var own *Error
			if errors.As(err, &own) {
				return own
			}
			return &Error{Code: Protocol, At: f.At, Err: err}
		}
	}
	return nil
}

func (r *streamReader) note(f *wire.DecodedFrame) {
	ev := Event{Dir: Received, Kind: f.Kind, At: f.At, Octets: f.Octets}
	if m := f.Message; m != nil {
		ev.Lane, ev.Exchange, ev.Reply, ev.OneWay = m.Lane, m.Exchange, m.Reply, m.OneWay
		ev.First, ev.Last, ev.Payload, ev.Message = f.First, f.Last, f.Payload, m.Payload
	}
	for i := range f.Events {
		if c := &f.Events[i].Cancel; f.Kind == frame.KindCancel {
			ev.Lane, ev.Exchange, ev.Reply = c.Message.Lane, c.Message.Exchange, c.Message.Reply
		}
	}
	r.s.note(ev)
}

func (r *streamReader) event(at int64, ev *wire.Event) error {
	s := r.s
	switch ev.Kind {
	case wire.Fragment:
		return r.fragment(ev)
	case wire.Settled:
		if in := inboundOf(ev.Message); in != nil {
			in.settle(ev.Settled)
		}
	case wire.Cancelled:
		if in := inboundOf(ev.Message); in != nil {
			s.exchanges.cancelled(in, &Error{Code: told(ev.Cancel.Code), Remote: true, Err: said(ev.Cancel.Text)})
		}
	case wire.Refused:
		if err := s.exchanges.refused(ev.Cancel); err != nil {
			return err
		}
	case wire.Dropped:
		in, err := r.inbound(ev.Message)
		if err != nil {
			return err
		}
		s.exchanges.lose(in)
	case wire.Lacks:
		if !s.queue.say(priorityItem{ask: ev.Number}) {
			return &Error{Code: BeyondLimits, Err: errManyCancels}
		}
	case wire.Asked:
		if !s.queue.lacks(ev.Number) {
			return &Error{Code: BeyondLimits, Err: errors.New("asks for more shapes than there are numbers")}
		}
	case wire.Granted:
		s.queue.grant(ev.Window)
	case wire.Acked:
		if s.cfg.Acks != nil {
			s.cfg.Acks(bytes.Clone(ev.Octets))
		}
	case wire.Synced:
		if !ev.Verdict.Right {
			return &Error{Code: WrongCheck, At: at, Err: errors.New("check of the sync frame differs")}
		}
	case wire.Closed:
		return r.close(at, ev)
	case wire.Met:
		return s.late(&ev.Hello)
	case wire.Lost: // nothing is, of what is read without gaps
	}
	return nil
}

func inboundOf(m *wire.IncomingMessage) *inbound {
	if m == nil || m.User == nil {
		return nil
	}
	return m.User.(*inbound)
}

// inbound finds the message of an event, or begins it.
func (r *streamReader) inbound(m *wire.IncomingMessage) (*inbound, error) {
	in := inboundOf(m)
	if in != nil {
		return in, nil
	}
	begin := r.s.exchanges.take
	if m.Reply {
		begin = r.s.exchanges.expect
	}
	if err := begin(m); err != nil {
		return nil, err
	}
	return inboundOf(m), nil
}

// fragment passes content on to its message.
func (r *streamReader) fragment(ev *wire.Event) error {
	e := &r.s.exchanges
	in, err := r.inbound(ev.Message)
	if err != nil {
		return err
	}
	if errors.Is(ev.Err, &wire.Error{Code: wire.Forgotten}) {
		e.lose(in)
	} else if ev.Err != nil {
		return ev.Err
	}
	if ev.Last {
		e.whole(in)
	}
	if in.deliver(ev) {
		return &Error{Code: BeyondLimits, Err: fmt.Errorf("%s goes beyond its credit", in.key)}
	}
	e.begin(in)
	return nil
}

func (r *streamReader) close(at int64, ev *wire.Event) error {
	if ev.Close.Code != frame.CloseDone {
		r.closed = true
		return &Error{Code: closedBy(ev.Close.Code), Remote: true, Err: said(ev.Close.Text)}
	}
	if !ev.Verdict.Right {
		return &Error{Code: WrongCheck, At: at, Err: errors.New("check of the close frame differs")}
	}
	r.closed = true
	r.s.exchanges.done(r.s.queue.hasSaid())
	r.s.drain()
	return nil
}

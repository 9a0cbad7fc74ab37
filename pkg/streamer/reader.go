package streamer

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/wire"
)

// streamReader is what the goroutine that reads alone knows.
type streamReader struct {
	s      *Stream
	input  *readBuffer
	dec    *wire.Decoder
	closed bool      // the peer's close has come
	restAt time.Time // when to look for what is idle; zero: nothing has come since all was
	came   bool      // bytes came since it was looked last
	waits  time.Time // until when the connection waits for bytes
	due    bool      // that may be over
}

func newReader(s *Stream, in *readBuffer) *streamReader {
	own := &s.cfg.Limits
	return &streamReader{s: s, input: in, came: true, dec: wire.NewDecoder(wire.DecoderConfig{
		Shapes:         s.coder,
		Compression:    s.coder.Compression(),
		MaxFragment:    own.MaxFragment,
		MaxShapes:      max(own.MaxShapes, int(frame.EarlyLimits.MaxShapes)),
		MaxShapeOctets: max(own.MaxShapeBytes, int64(frame.EarlyLimits.MaxShapeBytes)),
		MaxOpen:        2*(own.MaxExchanges+s.mayBegin()) + 64,
		MaxHeld:        own.MaxHeld,
		Reuse:          true,
	})}
}

// run reads frames until the direction ends, or nothing has come for a while. Another goroutine
// then waits in this one's place, whose stack is as small as it was in the beginning.
func (r *streamReader) run() {
	idle, err := r.loop()
	if idle {
		go r.wait()
		return
	}
	r.end(err)
}

// wait waits for the first bytes after a while. Little is on its stack meanwhile.
func (r *streamReader) wait() {
	if err := r.input.more(); err != nil && !r.mayGoOn(err) {
		r.end(r.ended(err))
		return
	}
	r.came = true
	r.run()
}

// end is the end of the direction.
func (r *streamReader) end(err *Error) {
	s := r.s
	lost := err != nil && err.Code == Closed && !s.ending.hasFailed()
	if err != nil {
		s.fail(err)
	}
	if lost {
		<-s.mute.wait() // it finds out now, and knows what never left
	}
	s.deafen()
	if s.ending.hasFailed() && !r.closed && err != nil && err.Code != Closed {
		_, _ = io.CopyN(io.Discard, r.input.conn, drainOctets)
	}
	s.directionEnded()
}

func (r *streamReader) loop() (idle bool, _ *Error) {
	for !r.closed {
		took, err := r.next()
		if err != nil {
			return false, err
		}
		if took {
			continue
		}
		if idle, err := r.more(); err != nil {
			return false, r.ended(err)
		} else if idle {
			return true, nil
		}
	}
	return false, nil
}

// next takes the next frame; it is false if there is none yet.
func (r *streamReader) next() (took bool, _ *Error) {
	in := r.input
	if r.dec.At() == 0 && !frame.MayOpen(in.ahead()) {
		return false, r.stranger()
	}
	f, err := r.dec.Next(in.ahead())
	if err != nil {
		return false, broke(err, r.dec.At())
	}
	if f.Octets == 0 {
		return false, nil
	}
	if err := r.handle(&f); err != nil {
		return false, broke(err, f.At)
	}
	in.r += f.Octets
	return true, nil
}

// stranger is the error of a peer that does not begin with a hello, such as an HTTP proxy that was
// taken for the end of a stream: it speaks no hhfr, and has processed no message.
func (r *streamReader) stranger() *Error {
	return &Error{Code: Protocol, Err: errors.New("does not begin with the peer's hello"), unprocessed: true}
}

// more waits for at least one further byte, and gives back meanwhile what is idle. It returns idle
// when nothing is in use any more.
func (r *streamReader) more() (idle bool, _ error) {
	for {
		if r.rest() {
			return true, nil
		}
		err := r.input.more()
		if err == nil {
			r.came = true
		}
		if err == nil || !r.mayGoOn(err) {
			return false, err
		}
		if r.waits.IsZero() {
			r.wake(time.Time{}) // somebody else's deadline
		}
	}
}

// mayGoOn reports whether an error is that of a deadline at which the direction does not end.
func (r *streamReader) mayGoOn(err error) bool {
	r.due = true
	return errors.Is(err, os.ErrDeadlineExceeded) && !r.s.ending.hasFailed()
}

// rest looks now and then for lanes that are idle, as long as any memory is in use, and gives
// buffers back once nothing has come for a while: it is idle then.
func (r *streamReader) rest() (idle bool) {
	switch {
	case r.restAt.IsZero():
		if r.came {
			r.restAt = time.Now().Add(quietAt(r.dec.At()))
		}
	case r.due && !time.Now().Before(r.restAt):
		idle = !r.dec.Rest() && !r.came && len(r.input.ahead()) == 0
		r.restAt, r.came = time.Now().Add(quietAt(r.dec.At())), false
		if idle {
			r.restAt = time.Time{}
			r.input.rest()
			r.s.exchanges.rest()
			r.s.queue.rest()
		}
	}
	if !r.waits.Equal(r.restAt) {
		r.waits = r.restAt
		r.wake(r.restAt)
	}
	return idle
}

// wake has the reader wait for bytes until then, unless the stream has failed, which sets an end.
func (r *streamReader) wake(at time.Time) {
	d := &r.s.ending
	d.mu.Lock()
	defer d.mu.Unlock()
	r.due = false
	if !d.failed.Load() {
		r.due = r.s.conn.SetReadDeadline(at) != nil // then nobody tells
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
		if err := r.event(f, &f.Events[i]); err != nil {
			var own *Error
			if errors.As(err, &own) {
				return own
			}
			return &Error{Code: Protocol, At: f.At, Err: err}
		}
	}
	return nil
}

// note counts a frame and tells who listens.
func (r *streamReader) note(f *wire.DecodedFrame) {
	last := f.Message != nil && f.Last
	r.s.traffic.read(f.Kind, f.Octets, last)
	if c := r.s.cfg.Carried; c != nil {
		c.Received.Wire.Add(int64(f.Octets))
		if last {
			c.Received.Messages.Add(1)
		}
	}
	if r.s.cfg.Events == nil {
		return
	}
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
	r.s.cfg.Events(ev)
}

func (r *streamReader) event(f *wire.DecodedFrame, ev *wire.Event) error {
	s := r.s
	switch ev.Kind {
	case wire.Fragment:
		return r.fragment(ev, f.Octets)
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
	case wire.KeptLong:
		if s.cfg.Kept != nil {
			s.cfg.Kept(ev.Kept)
		}
	case wire.Wanted:
		s.queue.wish(resyncAsked)
	case wire.Synced:
		if !ev.Verdict.Right {
			return &Error{Code: WrongCheck, At: f.At, Err: errors.New("check of the sync frame differs")}
		}
	case wire.Closed:
		return r.close(f.At, ev)
	case wire.Met:
		return s.late(ev.Hello)
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
func (r *streamReader) inbound(m *wire.IncomingMessage) (in *inbound, err error) {
	if in := inboundOf(m); in != nil {
		return in, nil
	}
	if m.Reply {
		err = r.s.exchanges.expect(m)
	} else {
		err = r.s.exchanges.take(m)
	}
	if err != nil {
		return nil, err
	}
	return inboundOf(m), nil
}

// fragment passes content on to its message.
func (r *streamReader) fragment(ev *wire.Event, octets int) error {
	e := &r.s.exchanges
	if ev.Head.Reset || ev.Body.Reset { // maybe since the lane is another client's
		r.s.heads[ev.Message.Lane%lastHeads].clients.Add(1)
	}
	if ev.First && ev.Last && ev.Err == nil && ev.Message.User == nil {
		return e.arrive(ev, octets, len(r.input.ahead()) == octets)
	}
	in, err := r.inbound(ev.Message)
	if err != nil {
		return err
	}
	in.carried(octets)
	switch {
	case ev.Err == nil:
	case errors.Is(ev.Err, &wire.Error{Code: wire.Forgotten}):
		e.lose(in)
	default:
		return ev.Err
	}
	if ev.Last {
		e.whole(in)
	}
	if in.deliver(ev) {
		return beyondCredit(in)
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
	r.s.endSoon()
	return nil
}

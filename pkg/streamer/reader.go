package streamer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// input reads a direction into a buffer that grows to the longest frame in it.
type input struct {
	conn net.Conn
	buf  []byte
	r, w int
	at   int64 // the offset of buf[r]
}

// ahead are the octets that are there.
func (in *input) ahead() []byte { return in.buf[in.r:in.w] }

func (in *input) skip(n int) {
	in.r += n
	in.at += int64(n)
}

// more waits for at least one further octet. The frame that is under way has at most frame.MaxBody octets and its beginning: its length was looked at.
func (in *input) more() error {
	if in.r > 0 {
		in.w = copy(in.buf, in.buf[in.r:in.w])
		in.r = 0
	}
	if in.w == len(in.buf) {
		grown := make([]byte, max(minReadBuffer, 2*len(in.buf)))
		copy(grown, in.buf)
		in.buf = grown
	}
	n, err := in.conn.Read(in.buf[in.w:])
	in.w += n
	if n > 0 {
		return nil
	}
	return err
}

// receiver is what the reader goroutine alone knows.
type receiver struct {
	s         *Stream
	input     *input
	numbering frame.Numbering
	checks    frame.Checks
	pieces    frame.Pieces
	announced map[uint64][32]byte // fingerprints by number
	asked     map[uint64][32]byte // those of them, and of what is held, that the other end was asked for
	held      held
	syncEnd   int64
	epoch     uint64    // syncs so far
	closed    bool      // the other end's close has come
	restAt    time.Time // when to look for idle lanes; zero: no memory is in use
	waits     time.Time // until when the connection waits for octets
}

// run reads frames until the direction ends. It never waits for anything but octets.
func (r *receiver) run() {
	s := r.s
	err := r.loop()
	s.mu.Lock()
	lost := err != nil && err.Code == Closed && !s.failed
	if err != nil {
		s.failLocked(err)
	}
	s.mu.Unlock()
	if lost {
		<-s.mute // it finds out now, and knows what never left
	}
	s.mu.Lock()
	s.deafenLocked()
	drain := s.failed && !r.closed && err != nil && err.Code != Closed
	s.mu.Unlock()
	if drain {
		_, _ = io.CopyN(io.Discard, r.input.conn, drainOctets)
	}
}

func (r *receiver) loop() *Error {
	in := r.input
	for {
		f, n, err := r.next()
		if err != nil {
			return broke(err, in.at)
		}
		if n == 0 {
			if err := r.more(); err != nil {
				return r.ended(err)
			}
			continue
		}
		if err := r.handle(f, n); err != nil {
			return broke(err, in.at)
		}
		in.skip(n)
		if r.closed {
			return nil
		}
	}
}

// more waits for at least one further octet, and makes the memories of idle lanes small meanwhile.
func (r *receiver) more() error {
	for {
		r.rest()
		err := r.input.more()
		if !errors.Is(err, os.ErrDeadlineExceeded) || r.s.hasFailed() {
			return err
		}
	}
}

// rest looks now and then for lanes that are idle, as long as any memory is in use.
func (r *receiver) rest() {
	if now := time.Now(); !r.restAt.IsZero() && !now.Before(r.restAt) {
		r.restAt = time.Time{}
		if r.s.packer.Rested() {
			r.restAt = now.Add(memoryIdle / 2)
		}
	}
	if !r.waits.Equal(r.restAt) {
		r.waits = r.restAt
		r.s.wakeReader(r.restAt)
	}
}

// wakeReader has the reader wait for octets until then at most, unless the stream has failed, which sets an end of its own.
func (s *Stream) wakeReader(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failed {
		_ = s.conn.SetReadDeadline(at)
	}
}

func (s *Stream) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// next is the frame at hand; a data frame has been handled already.
func (r *receiver) next() (frame.Frame, int, error) {
	in := r.input
	b := in.ahead()
	most := r.s.cfg.Limits.MaxFragment
	if len(b) == 0 || b[0] < 0x80 {
		return frame.Parse(b, in.at, most)
	}
	d, n, err := frame.ParseData(b, in.at, most)
	if err == nil && n > 0 {
		err = r.data(&d, n)
	}
	return nil, n, err
}

// ended is what the end of the connection means when no close frame came.
func (r *receiver) ended(err error) *Error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &Error{Code: Closed, At: r.input.at + int64(len(r.input.ahead())), Err: err}
}

func (r *receiver) handle(f frame.Frame, n int) error {
	at := r.input.at
	if f == nil {
		return nil
	}
	ev := Event{Dir: Received, Kind: f.Kind(), At: at, Octets: n}
	var err error
	switch f := f.(type) {
	case frame.Shape:
		err = r.shape(f)
	case frame.Sync:
		err = r.sync(f, n)
	case frame.Ack:
		if r.s.cfg.Acks != nil {
			r.s.cfg.Acks(bytes.Clone(f.Octets))
		}
	case frame.Cancel:
		ev.Lane, ev.Exchange, ev.Reply = f.Message.Lane, f.Message.Exchange, f.Message.Reply
		r.cancel(f)
	case frame.Close:
		err = r.close(f)
	case frame.Idle:
		r.idled(f.Lanes)
	case frame.Hello:
		err = fmt.Errorf("second hello")
	}
	if err == nil {
		r.s.note(ev)
	}
	return protocol(err, at)
}

// protocol makes the error of a broken rule of what is not yet an error of its own.
func protocol(err error, at int64) error {
	var own *Error
	var f *frame.Error
	if err == nil || errors.As(err, &own) || errors.As(err, &f) {
		return err
	}
	return &Error{Code: Protocol, At: at, Err: err}
}

func (r *receiver) sync(f frame.Sync, n int) error {
	s, at := r.s, r.input.at
	var differ string
	switch {
	case f.Word != s.peer.Word:
		differ = "sync word"
	case f.Offset != uint64(at):
		differ = "offset"
	case f.Session != s.peer.Session:
		differ = "session"
	case f.Representation != s.peer.Representation:
		differ = "representation"
	case f.Stages != s.peer.Stages:
		differ = "stages"
	case f.Responder != s.peer.Responder:
		differ = "role"
	}
	if right, _ := r.checks.Agree(f); differ == "" && !right {
		differ = "check"
	}
	if differ != "" {
		return &Error{Code: WrongCheck, At: at, Err: fmt.Errorf("%s of the sync frame differs", differ)}
	}
	r.checks.Next(f)
	r.numbering.Sync(f)
	r.epoch++
	if s.packer != nil {
		s.packer.Synced(func(lane uint64) bool { return r.held.lanes[lane] != nil })
	}
	if err := r.list(f.Shapes, at); err != nil {
		return err
	}
	r.syncEnd = at + int64(n)
	return r.release()
}

func (r *receiver) close(f frame.Close) error {
	if right, _ := r.checks.AgreeClose(f); f.Code == frame.CloseDone && !right {
		return &Error{Code: WrongCheck, At: r.input.at, Err: errors.New("check of the close frame differs")}
	}
	r.closeNow(f)
	return nil
}

// closeNow ends the direction.
func (r *receiver) closeNow(f frame.Close) {
	s := r.s
	r.closed = true
	r.giveUpHeld()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Code == frame.CloseDone {
		s.readAll = s.said
		s.drainLocked()
	} else {
		s.failLocked(&Error{Code: closeBase + Code(f.Code), Remote: true, Err: said(f.Text)})
	}
}

// cancel ends one message. Those that are not known (any more) are ignored.
func (r *receiver) cancel(f frame.Cancel) {
	s := r.s
	open := r.checks.Cancel(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &Error{Code: Code(f.Code), Remote: true, Err: said(f.Text)}
	request := f.Message
	request.Reply = false
	if l := s.lanes[request.Lane]; f.Refused && !f.Message.Reply && l != nil && l.placed {
		s.failLocked(e)
		return
	}
	switch {
	case !f.Refused:
		if !open {
			return
		}
		if in := s.in[f.Message]; in != nil {
			delete(s.in, f.Message)
			in.whole = true
			s.failInLocked(in, e)
			s.overInLocked(in, e)
		}
	case f.Message.Reply:
		if x := s.exchanges[request]; x != nil {
			s.lostLane(f)
			s.endExchangeLocked(x, e)
		}
	default:
		if c := s.calls[request]; c != nil {
			s.lostLane(f)
			s.endCallLocked(c, e)
		} else if out := s.outs[request]; out != nil {
			s.dropLocked(out, e, frame.Aborted)
		} else {
			s.refusedLocked(request, e)
		}
	}
}

// lostLane has a lane's memory dropped, as the other end may not know what a message it did not process left there.
func (s *Stream) lostLane(f frame.Cancel) {
	if s.packer != nil && f.Code == frame.Unprocessed {
		s.packer.Restart(f.Message.Lane)
	}
}

// overInLocked ends the exchange of an incoming message that its sender gave up.
func (s *Stream) overInLocked(in *inbound, e *Error) {
	if in.x != nil {
		s.uncountLocked(in.x)
		s.endExchangeLocked(in.x, e)
	}
	if in.call != nil {
		s.endCallLocked(in.call, e)
	}
}

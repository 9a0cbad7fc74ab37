package streamer

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// messageConn is what a connection has besides, if messages can travel over it each for itself (docs/wire-format.md, section 13): package udp makes such.
type messageConn interface {
	// MayUnorder tells whether the other methods work: a connection around another one has them, whatever that can.
	MayUnorder() bool
	// Unorder has Read give messages as they come, from now on, one behind the other. acknowledged is told up to which message the other end has all, by the number that WriteMessages gave; it does not block.
	Unorder(acknowledged func(last uint64))
	// WriteMessages writes the pieces of b that end at ends, each a message of at most maxMessageOctets. n is how many octets of whole messages were taken, last the number of the last one.
	WriteMessages(b []byte, ends []int) (n int, last uint64, err error)
}

// unordered is what a stream has whose messages come each for itself.
type unordered struct {
	conn         messageConn
	acknowledged atomic.Uint64 // up to which message the other end has all

	// Below: under Stream.mu.
	good   map[uint64]bool // shape numbers whose announcement is acknowledged
	wanted fifo[uint64]    // those that messages would use
}

func (s *Stream) mayUnorder() bool {
	c, ok := s.conn.(messageConn)
	return ok && c.MayUnorder()
}

// unorder makes the stream one whose messages come each for itself: both hellos are through, in that order.
func (s *Stream) unorder() {
	s.unordered = &unordered{conn: s.conn.(messageConn), good: map[uint64]bool{}}
	s.unordered.conn.Unorder(func(last uint64) {
		s.unordered.acknowledged.Store(last)
		s.wakeWriter()
	})
}

// Unordered tells that messages come each for itself, none waits for another: [Config.Unordered], and the other end and the connection can do that.
func (s *Stream) Unordered() bool { return s.unordered != nil }

// usable tells whether a message may use a number; if it may not, its shape is announced, for messages to come.
func (s *Stream) usable(number uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unordered
	if number == 0 || u.good[number] {
		return true
	}
	for i := range u.wanted.len() {
		if u.wanted.items[u.wanted.head+i] == number {
			return false
		}
	}
	u.wanted.push(number)
	s.wakeWriter()
	return false
}

// emitter is what Coder.Split hands segments to.
type emitter = func(inHead bool, shape uint64, text bool, data []byte) error

var errNotUsable = errors.New("the number of the shape is not acknowledged")

// split has a message split by the coder. On an unordered stream a part whose shape cannot be used yet goes whole, as text.
func (s *Stream) split(lane uint64, head []byte, body io.Reader, emit emitter) error {
	most := s.maxPayload - segmentRoom
	if s.unordered == nil {
		return s.coder.Split(lane, head, body, most, emit)
	}
	var wholeHead, headBegun, begun bool // the head travels whole; head and body have begun: what form they have stays so
	read := &remembered{from: body}
	err := s.coder.Split(lane, head, read, most, func(inHead bool, shape uint64, text bool, data []byte) error {
		switch {
		case wholeHead && inHead:
			return nil
		case inHead && headBegun || begun || s.usable(shape):
		case inHead:
			wholeHead = true
			return emitText(true, bytes.NewReader(head), most, emit)
		default:
			return errNotUsable
		}
		if headBegun = true; !inHead {
			begun = true
			read.forget()
		}
		return emit(inHead, shape, text, data)
	})
	if errors.Is(err, errNotUsable) {
		return emitText(false, io.MultiReader(bytes.NewReader(read.octets), body), most, emit)
	}
	return err
}

// emitText emits a part as text, at least one segment.
func emitText(inHead bool, part io.Reader, most int, emit emitter) error {
	buf := make([]byte, most)
	for first := true; ; first = false {
		n, err := io.ReadFull(part, buf)
		over := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !over {
			return err
		}
		if n > 0 || first {
			if err := emit(inHead, 0, false, buf[:n]); err != nil {
				return err
			}
		}
		if over {
			return nil
		}
	}
}

// remembered keeps what was read of a body, as long as it may be needed once more.
type remembered struct {
	from   io.Reader
	octets []byte
	gone   bool
}

func (r *remembered) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	if !r.gone {
		r.octets = append(r.octets, p[:n]...)
	}
	return n, err
}

func (r *remembered) forget() { r.octets, r.gone = nil, true }

// longest is the longest payload of a data frame, without what an unordered direction adds: each frame is one message of the connection.
func (s *Stream) longest() int {
	most := int(s.peer.Limits.MaxFragment)
	if s.unordered == nil {
		return most
	}
	return min(most, maxMessageOctets-frame.DataOverhead) - frame.UnorderedOverhead
}

// takesBeyond is how many exchanges, and open messages, an unordered stream takes beyond what its limits say: what frees the room for them may come later than they do.
func (s *Stream) takesBeyond() int {
	if s.unordered == nil {
		return 0
	}
	return maxUnacknowledged
}

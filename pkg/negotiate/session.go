package negotiate

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Agreed is the outcome of a negotiation.
type Agreed struct {
	// HHFR: there is a stream, or there was until Why happened to it.
	HHFR bool
	// Why says what plain SOAP is spoken for; empty while the stream lives.
	Why string
	// Remembered: Why is from an earlier negotiation, nobody was asked.
	Remembered bool
	// Facts are those of the session; nil without HHFR.
	Facts *Facts
}

// Session speaks with one service, over a stream or in plain SOAP. All methods are safe for concurrent use; exchanges run side by side and
// replies may overtake one another.
type Session struct {
	cfg      *Config
	url      *url.URL
	implicit implicit
	stream   *streamer.Stream // nil: plain SOAP from the start
	lane     *streamer.Lane

	mu     sync.Mutex
	agreed Agreed
	closed bool
}

// Agreed tells what was agreed, and why plain SOAP is spoken if it is.
func (s *Session) Agreed() Agreed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.agreed
}

// Stream is the session's stream, for its figures; nil if there never was one.
func (s *Session) Stream() *streamer.Stream { return s.stream }

// Call sends a request and waits for the first octets of its reply. A request without a head goes to the session's URL with the default
// fields; a reply without a head has the default reply head (see [DefaultReplyHead]). The reply's Body must be read to its end or closed, it is an
// io.ReadCloser.
//
// A request that the stream did not carry any octet of goes on as plain SOAP, if its Body can still be had from the start. One that was
// written and not answered is an [Error] with the code FateUnknown, and is never sent twice. What the other end says of one exchange is a
// *[streamer.Error]. A fault is a reply.
func (s *Session) Call(ctx context.Context, m *streamer.Message) (*streamer.Message, error) {
	if err := s.open(); err != nil {
		return nil, err
	}
	if !s.streaming() {
		return s.post(ctx, m)
	}
	head, err := s.implicit.forWire(m.Head)
	if err != nil {
		return nil, err
	}
	body := keep(m.Body)
	reply, err := s.lane.Call(ctx, &streamer.Message{Head: head, Body: body.reader()})
	unsent, failure := s.judge(ctx, err)
	if !unsent {
		body.release()
		return reply, failure
	}
	again, ok := body.again(ctx)
	if !ok {
		return nil, &Error{Code: Unsent, At: -1, Err: err}
	}
	return s.post(ctx, &streamer.Message{Head: m.Head, Body: again})
}

// Send sends a one-way message. It returns once the message is accepted: on a stream, when it is queued; in plain SOAP, when the other end has
// answered that it took it (Refused if it did not). The rest is as with Call.
func (s *Session) Send(ctx context.Context, m *streamer.Message) error {
	if err := s.open(); err != nil {
		return err
	}
	if !s.streaming() {
		return s.postOneWay(ctx, m)
	}
	head, err := s.implicit.forWire(m.Head)
	if err != nil {
		return err
	}
	body := keep(m.Body)
	err = s.lane.Send(ctx, &streamer.Message{Head: head, Body: body.reader()})
	unsent, failure := s.judge(ctx, err)
	if !unsent {
		body.release()
		return failure
	}
	again, ok := body.again(ctx)
	if !ok {
		return &Error{Code: Unsent, At: -1, Err: err}
	}
	return s.postOneWay(ctx, &streamer.Message{Head: m.Head, Body: again})
}

// judge sorts what came of an exchange on the stream. unsent: it did not take place, and plain SOAP is next.
func (s *Session) judge(ctx context.Context, err error) (unsent bool, _ error) {
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, err
	case errors.Is(err, &streamer.Error{Code: streamer.FateUnknown}):
		s.ended()
		return false, &Error{Code: FateUnknown, At: -1, Err: err}
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		s.ended()
		if err := s.open(); err != nil {
			return false, err
		}
		if s.cfg.RequireHHFR {
			return false, &Error{Code: NoHHFR, At: -1, Err: err}
		}
		return true, nil
	}
	return false, err
}

func (s *Session) open() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Code: Closed, At: -1}
	}
	return nil
}

// streaming reports whether the stream lives.
func (s *Session) streaming() bool {
	if s.stream == nil {
		return false
	}
	select {
	case <-s.stream.Done():
		s.ended()
		// A stream that ended still answers Call, with what ended it; only where plain SOAP is wanted is it passed by.
		return s.cfg.RequireHHFR
	default:
		return true
	}
}

// ended notes that plain SOAP is spoken from now on.
func (s *Session) ended() {
	select {
	case <-s.stream.Done():
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agreed.Why != "" {
		return
	}
	s.agreed.Why = "the stream ended"
	if err := s.stream.Err(); err != nil {
		s.agreed.Why += ": " + err.Error()
	}
}

// Close ends the stream, after what it accepted is written, and waits for all that it runs. It is idempotent. Replies that are still read come
// to an end.
func (s *Session) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
	s.mu.Unlock()
	if was || s.stream == nil {
		return nil
	}
	return s.stream.Close()
}

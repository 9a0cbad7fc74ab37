// Package session is the initiator's side of HHFR. A [Dialer] agrees with a service on a [Session].
// The session speaks over the stream that was agreed on, or plain SOAP where anything is missing;
// it reconnects, and continues sequences of earlier runs. A [RoundTripper] puts sessions below an
// http.Client.
package session

import (
	"context"
	"slices"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Session speaks with one service, over a stream or in plain SOAP. All methods are safe for
// concurrent use; exchanges run side by side, and replies may overtake one another.
type Session struct {
	runner
	plainSOAP
	heads   httpmsg.RequestHeads // of requests of net/http
	replies httpmsg.Replies
}

// Call sends a request and waits for the first bytes of its reply. A request without a head goes to
// the session's URL with the default fields; a reply without a head has the default reply head (see
// [negotiate.DefaultReplyHead]). The reply's Body must be read to its end or closed; it is an
// io.ReadCloser.
//
// If the stream carried no byte of a request, the request goes on if its Body can still be read
// from the start: over the next stream if Config.Reconnect brings one, else as plain SOAP. So does,
// as plain SOAP, one that the peer says it did not process, and one that the stream is not for. A
// request that was written and not answered is a [negotiate.Error] with the code FateUnknown, and
// is never sent twice. So is a request that was in flight as plain SOAP when ctx ended; on a stream
// that is a *[streamer.Error] with the code Aborted. An error that the peer reports for one
// exchange is a *[streamer.Error], too. A fault is a reply.
//
// With Config.Assurance the message is in the store before anything of it is sent, and goes over
// streams until it is committed. The errors then are those of [Session.Finish], Unsent for a
// message that is too long or comes too late, and that of ctx, which changes nothing for the
// message. With Config.Ordered alone the message is in no store; it is FateUnknown also when ctx
// ends before there is a reply.
func (s *Session) Call(ctx context.Context, m *streamer.Message) (reply *streamer.Message, err error) {
	if s.outbox != nil {
		sending, err := s.enqueue(ctx, m, true)
		if err != nil {
			return nil, err
		}
		return s.replyTo(ctx, sending)
	}
	err = s.send(ctx, m, func(l *sessionStream, m streamer.Message) (err error) {
		if l == nil {
			reply, err = s.post(ctx, &m)
			return err
		}
		reply, err = l.lane.Call(ctx, &m)
		return err
	})
	return reply, err
}

// Send sends a one-way message. It returns once the message is accepted: on a stream, when it is
// queued; in plain SOAP, when the peer has answered that it took it (Refused if it did not); with
// Config.Assurance, when it is in the store. Otherwise it is like Call. [Session.Post] also reports
// what the stream may still lose.
func (s *Session) Send(ctx context.Context, m *streamer.Message) error {
	if s.outbox != nil {
		sending, err := s.enqueue(ctx, m, false)
		if err == nil {
			err = s.sequenceError(sending.Stored(ctx))
		}
		return err
	}
	return s.send(ctx, m, func(l *sessionStream, m streamer.Message) error {
		if l == nil {
			return s.postOneWay(ctx, &m)
		}
		return l.lane.Send(ctx, &m)
	})
}

// Together calls send, and has the messages that it sends go in as few packets as they fit: see
// [streamer.Stream.Together]. In plain SOAP, and with Config.Assurance, it calls send.
func (s *Session) Together(send func()) {
	if stream := s.Stream(); stream != nil {
		stream.Together(send)
		return
	}
	send()
}

// PostedMessage is a one-way message that was accepted.
type PostedMessage struct {
	on       *streamer.Posted
	s        *Session
	sequence *sequence.Sending
}

// Err returns the error that is known for the message, nil if there is none: see
// streamer.Posted.Err. After [Session.Close] it is final. In plain SOAP it is always nil.
// FateUnknown is a [negotiate.Error] with that code, and so is Unsent: such a message is safe to
// send again.
func (p *PostedMessage) Err() error {
	if p.sequence != nil {
		_, err := p.sequence.Settled()
		return p.s.sequenceError(err)
	}
	if p.on == nil {
		return nil
	}
	err := p.on.Err()
	switch {
	case streamFailed(err, streamer.FateUnknown):
		return coded(negotiate.FateUnknown, err)
	case streamFailed(err, streamer.Unsent):
		return coded(negotiate.Unsent, err)
	}
	return err
}

// Post sends a one-way message as Send does; the result reports later what became of it. With
// Config.Assurance it returns when the message is queued.
func (s *Session) Post(ctx context.Context, m *streamer.Message) (*PostedMessage, error) {
	posted := &PostedMessage{s: s}
	if s.outbox != nil {
		var err error
		posted.sequence, err = s.enqueue(ctx, m, false)
		if err != nil {
			return nil, err
		}
		return posted, nil
	}
	err := s.send(ctx, m, func(l *sessionStream, m streamer.Message) (err error) {
		if l == nil {
			return s.postOneWay(ctx, &m)
		}
		posted.on, err = l.lane.Post(ctx, &m)
		return err
	})
	if err != nil {
		return nil, err
	}
	return posted, nil
}

// send sends a message by the path there is, and by the next one as long as it was not sent.
func (s *Session) send(
	ctx context.Context, m *streamer.Message, by func(*sessionStream, streamer.Message) error,
) error {
	from, again := m.Body, false
	for {
		l, err := s.current(ctx)
		if err != nil {
			_ = httpmsg.CloseReader(from)
			return err
		}
		if l == nil || again || !s.cfg.RequireHHFR && !l.takes(m.Head) {
			return s.plainly(ctx, streamer.Message{Head: m.Head, Body: from}, by)
		}
		head, err := s.headFor(l, m.Head)
		if err != nil {
			_ = httpmsg.CloseReader(from)
			return err
		}
		body := httpmsg.Keep(from)
		err = by(l, streamer.Message{Head: head, Body: body.Reader()})
		unsent, failure := s.judge(ctx, l, &body, err)
		// A peer that did not process it may refuse it again.
		again = !s.cfg.RequireHHFR && isUnprocessed(err)
		if !unsent && !again {
			body.Release()
			return failure
		}
		var ok bool
		if from, ok = body.Again(ctx); !ok {
			return coded(negotiate.Unsent, err)
		}
	}
}

// Close ends the stream, after what it accepted is written, and waits for everything that the
// session runs; calls in progress have 5 seconds for their replies. It is idempotent. Replies of a
// stream that are still being read end. Its error is that of a
// stream that was open until now; errors of earlier streams are in [Session.Agreed].
func (s *Session) Close() error {
	s.mu.Lock()
	was := s.machine.Phase() == machine.Closed
	s.step(machine.Ended{})
	links := slices.Clone(s.before)
	if s.link != nil {
		links = append(links, s.link)
	}
	s.mu.Unlock()
	s.cancel()
	if was {
		return nil
	}
	plain := s.calls.close(s.cfg.Clock)
	if s.outbox != nil {
		s.outbox.sequence().Close()
	}
	var err error
	for _, l := range links {
		was := l.stream.Over()
		if err = l.stream.Close(); was {
			err = nil
		}
		l.used.keep(s.dialer, s.url)
	}
	<-plain
	s.wait.Wait()
	if r := s.referrer.Load(); r != nil {
		r.Close()
	}
	if s.asker != nil {
		s.asker.CloseIdleConnections()
	}
	if s.outbox != nil {
		s.outbox.close() // also the sequence that replaced a lost one meanwhile
	}
	return err
}

// headFor returns the head of a message as it travels on a stream.
func (s *Session) headFor(l *sessionStream, head []byte) ([]byte, error) {
	if l.path == s.implicit.Path {
		return s.implicit.ForWire(head)
	}
	if head == nil {
		return s.implicit.Full, nil
	}
	return httpmsg.TrimHead(head)
}

// HeadersTaken is how many unchanging headers were taken out of messages that this end sent (see
// Config.Headers and Config.Common). In plain SOAP those next to one another count as one.
func (s *Session) HeadersTaken() int64 { return s.taken.Load() }

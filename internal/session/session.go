// Package session is the initiator's side of HHFR. A [Dialer] agrees with a service on a [Session].
// The session speaks over the stream that was agreed on, or plain SOAP where anything is missing;
// it reconnects, and continues sequences of earlier runs. A [RoundTripper] puts sessions below an
// http.Client.
package session

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Session speaks with one service, over a stream or in plain SOAP. All methods are safe for
// concurrent use; exchanges run side by side, and replies may overtake one another.
type Session struct {
	cfg      *Config
	dialer   *Dialer
	url      *url.URL   // as dialed: the sequence and what is remembered belong to it
	nodes    []*url.URL // url, and those of further nodes
	implicit *httpmsg.DefaultHead
	heads    httpmsg.RequestHeads // of requests of net/http
	replies  httpmsg.Replies
	handler  atomic.Pointer[streamer.ExchangeHandler]
	outbox   *outbox // nil: no sequence
	asker    *asker
	client   *http.Client // the client that speaks plain SOAP, through the asker
	calls    *plainCalls
	taken    atomic.Int64 // number of unchanging headers taken out of messages
	referrer atomic.Pointer[unchanging.Referrer]

	ctx    context.Context // done at Close
	cancel context.CancelFunc
	wait   sync.WaitGroup

	mu     sync.Mutex
	node   int // index of the target in nodes
	agreed negotiate.Agreed
	link   *sessionStream   // the current stream; nil: there never was one
	before []*sessionStream // earlier streams that may not have ended yet
	again  chan struct{}    // closed when an attempt to open a new stream is over; nil: no attempt runs
	plain  bool             // plain SOAP from now on
	// undeclared: the stream that the description declares was of no use.
	undeclared bool
	fresh      bool // no call has asked for a stream yet
	asking     bool // a call is asking for a stream
	// unanswered counts calls that asked for a stream and had no answer, since the last stream.
	unanswered    int
	joining       bool // the stream that the answer named is being opened
	portal        bool // the reason for plain SOAP may come from a portal
	closed        bool
	failedStreams atomic.Int32 // streams in a row that made no progress
	progress      int64        // progress of the sequence when the last stream ended
	met           bool         // there was a stream before that the peer accepted
}

// sessionStream is one stream of a session.
type sessionStream struct {
	stream *streamer.Stream
	lane   *streamer.Lane
	path   string // path for messages without a head
	node   *url.URL
	used   usedShapes
	// confirm adds to the facts what the hello of the peer says of them.
	confirm func(negotiate.Facts, *streamer.Hello) negotiate.Facts
	// declared: the description of the service has led here.
	declared bool
	// onePath: the peer takes only requests for path, since others have further handlers to pass.
	onePath bool
}

func newSession(d *Dialer, nodes []*url.URL) *Session {
	u := nodes[0]
	s := &Session{cfg: &d.cfg, dialer: d, url: u, nodes: nodes, implicit: httpmsg.DefaultHeadOf(u),
		calls: newPlainCalls()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.client = d.cfg.HTTPClient
	if d.cfg.Mode != negotiate.Explicit {
		s.asker = newAsker(s, d.cfg.HTTPClient.Transport)
		client := *d.cfg.HTTPClient
		client.Transport = s.asker
		s.client = &client
	}
	if d.cfg.Common != nil {
		client := *s.client
		client.Transport = s.referring(client.Transport)
		s.client = &client
	}
	if d.cfg.Handler != nil {
		s.OnMessage(d.cfg.Handler)
	}
	return s
}

// OnMessage sets the handler of the exchanges that the peer begins, from now on: one-way messages,
// and requests, which are answered by Exchange.Reply. It may be called at any time, also by the
// handler. A message that arrives before there is a handler is dropped; Config.Handler misses none.
// In plain SOAP the peer cannot begin exchanges.
func (s *Session) OnMessage(handler streamer.ExchangeHandler) { s.handler.Store(&handler) }

// serve hands an exchange to the current handler.
func (s *Session) serve(ctx context.Context, x *streamer.Exchange) {
	if s.failedStreams.Load() != 0 { // a stream that carries a message justifies another one
		s.failedStreams.Store(0)
	}
	if h := s.handler.Load(); h != nil && *h != nil {
		(*h)(ctx, x)
	}
}

// Agreed returns what was agreed, and the reason for plain SOAP if that is spoken.
func (s *Session) Agreed() negotiate.Agreed {
	s.mu.Lock()
	defer s.mu.Unlock()
	agreed := s.agreed
	if l := s.link; l != nil && agreed.Facts != nil && l.confirm != nil && isMet(l.stream) {
		hello := l.stream.Hello()
		facts := l.confirm(*agreed.Facts, &hello)
		agreed.Facts = &facts
	}
	agreed.Undecided = s.undecided()
	return agreed
}

// tell calls Config.OnAgreed with how the session speaks now.
func (s *Session) tell() {
	if s.cfg.OnAgreed != nil {
		s.cfg.OnAgreed(negotiate.Origin(s.url), s.Agreed())
	}
}

// Stream returns the session's stream, for its figures; the last one if there were several; nil if
// there never was one, or the next call asks for one.
func (s *Session) Stream() *streamer.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link == nil {
		return nil
	}
	return s.link.stream
}

// HeadersTaken is how many unchanging headers were taken out of messages that this end sent (see
// Config.Headers and Config.Common). In plain SOAP those next to one another count as one.
func (s *Session) HeadersTaken() int64 { return s.taken.Load() }

// Wait waits as long as the peer can begin exchanges, and asks for a stream if no call has done so.
// It waits until ctx is done, whose cause it returns, or until there is no stream and none will
// come, by Config.Reconnect either. Then the error is a [negotiate.Error] with the code NoHHFR that
// gives the reason, or Closed.
func (s *Session) Wait(ctx context.Context) error {
	for {
		l, err := s.current(ctx)
		switch {
		case err != nil:
			return err
		case l == nil && s.claim():
			if err := s.askNow(ctx); err != nil {
				return err
			}
			continue
		case l == nil:
			return &negotiate.Error{Code: negotiate.NoHHFR, At: -1, Err: errors.New(s.Agreed().Why)}
		}
		select {
		case <-l.stream.Done():
		case <-s.ctx.Done():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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
	case errors.Is(err, &streamer.Error{Code: streamer.FateUnknown}):
		return &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: err}
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		return &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err}
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
			return &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err}
		}
	}
}

// takes reports whether the peer takes a request with this head, nil for the default one, from the
// stream.
func (l *sessionStream) takes(head []byte) bool {
	if !l.onePath || head == nil {
		return true
	}
	if rest, post := bytes.CutPrefix(head, []byte("POST ")); post { // as nearly all begin
		if rest, same := bytes.CutPrefix(rest, []byte(l.path)); same && bytes.HasPrefix(rest, []byte(" HTTP/1.1\r\n")) {
			return true
		}
	}
	h, _, err := http1.ParseHead(head, 0)
	if err != nil {
		return true // that is reported elsewhere
	}
	path, _, _ := strings.Cut(string(h.Target()), "?")
	return path == l.path && string(h.Method()) == http.MethodPost
}

func isUnprocessed(err error) bool {
	if err == nil {
		return false
	}
	var e *streamer.Error
	return errors.As(err, &e) && e.Code == streamer.Unprocessed && e.Remote
}

// judge classifies the outcome of an exchange on a stream that had a body; nil: none that is kept.
// unsent: the exchange did not take place, and the next path is to be tried.
func (s *Session) judge(
	ctx context.Context, l *sessionStream, body *httpmsg.KeptBody, err error,
) (unsent bool, _ error) {
	switch {
	case err == nil:
		s.recordProgress(l)
		return false, nil
	case ctx.Err() != nil:
		return false, err
	case errors.Is(err, &streamer.Error{Code: streamer.FateUnknown}):
		s.over(l)
		return false, &negotiate.Error{Code: negotiate.FateUnknown, At: -1, Err: err}
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}) && body != nil && body.Failed():
		return false, &negotiate.Error{Code: negotiate.Unsent, At: -1, Err: err} // no fault of the stream
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		s.lost(l)
		return true, nil
	}
	return false, err
}

// Close ends the stream, after what it accepted is written, and waits for everything that the
// session runs; calls in progress have 5 seconds for their replies. It is idempotent. Replies of a
// stream that are still being read end. Its error is that of a
// stream that was open until now; errors of earlier streams are in [Session.Agreed].
func (s *Session) Close() error {
	s.mu.Lock()
	was := s.closed
	s.closed = true
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
		s.keepUsed(l)
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

package hhfr

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Message is a message of a capture ([Decode]), or one that the peer began ([Client.Messages]). It
// is valid until the next one is taken.
type Message struct {
	// Target is the request target of HTTP, such as the path of the service; "": not known, or a
	// reply.
	Target string
	// Action is the SOAP action of a request; "": none.
	Action string
	// Status is the HTTP status of a reply; 0: this is a request.
	Status int
	// Header are the HTTP fields.
	Header http.Header
	// Body is the envelope. It need not be closed. If the body of a message that the peer began
	// breaks off, the error is an [Error] of code FateUnknown.
	Body io.Reader
	// OneWay: no reply is expected.
	OneWay bool

	// Session is the session of a capture's message, as a UUID; "": plain SOAP, or no capture.
	Session string
	// Exchange numbers the exchanges of a capture from 1: a request and its reply have the same
	// one; 0: a negotiation, or no capture.
	Exchange int
	// Time is the time of the first byte; From and To are the endpoints. They are zero if a capture
	// does not have them.
	Time     time.Time
	From, To netip.AddrPort
	// Err is the reason why Body is not the message as it was sent: bytes or a shape are missing,
	// or a check failed; nil: it is as sent, as far as the capture shows.
	Err error

	exchange *streamer.Exchange // nil: of a capture
	done     chan struct{}      // closed when the message is no longer used
}

// describe sets the fields that a head determines.
func (m *Message) describe(octets []byte) {
	m.Header = http.Header{}
	head, _, err := http1.ParseHead(octets, 0)
	if err != nil {
		return
	}
	for _, f := range head.Fields() {
		m.Header.Add(string(f.Name), string(f.Unfolded()))
	}
	if head.IsReply() {
		m.Status = head.Status()
		return
	}
	m.Target = string(head.Target())
	if m.Action = soap.ParseAction(m.Header.Get("SOAPAction")); m.Action == "" {
		m.Action = soap.ParseContentType(m.Header.Get("Content-Type")).Action
	}
}

// Reply answers a request that the peer began, once. ctx bounds the wait for space in the stream.
// Errors are *[Error]: Invalid for a message that expects no reply, or has one; Refused if the peer
// no longer waits.
func (m *Message) Reply(ctx context.Context, r *Reply) error {
	switch {
	case r == nil:
		return invalid(errors.New("no reply"))
	case m.exchange == nil || m.OneWay:
		_ = closeBody(r.Body)
		return invalid(errors.New("a message that wants no reply"))
	case ctx == nil:
		_ = closeBody(r.Body)
		return errNoContext
	}
	status, header := r.Status, r.Header.Clone()
	if status == 0 {
		status = http.StatusOK
	}
	body, version, err := recognized(ctx, context.Background(), r.Body)
	if err != nil {
		return &Error{Code: Unsent, Err: err}
	}
	if header.Get("Content-Type") == "" && body != nil {
		contentType, err := soap.ContentType(version, "")
		if err != nil {
			return invalid(err)
		}
		header = withField(header, "Content-Type", contentType)
	}
	err = m.exchange.Reply(ctx, &streamer.Message{Head: httpmsg.ReplyHead(status, header), Body: body})
	if errors.Is(err, &streamer.Error{Code: streamer.NoReply}) {
		return invalid(err)
	}
	return fault(err)
}

func withField(header http.Header, name, value string) http.Header {
	if header == nil {
		header = http.Header{}
	}
	header.Set(name, value)
	return header
}

// serve passes on a message that the peer began.
func (c *Client) serve(ctx context.Context, x *streamer.Exchange) {
	m := &Message{OneWay: x.OneWay(), exchange: x, Body: http.NoBody, done: make(chan struct{})}
	head := x.Message().Head
	if head == nil {
		head = negotiate.DefaultRequestHead(c.url.EscapedPath())
	}
	m.describe(head)
	if b := x.Message().Body; b != nil {
		m.Body = &received{Reader: b}
	}
	select {
	case c.incoming <- m:
	case <-c.life.Done():
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-m.done:
	case <-c.life.Done(): // possibly by the receiver of messages
	case <-ctx.Done():
	}
}

// Messages returns what the peer begins: one-way messages, and requests, which [Message.Reply]
// answers. They wait until somebody takes them. If there is no stream yet, Messages asks for one.
// It ends when the client is closed, and when the peer can no longer send; in plain SOAP the peer
// never can. A request without an answer when the next message is taken has failed for the peer.
// Messages that arrive close together may overtake one another. Several goroutines may range at
// once, each over some of the messages.
func (c *Client) Messages() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		if !c.isDialed() {
			return
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.waitForEnd(ctx)
		}()
		defer func() {
			cancel()
			<-ended
		}()
		for {
			select {
			case m := <-c.incoming:
				if !take(m, yield) {
					return
				}
			case <-ended:
				return
			}
		}
	}
}

// waitForEnd waits as long as the peer can begin something. Config.OnPlain learns why plain SOAP is
// used.
func (c *Client) waitForEnd(ctx context.Context) {
	for {
		changed := c.changed.next()
		err := c.session.Wait(ctx)
		if !errors.Is(err, &negotiate.Error{Code: negotiate.NoHHFR}) || !c.session.Agreed().Undecided {
			return
		}
		select { // a call asks for a stream
		case <-changed:
		case <-c.life.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// signal wakes all waiting goroutines.
type signal struct {
	mu sync.Mutex
	ch chan struct{}
}

// next is closed when fire is called next.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}

// take yields a message.
func take(m *Message, yield func(*Message) bool) bool {
	defer close(m.done)
	return yield(m)
}

package hhfr

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Client calls one service: over a stream if the peer agrees, otherwise in plain SOAP. [Dial] makes
// one; those of the zero value fail as Invalid, and it has no messages. All methods are safe for
// concurrent use; exchanges run concurrently, and replies may overtake one another.
type Client struct {
	cfg      Config
	url      *url.URL
	session  *session.Session
	http     *http.Transport
	replies  httpmsg.Replies
	made     atomic.Pointer[madeHead]
	tally    tally
	incoming chan *Message
	changed  signal // fires when the session may have a stream

	life   context.Context // until Close is called
	end    context.CancelFunc
	close  sync.Once
	closed error
}

// Dial opens a client for the service at an http or https URL; cfg may be nil. ctx bounds Dial
// only. Errors are *[Error]: Invalid; Unreachable; NoHHFR with a guarantee or order; Unsent if ctx
// ended or the store failed. The caller must call Close.
func Dial(ctx context.Context, url string, cfg *Config) (*Client, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	c := &Client{incoming: make(chan *Message)}
	c.life, c.end = context.WithCancel(context.Background())
	if cfg != nil {
		c.cfg = *cfg
	}
	var err error
	if c.url, err = parseURL(url); err != nil {
		return nil, err
	}
	c.http = c.cfg.transport()
	below, err := c.cfg.session(&http.Client{
		Transport: c.http,
		// A redirection is a reply, as on a stream: following it could drop the body.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	if err != nil {
		return nil, err
	}
	below.Handler, below.Stream.Carried = c.serve, &c.tally.streams
	tell := below.OnAgreed
	below.OnAgreed = func(origin string, a negotiate.Agreed) {
		c.changed.fire()
		if tell != nil {
			tell(origin, a)
		}
	}
	if c.session, err = session.Dial(ctx, url, below); err != nil {
		c.http.CloseIdleConnections()
		return nil, fault(err)
	}
	return c, nil
}

// Call sends a message to the service at an http or https URL, by a [Client] of its own, and
// returns the reply. body is an envelope, or a [Request] that says more. Errors are those of [Dial]
// and [Client.Call].
func Call[B string | []byte | *Request](ctx context.Context, url string, body B) (*Reply, error) {
	var req *Request
	switch b := any(body).(type) {
	case string:
		req = &Request{Body: Body(b)}
	case []byte:
		req = &Request{Body: Body(b)}
	case *Request:
		req = b
	}
	c, err := Dial(ctx, url, nil)
	if err != nil {
		req.drop()
		return nil, err
	}
	reply, err := c.Call(ctx, req)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	reply.Body = &received{Reader: reply.Body, over: func() { _ = c.Close() }}
	return reply, nil
}

// Call sends a request and waits for the head of its reply, whose Body must be read to its end or
// closed. Neither an HTTP status nor a fault is an error, and redirections are not followed. ctx
// bounds the whole exchange, including the body of the reply.
//
// Errors are *[Error]: Invalid, Unreachable, Unsent, FateUnknown, Refused, TooLarge; with a
// guarantee also Kept and NoHHFR. A request of which the stream did not carry a byte is retried:
// over the next stream within Config.Reconnect, then as plain SOAP. A request that was sent in part
// is never sent again without a guarantee.
func (c *Client) Call(ctx context.Context, req *Request) (*Reply, error) {
	m, err := c.message(ctx, req)
	if err != nil {
		return nil, err
	}
	c.tally.begin()
	reply, err := c.call(ctx, &m)
	if err != nil {
		c.tally.end()
		return nil, err
	}
	all := new(struct { // in one piece of memory
		Reply
		received
	})
	if all.Status, all.Header, err = c.replies.Head(reply); err != nil {
		c.tally.end()
		return nil, fault(err)
	}
	all.Reader, all.length = http.NoBody, reply.KnownLength()
	if reply.Body != nil {
		all.Reader = reply.Body
	}
	all.tally.Store(&c.tally)
	all.Body = &all.received
	return &all.Reply, nil
}

// call exchanges the message. Under a guarantee the message is in the store once Begin returns; the
// end of ctx then no longer affects it.
func (c *Client) call(ctx context.Context, m *streamer.Message) (*streamer.Message, error) {
	if c.cfg.Guarantee == 0 {
		reply, err := c.session.Call(ctx, m)
		return reply, fault(err)
	}
	pending, err := c.session.Begin(ctx, m)
	if err != nil {
		return nil, fault(err)
	}
	reply, err := pending.Reply(ctx)
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil, &Error{Code: Kept, Sent: true, Err: err}
	}
	return reply, fault(err)
}

// Send sends a message that expects no reply. It returns when the message is accepted: by a stream,
// when it is queued; in plain SOAP, when the peer has confirmed it; with a guarantee, when it is in
// the store. Errors are those of [Client.Call].
func (c *Client) Send(ctx context.Context, req *Request) error {
	m, err := c.message(ctx, req)
	if err != nil {
		return err
	}
	c.tally.begin()
	defer c.tally.end()
	return fault(c.session.Send(ctx, &m))
}

// SendAll sends messages as [Client.Send] does, in their order; on a stream they go in as few
// packets as they fit, where a loop of Send lets the first go while the next are encoded. It
// returns how many were accepted, all of them if the error is nil. Otherwise the next one failed
// with that error, and those behind it were not sent.
func (c *Client) SendAll(ctx context.Context, reqs ...*Request) (accepted int, err error) {
	send := func() {
		for accepted < len(reqs) && err == nil {
			if err = c.Send(ctx, reqs[accepted]); err == nil {
				accepted++
			}
		}
	}
	if c.isDialed() {
		c.session.Together(send)
	} else {
		send() // it fails
	}
	for _, req := range reqs[min(accepted+1, len(reqs)):] {
		req.drop()
	}
	return accepted, err
}

// message converts a request, unless ctx has ended.
func (c *Client) message(ctx context.Context, req *Request) (m streamer.Message, _ error) {
	switch {
	case req == nil:
		return m, invalid(errors.New("no request"))
	case !c.isDialed():
		req.drop()
		return m, invalid(errors.New("a Client that was not dialed"))
	case ctx == nil:
		req.drop()
		return m, errNoContext
	case ctx.Err() != nil:
		_ = closeBody(req.Body)
		return m, &Error{Code: Unsent, Err: context.Cause(ctx)}
	}
	return req.message(ctx, c.life, c.url, &c.cfg, &c.made)
}

// isDialed reports whether [Dial] made the client.
func (c *Client) isDialed() bool { return c != nil && c.session != nil }

// finishing bounds how long Close waits for messages under a guarantee.
const finishing = 10 * time.Second

// Close ends the client after what it accepted is written, and waits for all of its goroutines.
// Calls in progress have 5 seconds for their replies. Replies that a stream still carries end. With
// a guarantee, Close waits up to 10 seconds for the service to take the pending messages. If some
// are left, the error is Kept, and the next client with the same store and URL sends them. Close is
// idempotent.
func (c *Client) Close() error {
	if !c.isDialed() {
		return nil
	}
	c.close.Do(func() {
		c.end()
		if c.cfg.Guarantee != 0 {
			ctx, cancel := context.WithTimeout(context.Background(), finishing)
			defer cancel()
			if c.closed = fault(c.session.Finish(ctx)); ctx.Err() != nil {
				c.closed = &Error{Code: Kept, Sent: true, Err: context.Cause(ctx)}
			}
		}
		if err := c.session.Close(); c.cfg.Guarantee == 0 {
			c.closed = fault(err)
		}
		c.http.CloseIdleConnections()
	})
	return c.closed
}

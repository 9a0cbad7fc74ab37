package soapjms

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/Azure/go-amqp"
	"github.com/google/uuid"
)

// credit is how many replies may come before the first is taken.
const credit = 256

// usualWait is how long a request may take with its reply, where it has no time to live.
const usualWait = time.Minute

// RequesterConfig is what a [Requester] is made of.
type RequesterConfig struct {
	// Queues have the requests, and the replies. Required.
	Queues Queues
	// Address is where the service is.
	Address Address
	// OneWay: there are no replies. A request is answered by status 202 when the broker has it.
	OneWay bool
	// Paths: a request is for the service that its path names, where the address names none.
	Paths bool
	// Content is how messages go, beside XML, where the server agreed to that; nil: not at all.
	Content ContentForm
	// Log hears of how they go. Required.
	Log *slog.Logger
}

// Requester sends requests to a queue, and waits for the replies. It implements
// [http.RoundTripper], and ignores the hosts of requests, and their paths but for Paths. It is safe
// for concurrent use.
//
// A request that the broker does not have, or may not have as the connection ended, is sent again
// after a pause, as long as there is time. What it has is not: a service may have handled it. Where
// the address names the queue of replies, they are waited for over the next connection, too; where
// it does not, the queue of the connection is gone with it, and so are its replies (NoReply).
type Requester struct {
	cfg    RequesterConfig
	prefix string        // of the ids of its requests
	limit  time.Duration // of a request with its reply
	wait   sync.WaitGroup

	agreement contentAgreement
	saved     savings
	open      context.Context // done when it is closed
	shut      context.CancelFunc

	dialing sync.Mutex
	linked  bool // it was

	mu      sync.Mutex
	closed  bool
	next    int
	link    *attached // nil: none
	waiting map[string]*awaited
}

// awaited is a request that waits for its reply.
type awaited struct {
	id      string
	reply   chan *amqp.Message
	refused chan *amqp.Message // the reply that its content was not read
	left    bool               // a broker has it, or may have it
}

// attached is a link, once it is there.
type attached struct {
	QueueLink
	ended chan struct{} // closed when nothing more comes from it
	err   error         // why
}

// NewRequester makes one; it connects when it is used. The caller closes it.
func NewRequester(cfg RequesterConfig) *Requester {
	open, shut := context.WithCancel(context.Background())
	return &Requester{cfg: cfg, open: open, shut: shut, prefix: "ID:" + uuid.NewString() + ":",
		limit: cmp.Or(cfg.Address.TimeToLive, usualWait), waiting: map[string]*awaited{}}
}

// RoundTrip implements [http.RoundTripper]. Errors: Unreachable, Refused, TooLarge, NoReply,
// Malformed, and the cause of the context.
func (c *Requester) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := bodyToSend(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(r.Context(), c.limit, &Error{Code: NoReply,
		Err: fmt.Errorf("within %v from %s; it may have been handled", c.limit, c.cfg.Address)})
	defer cancel()
	w := c.expect()
	defer c.forget(w)
	if m := c.packed(ctx, r, body); m != nil {
		reply, err := c.exchange(ctx, m, w, w.refused)
		why := refused(reply)
		if errors.Is(err, &Error{Code: NoReply}) { // perhaps nobody reads content any more
			c.disagree(err)
		}
		if why == nil {
			return c.response(reply, r, err)
		}
		c.disagree(why)
	}
	m := c.request(r, body)
	if c.cfg.Content != nil {
		m.ApplicationProperties[propReads] = true
	}
	// It has the id of the content: another server may have handled that, and not have said so.
	reply, err := c.exchange(ctx, m, w, nil)
	return c.response(reply, r, err)
}

// request is one of HTTP as a message.
func (c *Requester) request(r *http.Request, body []byte) *amqp.Message {
	a := c.cfg.Address
	if c.cfg.Paths && a.Service == "" {
		a.Service = strings.TrimPrefix(r.URL.RequestURI(), "/")
	}
	return a.request(r, body)
}

// response is the reply to a request, or what became of that instead.
func (c *Requester) response(reply *amqp.Message, r *http.Request, err error) (*http.Response, error) {
	switch {
	case err != nil:
		return nil, err
	case reply == nil:
		return &http.Response{Status: "202 Accepted", StatusCode: http.StatusAccepted, Proto: "HTTP/1.1",
			ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	plain, _, err := unpacked(c.cfg.Content, reply)
	if err != nil {
		c.disagree(err)
		return nil, &Error{Code: Malformed, Err: fmt.Errorf("the request was handled, but its reply cannot be read: %w",
			err)}
	}
	return response(plain, r)
}

// exchange sends a message and waits for the reply, or for the one at refused; it is nil without an
// error where there is none.
func (c *Requester) exchange(ctx context.Context, m *amqp.Message, w *awaited, refused <-chan *amqp.Message) (
	*amqp.Message, error) {
	m.Properties.MessageID, m.Properties.CorrelationID = w.id, w.id
	link, err := c.send(ctx, m, w)
	if err != nil || c.cfg.OneWay {
		return nil, err
	}
	for {
		select {
		case m := <-w.reply:
			return m, nil
		case m := <-refused:
			return m, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-link.ended:
			select {
			case m := <-w.reply: // it came before
				return m, nil
			case m := <-refused:
				return m, nil
			default:
			}
			if c.cfg.Address.ReplyTo == "" {
				return nil, &Error{Code: NoReply, Err: fmt.Errorf("the connection to the broker ended: %w; "+
					"the request may have been handled", link.err)}
			}
			if link, err = c.connected(ctx); err != nil {
				return nil, w.fate(err)
			}
		}
	}
}

// fate is an error of the broker as that of a request: one that a broker may have may be handled.
func (w *awaited) fate(err error) error {
	if !w.left {
		return err
	}
	return &Error{Code: NoReply, Err: errors.New(err.Error() + "; the request may have been handled")}
}

func bodyToSend(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer r.Body.Close()
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
	if err == nil && len(body) > maxMessage {
		err = tooLarge(max(len(body), int(r.ContentLength)))
	}
	return body, err
}

// expect makes an id, and where its reply comes.
func (c *Requester) expect() *awaited {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	w := &awaited{id: c.prefix + strconv.Itoa(c.next), reply: make(chan *amqp.Message, 1),
		refused: make(chan *amqp.Message, 1)}
	c.waiting[w.id] = w
	return w
}

func (c *Requester) forget(w *awaited) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, w.id)
}

// send has the broker take a message, over the link that it returns.
func (c *Requester) send(ctx context.Context, m *amqp.Message, w *awaited) (*attached, error) {
	for pause := firstPause; ; pause = after(pause) {
		link, err := c.connected(ctx)
		if err != nil {
			return nil, w.fate(err)
		}
		if !c.cfg.OneWay || m.ApplicationProperties[propReads] == true { // which only a reply agrees to
			replyTo(m, link.Address(), c.cfg.Address.ReplyTo == "")
		}
		err = link.Send(ctx, m)
		var refused *amqp.Error
		if errors.As(err, &refused) && !broken(err) { // by the broker, which would do so again
			return nil, w.fate(&Error{Code: Refused, Err: fmt.Errorf("%s: %w", c.cfg.Address, err)})
		}
		if !errors.Is(err, errNotNow) {
			w.left = true
			left(ctx)
		}
		if err == nil {
			return link, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, errNotNow) {
			c.drop(link)
		}
		if err := rest(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// left tells whoever traces a request that it may be handled from now on: as one of HTTP that has a
// connection.
func left(ctx context.Context) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// broken reports whether an error is the end of a link.
func broken(err error) bool {
	var conn *amqp.ConnError
	var session *amqp.SessionError
	var link *amqp.LinkError
	return errors.As(err, &conn) || errors.As(err, &session) || errors.As(err, &link)
}

// connected is the link that is there, or a new one. That the first cannot be had is an error at
// once: who waited would not know of a wrong address.
func (c *Requester) connected(ctx context.Context) (*attached, error) {
	for pause := firstPause; ; pause = after(pause) {
		link, again, err := c.connect(ctx)
		if err == nil || !again {
			return link, err
		}
		if rest(ctx, pause) != nil {
			return nil, err // says more than that the time is over
		}
	}
}

func (c *Requester) connect(ctx context.Context) (_ *attached, again bool, err error) {
	c.dialing.Lock()
	defer c.dialing.Unlock()
	if link := c.current(); link != nil {
		return link, false, nil
	}
	only := ""
	if c.cfg.Address.ReplyTo != "" {
		only = c.prefix
	}
	l, err := c.cfg.Queues.Open(ctx, c.cfg.Address.ReplyTo, credit, only)
	if err != nil {
		return nil, c.linked, err
	}
	c.linked = true
	link := &attached{QueueLink: l, ended: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false, errors.Join(http.ErrServerClosed, l.Close())
	}
	c.link = link
	c.wait.Go(func() { c.receive(link) })
	return link, false, nil
}

func (c *Requester) current() *attached {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// receive gives replies to those who wait for them, until the link ends.
func (c *Requester) receive(link *attached) {
	ctx := context.Background() // the link is closed in the end
	for {
		m, err := link.Receive(ctx)
		if err != nil {
			link.err = err
			close(link.ended)
			c.drop(link)
			return
		}
		if m.Properties != nil {
			look := c.agree(m) // before the next request, which waits for it a little
			c.deliver(m)
			if look != nil {
				c.wait.Go(look) // replies that are there do not
			}
		}
		_ = link.Accept(ctx, m) // one that comes again is not waited for
	}
}

func (c *Requester) deliver(m *amqp.Message) {
	id, _ := m.Properties.CorrelationID.(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.waiting[id]
	if w == nil { // nobody waits for it
		return
	}
	to := w.reply
	if m.ApplicationProperties[propRefused] == true {
		to = w.refused
	}
	select {
	case to <- m:
	default: // one is there already
	}
}

// drop has the next request open another link.
func (c *Requester) drop(link *attached) {
	c.mu.Lock()
	if c.link == link {
		c.link = nil
	}
	c.mu.Unlock()
	_ = link.Close()
}

// Close ends the connection. Requests that wait fail.
func (c *Requester) Close() error {
	c.mu.Lock()
	c.closed = true
	c.shut()
	link := c.link
	c.mu.Unlock()
	if link != nil {
		_ = link.Close()
	}
	c.wait.Wait()
	return nil
}

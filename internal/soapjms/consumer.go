package soapjms

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/Azure/go-amqp"

	"github.com/hhfr/hhfr/pkg/soap"
)

// ErrNotNow is what a handler panics with that has done nothing, and cannot now, and of content
// whose store fails: the request comes again.
var ErrNotNow = errors.New("not now")

// maxDeliveries is how often a request is begun, which each time ended without an answer, before it
// goes to those that cannot be handled.
const maxDeliveries = 5

// ConsumerConfig is what a [Consumer] is made of.
type ConsumerConfig struct {
	// Queues have the requests of Queue. Required.
	Queues Queues
	Queue  string
	// Handler answers requests, at /SERVICE: what they name as their target service, otherwise the
	// name of the queue. Required.
	Handler http.Handler
	// Concurrency is how many requests are handled at once; so many more are not had from the
	// broker. Required.
	Concurrency int32
	// Service answers requests that name none; empty: the one that the queue is named after.
	Service string
	// Content is how messages may come, and be answered, beside XML; nil: not at all.
	Content ContentForm
	// Once has requests handled once; nil: at least once.
	Once Once
	// Log hears of what no client hears. Required.
	Log *slog.Logger
}

// Once has requests handled once each, by what identifies them.
type Once interface {
	// Do has handle answer a request for the service at a path, or gives the reply from before,
	// without bytes for none. atomic: an error of handle means that nothing happened. known is
	// false where nobody knows whether the request was handled. An error means that it was not.
	Do(ctx context.Context, id, path string, handle func(ctx context.Context, atomic bool) ([]byte, error)) (
		reply []byte, known bool, err error)
	// MaxReply is how long a reply may be that is remembered, in bytes.
	MaxReply() int
}

// serviceFailure is why a service gave up, after which nothing has happened. What that wraps says
// nothing about the store of a [Once].
type serviceFailure struct{ error }

// replyLimit is how many bytes a reply has more than, which is therefore no answer; nothing has
// happened.
type replyLimit int

func (n replyLimit) Error() string { return fmt.Sprintf("the reply is longer than %d bytes", int(n)) }

// laterPause is about how long a request waits that cannot be handled now.
const laterPause = 5 * time.Second

// Consumer answers the requests of a queue. A request is acknowledged when its answer is with the
// broker: where either dies before, it is handled again, by this consumer or by another one.
type Consumer struct {
	cfg  ConsumerConfig
	link QueueLink // nil: there is none now

	marking   sync.Mutex
	markAfter time.Time // no mark before
}

// NewConsumer opens a queue. Errors: Unreachable.
func NewConsumer(ctx context.Context, cfg ConsumerConfig) (*Consumer, error) {
	link, err := cfg.Queues.Open(ctx, cfg.Queue, cfg.Concurrency, "")
	if err != nil {
		return nil, err
	}
	return &Consumer{cfg: cfg, link: link}, nil
}

// NewConsumers opens a queue, and the one for content beside it, if there is content; where that
// cannot be had, messages are XML alone, and the log says so. Errors: Unreachable.
func NewConsumers(ctx context.Context, cfg ConsumerConfig) (all []*Consumer, err error) {
	if cfg.Content != nil {
		beside := cfg
		beside.Queue += ContentQueue
		beside.Service = cmp.Or(cfg.Service, cfg.Queue) // what is told of a request once is the same at both
		c, err := NewConsumer(ctx, beside)
		if err == nil {
			all = append(all, c)
		} else {
			cfg.Content = nil
			cfg.Log.Warn("messages come as XML alone", "queue", beside.Queue, "err", err)
		}
	}
	c, err := NewConsumer(ctx, cfg)
	if err != nil {
		for _, c := range all {
			_ = c.link.Close()
		}
		return nil, err
	}
	return append(all, c), nil
}

// Run answers requests until the context is done, and then those that it has begun. A broker that
// is gone is looked for again after a pause, which grows as long as links end soon.
func (c *Consumer) Run(ctx context.Context) {
	for pause := firstPause; ; pause = after(pause) {
		if c.link != nil {
			begun := time.Now()
			err := c.consume(ctx, c.link)
			if ctx.Err() != nil {
				return
			}
			c.cfg.Log.Warn("the connection to the broker ended", "queue", c.cfg.Queue, "err", err)
			if time.Since(begun) > longestPause {
				pause = firstPause
			}
		}
		if rest(ctx, pause) != nil {
			return
		}
		var err error
		if c.link, err = c.cfg.Queues.Open(ctx, c.cfg.Queue, c.cfg.Concurrency, ""); err != nil {
			c.link = nil
			c.cfg.Log.Debug("no broker", "err", err)
			continue
		}
		c.cfg.Log.Info("the broker is there again", "queue", c.cfg.Queue)
	}
}

// consume handles what comes over one link, until that ends.
func (c *Consumer) consume(ctx context.Context, link QueueLink) error {
	var handling sync.WaitGroup
	defer func() {
		handling.Wait()
		_ = link.Close()
	}()
	for {
		m, err := link.Receive(ctx) // no more than Concurrency, which nobody has settled
		if err != nil {
			return err
		}
		// What has begun is ended, also when the server ends.
		handling.Go(func() {
			if err := c.handle(context.WithoutCancel(ctx), link, m); err != nil {
				// What is not settled would stay with this link: it comes again over the next one.
				c.cfg.Log.Warn("a request may come again", "queue", c.cfg.Queue, "err", err)
				_ = link.Close()
			}
		})
	}
}

// settleTime is how long a broker may take to have a reply, and to hear what became of a message.
const settleTime = 30 * time.Second

// handle answers one request, and settles it. An error is that it is not settled.
func (c *Consumer) handle(ctx context.Context, link QueueLink, m *amqp.Message) error {
	if m.Properties == nil {
		m.Properties = &amqp.MessageProperties{}
	}
	tell := c.cfg.Log.With("queue", c.cfg.Queue, "message", m.Properties.MessageID)
	settle := func(dead string) error {
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		if dead == "" {
			return link.Accept(ctx, m)
		}
		tell.Warn("a request cannot be handled", "why", dead)
		return link.Reject(ctx, m, dead)
	}
	if h := m.Header; h != nil && h.DeliveryCount >= maxDeliveries {
		return settle(fmt.Sprintf("begun %d times without an answer", h.DeliveryCount))
	}
	reply, why, err := c.answer(ctx, m)
	if err != nil {
		if !errors.Is(err, ErrNotNow) {
			tell.Warn("a request cannot be handled now", "err", err)
			_ = rest(ctx, laterPause)
		}
		ctx, cancel := context.WithTimeout(ctx, settleTime)
		defer cancel()
		// What a service fails at counts: it may fail for ever. A store is there again some day.
		return link.Release(ctx, m, errors.As(err, new(serviceFailure)))
	}
	to := m.Properties.ReplyTo
	switch asks := to != nil && *to != ""; {
	case !asks && why != "":
		return settle(why)
	case !asks && reply != nil && reply.ApplicationProperties[propIsFault] == true:
		tell.Warn("a request that has no reply failed")
	case asks && reply != nil:
		err := c.send(ctx, link, reply)
		var refused *amqp.Error
		switch {
		case errors.Is(err, errNotNow):
			return settle(fmt.Sprintf("handled, but the broker does not take the reply to %s", *to))
		case errors.As(err, &refused) && !broken(err):
			tell.Warn("the broker does not take the reply", "to", *to, "err", err)
		case err != nil:
			return err
		}
	}
	return settle("")
}

// send sends a reply, again after pauses where the broker gives it back.
func (c *Consumer) send(ctx context.Context, link QueueLink, reply *amqp.Message) error {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for pause := firstPause; ; pause = after(pause) {
		err := link.Send(ctx, reply)
		if !errors.Is(err, errNotNow) || rest(ctx, pause) != nil {
			return err
		}
	}
}

// answer is the reply to a request, nil if there is none; why is why it is a fault of the client's.
// An error is that it cannot be answered now, and nothing happened.
func (c *Consumer) answer(ctx context.Context, m *amqp.Message) (reply *amqp.Message, why string, err error) {
	m, packed, err := unpacked(c.cfg.Content, m)
	if err != nil {
		if errors.Is(err, ErrNotNow) { // which is not said on: the request has a pause before it comes again
			return nil, "", errors.New("content that cannot be read now: " + err.Error())
		}
		reply, why = c.refuse(m, err)
		return reply, why, nil
	}
	a, wrong := read(m, cmp.Or(c.cfg.Service, c.cfg.Queue))
	a.told = packed || m.ApplicationProperties[propReads] == true
	switch {
	case wrong != nil:
		reply, why = c.fault(m, a, wrong), wrong.Reason
	case c.cfg.Once != nil:
		reply, why, err = c.answerOnce(ctx, m, a)
	default:
		reply, why, err = c.ask(ctx, m, a, false)
	}
	if reply != nil {
		c.dress(ctx, m, reply, packed)
	}
	return reply, why, err
}

// answerOnce is answer to a request that may have been answered before.
func (c *Consumer) answerOnce(ctx context.Context, m *amqp.Message, a asked) (reply *amqp.Message, why string,
	err error) {
	id := m.Properties.MessageID
	if id == nil {
		wrong := wrongly("", "the request has no JMSMessageID, and cannot be handled exactly once")
		return c.fault(m, a, wrong), wrong.Reason, nil
	}
	key := fmt.Sprintf("%s %T %v", cmp.Or(c.cfg.Service, c.cfg.Queue), id, id)
	recorded, known, err := c.cfg.Once.Do(ctx, key, a.URL.Path, func(ctx context.Context, atomic bool) (_ []byte,
		err error) {
		var reply *amqp.Message
		if reply, why, err = c.ask(ctx, m, a, atomic); reply == nil || err != nil {
			return nil, err
		}
		if why != "" {
			reply.ApplicationProperties[propWhy] = why
		}
		record, err := reply.MarshalBinary()
		if most := c.cfg.Once.MaxReply(); err == nil && atomic && len(record) > most {
			err = replyLimit(most)
		}
		return record, err
	})
	var long replyLimit
	switch {
	case errors.As(err, &long):
		why = long.Error() + ": nothing was done"
		return c.fault(m, a, &soap.Fault{Code: soap.Server, Reason: why}), why, nil
	case err != nil:
		return nil, "", err
	case !known:
		why = "a server began to handle the request and ended; nobody knows whether it was handled"
		return c.fault(m, a, &soap.Fault{Code: soap.Server, Reason: why}), why, nil
	case len(recorded) == 0:
		return nil, "", nil
	}
	reply = &amqp.Message{}
	if err := reply.UnmarshalBinary(recorded); err != nil {
		return nil, "", err
	}
	why = text(reply, propWhy)
	delete(reply.ApplicationProperties, propWhy)
	addressed(reply, m)
	return reply, why, nil
}

// propWhy is of a reply in a record alone: why it is a fault of the client's.
const propWhy = "HHFR_why"

// ask has the handler answer a request. An error is that nothing happened; atomic: so it is also
// where the handler gives up.
func (c *Consumer) ask(ctx context.Context, m *amqp.Message, a asked, atomic bool) (reply *amqp.Message, why string,
	err error) {
	w := &replyWriter{header: http.Header{}}
	switch err := c.serve(w, a.WithContext(ctx)); {
	case errors.Is(err, ErrNotNow):
		return nil, "", err
	case atomic && w.over:
		return nil, "", replyLimit(maxMessage)
	case atomic && err != nil:
		return nil, "", serviceFailure{err}
	}
	reply, why = c.replyOf(m, a, w)
	return reply, why, nil
}

// replyOf is the reply that a handler has written. What is no SOAP of status 200, 202 or 500
// becomes a fault, unless it is one.
func (c *Consumer) replyOf(m *amqp.Message, a asked, w *replyWriter) (reply *amqp.Message, why string) {
	status, body, contentType := cmp.Or(w.status, http.StatusOK), w.body.Bytes(), w.header.Get("Content-Type")
	fault, failed := soap.IsFault(body), status >= http.StatusBadRequest
	if contentType == "" && len(body) > 0 && (fault || !failed) { // an origin that does not say so
		said, _ := soap.ContentType(max(soap.Recognize(body).Version, soap.V11), "")
		contentType = soap.ParseContentType(said).Type // the text says its charset
	}
	switch {
	case w.over:
		return c.fault(m, a, &soap.Fault{Code: soap.Server, Reason: replyLimit(maxMessage).Error()}), ""
	case len(body) == 0 && status < http.StatusMultipleChoices:
		if !a.told {
			return nil, ""
		}
		reply = answer(m, classBytes, "", "", nil, false)
		reply.ApplicationProperties[propStatus] = int32(max(status, http.StatusAccepted))
		return reply, ""
	case len(body) > 0 && isSOAP(contentType, body) && (fault && failed || status == http.StatusOK ||
		status == http.StatusAccepted || status == http.StatusInternalServerError):
		return answer(m, a.class, contentType, w.header.Get("Content-Encoding"), body, fault || failed), ""
	}
	reason := strings.TrimSpace(string(body))
	if !failed || reason == "" || !isText(w.header) || !utf8.Valid(body) {
		reason = fmt.Sprintf("status %d %s without SOAP, but %d bytes of type %q", status, http.StatusText(status),
			len(body), contentType)
	}
	if failed && status < http.StatusInternalServerError {
		why = a.URL.Path + ": " + reason
		return c.fault(m, a, &soap.Fault{Code: soap.Client, Reason: why}), why
	}
	return c.fault(m, a, &soap.Fault{Code: soap.Server, Reason: reason}), ""
}

// isSOAP reports whether a reply is SOAP, in any form of envelope.
func isSOAP(contentType string, body []byte) bool {
	media := soap.ParseContentType(contentType)
	return media.Version() != soap.None || media.BinaryVersion() != soap.None || media.Type == "multipart/related" ||
		media.Type == "application/xml" && soap.Recognize(body).Version != soap.None
}

// isText reports whether an error of HTTP says in words what it is.
func isText(header http.Header) bool {
	kind := soap.ParseContentType(header.Get("Content-Type")).Type
	return header.Get("Content-Encoding") == "" &&
		(kind == "" || kind == "text/plain" || kind == "text/html" || strings.HasSuffix(kind, "json"))
}

// serve has the handler answer. One that panics has answered by a fault, and what it panics with is
// returned.
func (c *Consumer) serve(w *replyWriter, r *http.Request) (err error) {
	defer func() {
		if v := recover(); v != nil {
			var is bool
			if err, is = v.(error); !is {
				err = fmt.Errorf("%v", v)
			}
			if !errors.Is(err, http.ErrAbortHandler) && !errors.Is(err, ErrNotNow) {
				c.cfg.Log.Error("a service failed", "path", r.URL.Path, "err", err)
			}
			// One that cannot write a reply that is too long may end so.
			*w = replyWriter{header: http.Header{}, status: http.StatusInternalServerError, over: w.over}
			w.body.WriteString("the service failed")
		}
	}()
	c.cfg.Handler.ServeHTTP(w, r)
	return nil
}

// fault is one as a reply, in the version of SOAP of the request.
func (c *Consumer) fault(m *amqp.Message, a asked, f *soap.Fault) *amqp.Message {
	version := max(a.version, soap.V11)
	body, err := soap.BuildFault(version, *f)
	if err != nil { // by what the client had in it
		f.Reason = "the request is not as SOAP over JMS has it"
		body, _ = soap.BuildFault(version, *f)
	}
	contentType, _ := soap.ContentType(version, "") // no action can be wrong
	class := a.class
	if class == 0 {
		class = classBytes
	}
	return answer(m, class, contentType, "", body, true)
}

// replyWriter keeps a reply, up to maxMessage.
type replyWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
	over   bool
}

// Header implements [http.ResponseWriter].
func (w *replyWriter) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *replyWriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
}

// Write implements [http.ResponseWriter].
func (w *replyWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.over = w.over || w.body.Len()+len(p) > maxMessage; w.over {
		return 0, tooLarge(w.body.Len() + len(p))
	}
	return w.body.Write(p)
}

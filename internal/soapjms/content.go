package soapjms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/go-amqp"

	"github.com/hhfr/hhfr/pkg/soap"
)

// ContentForm is another form of SOAP messages than XML, in which each is read alone by who has the
// same store as its writer. It is safe for concurrent use.
type ContentForm interface {
	Pack(message []byte) ([]byte, error)
	// Unpack is the reverse, of a message of at most most bytes. Where its error is [ErrNotNow],
	// the message is not refused, but comes again.
	Unpack(packed []byte, most int) ([]byte, error)
	// Mark gives the name of an entry that is in the store of this end, and Shares reports whether
	// one is.
	Mark(ctx context.Context) (name string, err error)
	Shares(ctx context.Context, name string) (bool, error)
}

// Messages as content, which SOAP over JMS does not know (docs/queues.md). A request in XML says
// that its client reads content; a reply to it in XML has a mark, if its server does; a client that
// finds the mark in its own store sends content from then on, to a queue that only servers with the
// store read: others at the queue of the service never see it.
const (
	// ContentQueue is behind the name of a queue in that of the one for content.
	ContentQueue = ".hhfr"

	mediaContent = "application/vnd.hhfr" // with the content type of the XML as its parameter of
	propReads    = "HHFR_reads"           // of a request: its client reads content
	propMark     = "HHFR_mark"            // of a reply: its server does
	propRefused  = "HHFR_refused"         // of a reply: the content was not read, and nothing was handled
	propStatus   = "HHFR_status"          // of a reply without SOAP, such as 202
)

// contentType is that of content.
func contentType(of string) string {
	return mime.FormatMediaType(mediaContent, map[string]string{"of": of})
}

// withContent is a message with its body packed.
func withContent(c ContentForm, m *amqp.Message, body []byte) error {
	packed, err := c.Pack(body)
	if err == nil && len(packed) > maxMessage {
		err = tooLarge(len(packed))
	}
	if err == nil {
		m.Data = [][]byte{packed}
		m.ApplicationProperties[propContentType] = contentType(text(m, propContentType))
	}
	return err
}

// unpacked is a message as it was before it was packed, or that message itself; is: it was packed.
func unpacked(c ContentForm, m *amqp.Message) (_ *amqp.Message, is bool, err error) {
	kind, parameters, err := mime.ParseMediaType(text(m, propContentType))
	if err != nil || kind != mediaContent {
		return m, false, nil
	}
	if c == nil {
		return m, true, errors.New("this end has no store for content of hhfr")
	}
	packed, _, err := bodyOf(m)
	if err != nil {
		return m, true, err
	}
	body, err := c.Unpack(packed, maxMessage)
	if err != nil {
		return m, true, err
	}
	plain := *m
	plain.Value, plain.Data, plain.ApplicationProperties = nil, [][]byte{body}, maps.Clone(m.ApplicationProperties)
	plain.ApplicationProperties[propContentType] = parameters["of"]
	return &plain, true, nil
}

// Pauses before a client whose content was refused, or not answered, sends content again.
const firstTruce, longestTruce = time.Minute, time.Hour

// contentAgreement is whether a client sends content.
type contentAgreement struct {
	mu      sync.Mutex
	holds   bool
	after   time.Time // not before
	truce   time.Duration
	met     string        // the mark that is not in the store
	looking chan struct{} // closed when a store has said whether a mark is there; nil: none is asked
}

// is waits a little for a store that is asked.
func (a *contentAgreement) is(ctx context.Context) bool {
	a.mu.Lock()
	looking := a.looking
	a.mu.Unlock()
	if looking != nil {
		timer := time.NewTimer(lookPause)
		defer timer.Stop()
		select {
		case <-looking:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.holds
}

// end has XML be sent for a while; false: so it is already.
func (a *contentAgreement) end() (pause time.Duration, ended bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.holds {
		return 0, false
	}
	a.holds, a.truce = false, min(max(2*a.truce, firstTruce), longestTruce)
	a.after = time.Now().Add(a.truce)
	return a.truce, true
}

const (
	// lookTime is how long a store may take to say whether a mark is there, or to have one.
	lookTime = 5 * time.Second
	// lookPause is how long a request waits for that: most of a short run are content so.
	lookPause = 200 * time.Millisecond
)

// agree takes what a reply says of content; look finds out whether it holds. nil: there is nothing
// to find out, or a store is asked already.
func (c *Requester) agree(m *amqp.Message) (look func()) {
	a, mark := &c.agreement, text(m, propMark)
	if c.cfg.Content == nil || mark == "" {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.holds || a.looking != nil || mark == a.met || time.Now().Before(a.after) {
		return nil
	}
	a.looking = make(chan struct{})
	return func() {
		ctx, cancel := context.WithTimeout(c.open, lookTime)
		defer cancel()
		is, err := c.cfg.Content.Shares(ctx, mark)
		c.found(mark, is, err)
	}
}

// found takes what a store says of a mark.
func (c *Requester) found(mark string, is bool, err error) {
	a := &c.agreement
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.looking)
	a.looking = nil
	if a.holds = is && err == nil; a.holds {
		c.cfg.Log.Info("messages go as content of hhfr", "queue", c.cfg.Address.Queue+ContentQueue)
		return
	}
	a.after = time.Now().Add(firstTruce) // also where servers have other stores, each its mark
	if err != nil {
		c.cfg.Log.Warn("messages go as XML", "queue", c.cfg.Address.Queue, "err", err)
		return
	}
	a.met = mark
	c.cfg.Log.Warn("messages go as XML: the server has another store", "queue", c.cfg.Address.Queue)
}

// disagree has messages go as XML for a while.
func (c *Requester) disagree(why error) {
	if pause, ended := c.agreement.end(); ended {
		c.cfg.Log.Warn("messages go as XML again", "queue", c.cfg.Address.Queue, "for", pause, "why", why)
	}
}

// packed makes a request as content; nil: it goes as XML.
func (c *Requester) packed(ctx context.Context, r *http.Request, body []byte) *amqp.Message {
	if c.cfg.Content == nil || !c.agreement.is(ctx) || r.Header.Get("Content-Encoding") != "" {
		return nil
	}
	m := c.request(r, body)
	if err := withContent(c.cfg.Content, m, body); err != nil {
		c.cfg.Log.Warn("a message goes as XML", "queue", c.cfg.Address.Queue, "err", err)
		return nil
	}
	to := c.cfg.Address.Queue + ContentQueue
	m.Properties.To = &to
	c.saved.add(len(body), len(m.Data[0]))
	return m
}

// Saved counts what a client has sent as content.
type Saved struct {
	Messages int
	XML      int64 // bytes of the messages
	Content  int64 // bytes of what was sent instead
}

type savings struct {
	mu sync.Mutex
	Saved
}

func (s *savings) add(from, to int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Messages, s.XML, s.Content = s.Messages+1, s.XML+int64(from), s.Content+int64(to)
}

// Saved counts what was sent as content so far.
func (c *Requester) Saved() Saved {
	c.saved.mu.Lock()
	defer c.saved.mu.Unlock()
	return c.saved.Saved
}

// refused is why a server did not read a request that was packed; nil: it did.
func refused(m *amqp.Message) error {
	if m == nil || m.ApplicationProperties[propRefused] != true {
		return nil
	}
	body, _, err := bodyOf(m)
	if err != nil {
		return err
	}
	if parsed, err := soap.Parse(body, soap.Limits{}); err == nil {
		if f, is := parsed.Fault(); is {
			return errors.New(f.Reason)
		}
	}
	return errors.New("it was refused")
}

// dress has a reply be as its client reads it.
func (c *Consumer) dress(ctx context.Context, to, reply *amqp.Message, packed bool) {
	switch body := reply.Data; {
	case c.cfg.Content == nil:
	case packed && text(reply, propContentEncoding) == "" && len(body) == 1 && len(body[0]) > 0:
		if err := withContent(c.cfg.Content, reply, body[0]); err != nil {
			c.cfg.Log.Warn("a reply goes as XML", "queue", c.cfg.Queue, "err", err)
		}
	case !packed && to.ApplicationProperties[propReads] == true:
		if mark := c.mark(ctx); mark != "" {
			reply.ApplicationProperties[propMark] = mark
		}
	}
}

// mark is one for a reply; empty: the store has none now. One reply at once waits for the store,
// and for a while none after it failed.
func (c *Consumer) mark(ctx context.Context) string {
	if !c.marking.TryLock() {
		return ""
	}
	defer c.marking.Unlock()
	if time.Now().Before(c.markAfter) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	mark, err := c.cfg.Content.Mark(ctx)
	if err != nil {
		c.markAfter = time.Now().Add(firstTruce)
		c.cfg.Log.Warn("messages come as XML", "queue", c.cfg.Queue, "for", firstTruce, "err", err)
		return ""
	}
	return mark
}

// refuse is the fault for content that is not read, which is as if it had not come.
func (c *Consumer) refuse(m *amqp.Message, err error) (reply *amqp.Message, why string) {
	why = fmt.Sprintf("content that cannot be read: %v", err)
	reply = c.fault(m, asked{}, &soap.Fault{Code: soap.Client, Reason: why})
	reply.ApplicationProperties[propRefused] = true
	return reply, why
}

package peer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// ClientRequest is a message to send, by [Send].
type ClientRequest struct {
	// Name says where it comes from, for people.
	Name string
	// Head is its HTTP head; nil: the default one.
	Head []byte
	// Body is the envelope.
	Body []byte
	// OneWay: no reply is wanted; the message is done when it is on its way (see negotiate.Session.Post).
	OneWay bool
}

// Incoming is what came of one message.
type Incoming struct {
	// Number counts messages from 1 in sending order.
	Number int
	Sent   ClientRequest
	// Head and Body are the reply's; a nil head is the default one.
	Head, Body []byte
	// Began and Took tell when it was sent, and how long the whole reply took.
	Began time.Time
	Took  time.Duration
	// Err is why there is no reply.
	Err error
	// Posted tells what becomes of a one-way message that is on its way.
	Posted *negotiate.Posted
}

// Status is the HTTP status of a reply; 200 if it has the default head, 202 for a one-way message that was sent.
func (in *Incoming) Status() int {
	switch {
	case in.Sent.OneWay:
		return http.StatusAccepted
	case in.Head == nil:
		return http.StatusOK
	}
	h, _, err := http1.ParseHead(in.Head, 0)
	if err != nil || !h.IsReply() {
		return 0
	}
	return h.Status()
}

// Failed tells replies that are failures: an HTTP status that is not one of success, or a fault that is not what was sent.
func (in *Incoming) Failed() bool {
	if s := in.Status(); in.Err != nil || s < 200 || s >= 300 {
		return true
	}
	return !in.Sent.OneWay && soap.Recognize(in.Body).Fault && !bytes.Equal(in.Body, in.Sent.Body)
}

// Send sends messages over a session, at most inFlight at once, and yields what came of each in sending order. They leave in that order, too, as far as the way promises any
// (see negotiate.Session.Begin). As long as it is undecided whether there is a stream, one is sent at a time, so that none goes as plain SOAP beside the one that asks. It ends when messages do, or ctx is done. An error of messages is yielded and ends it.
func Send(ctx context.Context, session *negotiate.Session, messages iter.Seq2[ClientRequest, error], inFlight int) iter.Seq[*Incoming] {
	return func(yield func(*Incoming) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queue := make(chan chan *Incoming, max(inFlight, 1))
		go func() {
			defer close(queue)
			begin(ctx, session, messages, queue)
		}()
		defer func() {
			cancel()
			for ch := range queue {
				<-ch
			}
		}()
		for ch := range queue {
			if !yield(<-ch) {
				return
			}
		}
	}
}

// begin sends one message after another, as many at once as queue has room for.
func begin(ctx context.Context, session *negotiate.Session, messages iter.Seq2[ClientRequest, error], queue chan<- chan *Incoming) {
	places := make(chan struct{}, cap(queue))
	n := 0
	for m, err := range messages {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		n++
		in := &Incoming{Number: n, Sent: m, Err: err, Began: time.Now()}
		var pending *negotiate.Pending
		alone := session.Agreed().Undecided
		switch {
		case err != nil:
		case m.OneWay:
			in.Posted, in.Err = session.Post(ctx, &streamer.Message{Head: m.Head, Body: bytes.NewReader(m.Body)})
		default:
			pending, in.Err = session.Begin(ctx, &streamer.Message{Head: m.Head, Body: bytes.NewReader(m.Body)})
		}
		ch, done := make(chan *Incoming, 1), make(chan struct{})
		go func() {
			defer close(done)
			if in.Err == nil && !m.OneWay {
				in.receive(ctx, pending)
			}
			in.Took = time.Since(in.Began)
			<-places
			ch <- in
		}()
		queue <- ch
		if err != nil {
			return
		}
		if alone {
			<-done
		}
	}
}

// maxReply bounds a reply, in octets. It is for other ends that never stop; what is sent is not longer either.
const maxReply = 1 << 30

func (in *Incoming) receive(ctx context.Context, pending *negotiate.Pending) {
	reply, err := pending.Reply(ctx)
	if err != nil {
		in.Err = err
		return
	}
	in.Head = reply.Head
	if reply.Body == nil {
		return
	}
	if in.Body, err = reply.ReadAll(maxReply); err != nil {
		in.Err = fmt.Errorf("reply: %w", err)
	}
	if c, ok := reply.Body.(io.Closer); ok {
		_ = c.Close()
	}
}

// RequestHead makes the head of a request to path, with the Content-Type and SOAPAction that the message's version asks for, and further fields of the form `Name: value`. A
// field given replaces the one of the same name.
func RequestHead(path string, body []byte, action string, fields []string) ([]byte, error) {
	version := soap.Recognize(body).Version
	if version == soap.None {
		version = soap.V11
	}
	own, err := soap.RequestFields(version, action)
	if err != nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: err}
	}
	head, err := http1.AppendRequestLine(nil, "POST", path, "HTTP/1.1")
	if err != nil {
		return nil, &Error{Code: BadConfig, At: -1, Err: err}
	}
	given, err := ParseFields(fields)
	if err != nil {
		return nil, err
	}
	for _, f := range own {
		same := func(g soap.Field) bool { return strings.EqualFold(g.Name, f.Name) }
		if i := slices.IndexFunc(given, same); i >= 0 {
			f = given[i]
			given = slices.Delete(given, i, i+1)
		}
		if head, err = http1.AppendField(head, f.Name, f.Value); err != nil {
			return nil, &Error{Code: BadConfig, At: -1, Err: err}
		}
	}
	for _, f := range given {
		if head, err = http1.AppendField(head, f.Name, f.Value); err != nil {
			return nil, &Error{Code: BadConfig, At: -1, Err: err}
		}
	}
	return http1.AppendEnd(head), nil
}

// ParseFields reads HTTP fields of the form `Name: value`. Errors: BadConfig.
func ParseFields(fields []string) ([]soap.Field, error) {
	var given []soap.Field
	for _, f := range fields {
		name, value, ok := strings.Cut(f, ":")
		if !ok {
			return nil, &Error{Code: BadConfig, At: -1, Err: fmt.Errorf("field %q is not of the form Name: value", f)}
		}
		field := soap.Field{Name: strings.TrimSpace(name), Value: strings.TrimSpace(value)}
		if _, err := http1.AppendField(nil, field.Name, field.Value); err != nil {
			return nil, &Error{Code: BadConfig, At: -1, Err: err}
		}
		given = append(given, field)
	}
	return given, nil
}

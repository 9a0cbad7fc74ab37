// Package sender sends messages over a session for the commands: many at once, in their order, and
// tells what came of each.
package sender

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// MessageToSend is a message to send, by [Send].
type MessageToSend struct {
	// Name says where it comes from, for people.
	Name string
	// Head is its HTTP head; nil: the default one.
	Head []byte
	// Body is the envelope, or, with a File, its beginning.
	Body []byte
	// File, if it is given, has the envelope, of Size bytes: it is read as it is sent.
	File string
	Size int64
	// OneWay: no reply is wanted; the message is done when it is on its way (see
	// session.Session.Post).
	OneWay bool
}

// Length is how long the envelope is, in bytes.
func (m *MessageToSend) Length() int64 {
	if m.File != "" {
		return m.Size
	}
	return int64(len(m.Body))
}

// is reports whether an envelope is that of the message, of a file as far as its beginning shows.
func (m *MessageToSend) is(envelope []byte) bool {
	return int64(len(envelope)) == m.Length() && bytes.HasPrefix(envelope, m.Body)
}

// message is what is sent. A file is open until the session closes it.
func (m *MessageToSend) message() (*streamer.Message, error) {
	if m.File == "" {
		return &streamer.Message{Head: m.Head, Body: bytes.NewReader(m.Body)}, nil
	}
	f, err := os.Open(m.File)
	if err != nil {
		return nil, err
	}
	return &streamer.Message{Head: m.Head, Body: &fileBody{io.NewSectionReader(f, 0, m.Size), f}}, nil
}

// fileBody is the envelope in a file.
type fileBody struct {
	*io.SectionReader
	file *os.File
}

// Read implements [io.Reader]. A file that became shorter is an error, not a shorter message.
func (b *fileBody) Read(p []byte) (int, error) {
	n, err := b.SectionReader.Read(p)
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if at, failed := b.Seek(0, io.SeekCurrent); failed != nil || at < b.Size() {
		err = fmt.Errorf("%s became shorter while it was sent: it ends at byte %d of %d", b.file.Name(), at, b.Size())
	}
	return n, err
}

// Close closes the file.
func (b *fileBody) Close() error { return b.file.Close() }

// Incoming is what came of one message.
type Incoming struct {
	// Number counts messages from 1 in sending order.
	Number int
	Sent   MessageToSend
	// Head and Body are the reply's; a nil head is the default one.
	Head, Body []byte
	// Began and Took say when it was sent, and how long the whole reply took.
	Began time.Time
	Took  time.Duration
	// Err is why there is no reply.
	Err error
	// Posted says what becomes of a one-way message that is on its way.
	Posted *session.PostedMessage
}

// Status is the HTTP status of a reply; 200 if it has the default head, 202 for a one-way message
// that was sent.
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

// Failed reports whether a reply is a failure: an HTTP status that is not one of success, or a
// fault that is not what was sent.
func (in *Incoming) Failed() bool {
	if s := in.Status(); in.Err != nil || s < 200 || s >= 300 {
		return true
	}
	return !in.Sent.OneWay && soap.Recognize(in.Body).Fault && !in.Sent.is(in.Body)
}

// Send sends messages over a session, at most inFlight at once, and yields what came of each in
// sending order. They leave in that order, too, as far as the session promises any (see
// session.Session.Begin). As long as it is undecided whether there is a stream, one is sent at a
// time, so that none goes as plain SOAP beside the one that asks. It ends when messages do, or ctx
// is done. An error of messages is yielded and ends it.
func Send(
	ctx context.Context, s *session.Session, messages iter.Seq2[MessageToSend, error], inFlight int,
) iter.Seq[*Incoming] {
	return func(yield func(*Incoming) bool) {
		ctx, cancel := context.WithCancel(ctx)
		queue := make(chan chan *Incoming, max(inFlight, 1))
		go func() {
			defer close(queue)
			begin(ctx, s, messages, queue)
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

// begin sends one message after another, as many at once as queue has slots.
func begin(
	ctx context.Context, s *session.Session, messages iter.Seq2[MessageToSend, error], queue chan<- chan *Incoming,
) {
	slots := make(chan struct{}, cap(queue))
	n := 0
	for m, err := range messages {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		n++
		var out *streamer.Message
		if err == nil {
			out, err = m.message()
		}
		in := &Incoming{Number: n, Sent: m, Err: err, Began: time.Now()}
		var pending *session.PendingReply
		alone := s.Agreed().Undecided
		switch {
		case err != nil:
		case m.OneWay:
			in.Posted, in.Err = s.Post(ctx, out)
		default:
			pending, in.Err = s.Begin(ctx, out)
		}
		ch, done := make(chan *Incoming, 1), make(chan struct{})
		go func() {
			defer close(done)
			if in.Err == nil && !m.OneWay {
				in.receive(ctx, pending)
			}
			in.Took = time.Since(in.Began)
			<-slots
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

// maxReply bounds a reply, in bytes. It is for peers that never stop; what is sent is not longer
// either.
const maxReply = 1 << 30

func (in *Incoming) receive(ctx context.Context, pending *session.PendingReply) {
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

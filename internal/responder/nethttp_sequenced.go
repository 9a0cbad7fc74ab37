package responder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sequence"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// SequencedHandler serves messages that come in sequences as requests of net/http; their replies
// are sent as a whole. Each request is served at most once for each time that the sequence hands it
// over.
//
// transactional reports whether the service at a path puts its effects into the transaction of a
// message ([TxOf]); nil: all have effects of their own. Where such a service panics, nothing has
// happened, and its message comes again; where another one does, status 500 is the reply. log hears
// what went wrong; nil: nobody.
func SequencedHandler(services http.Handler, transactional func(path string) bool, log *slog.Logger) Sequenced {
	if transactional == nil {
		transactional = func(string) bool { return false }
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &sequencedServices{services, transactional, log}
}

type sequencedServices struct {
	services      http.Handler
	transactional func(path string) bool
	log           *slog.Logger
}

// Transactional implements [Sequenced].
func (s *sequencedServices) Transactional(path string) bool { return s.transactional(path) }

// txKey is where the context of a handler has the transaction of its message.
type txKey struct{}

// TxOf gives the transaction of the message that a handler serves, by the context of its request;
// nil if there is none, and effects are the handler's own. It is good until the handler returns.
func TxOf(ctx context.Context) *wsrm.Tx {
	tx, _ := ctx.Value(txKey{}).(*wsrm.Tx)
	return tx
}

// Transact implements [Sequenced].
func (s *sequencedServices) Transact(
	ctx context.Context, _ string, tx *wsrm.Tx, request *streamer.Message,
) (*streamer.Message, error) {
	return s.serve(context.WithValue(ctx, txKey{}, tx), request)
}

// Handle implements [Sequenced].
func (s *sequencedServices) Handle(ctx context.Context, _ string, request *streamer.Message) *streamer.Message {
	reply, err := s.serve(ctx, request)
	if err != nil {
		return emptyReply(http.StatusInternalServerError)
	}
	return reply
}

// serve gives the reply to a request. Its error says that the service panicked.
func (s *sequencedServices) serve(
	ctx context.Context, request *streamer.Message,
) (reply *streamer.Message, err error) {
	req, err := servedBy(ctx).requests().Request(ctx, 0, request)
	if err != nil {
		s.log.Info("message without a request head", "err", err)
		return emptyReply(http.StatusBadRequest), nil
	}
	w := newWholeWriter()
	go func() {
		var failed error
		defer func() { w.end(failed) }()
		defer func() {
			switch p := recover().(type) {
			case nil:
			case error:
				failed = p
			default:
				failed = fmt.Errorf("%v", p)
			}
			if failed != nil && !errors.Is(failed, http.ErrAbortHandler) {
				s.log.Error("service panicked", "path", req.URL.Path, "panic", failed)
			}
		}()
		s.services.ServeHTTP(w, req)
	}()
	return w.message()
}

// unsentReply is in the place of a reply that is too long, or that its handler did not finish.
func unsentReply() sequence.Stored {
	fields := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	return sequence.Stored{Head: httpmsg.ReplyHead(http.StatusInternalServerError, fields),
		Body: []byte("the message was handled, and its reply cannot be sent: it broke off, or is too long for the " +
			"peer, or for the context store here (--store-size)\n")}
}

func emptyReply(status int) *streamer.Message {
	return streamer.NewMessage(httpmsg.ReplyHead(status, nil), nil)
}

// wholeWriter is the ResponseWriter of a reply that is sent as a whole. A reply that is not short
// is read as it is written.
type wholeWriter struct {
	replyHead
	body   bytes.Buffer  // until it is ready
	ready  chan struct{} // closed when the head and the beginning of the body are there
	failed error         // why there is no reply
	rest   *io.PipeWriter
	reader *io.PipeReader
}

func newWholeWriter() *wholeWriter {
	w := &wholeWriter{ready: make(chan struct{})}
	w.reader, w.rest = io.Pipe()
	return w
}

// WriteHeader sets the status, once; informational ones are dropped, as nobody waits for them.
func (w *wholeWriter) WriteHeader(status int) {
	checkStatus(status)
	if w.status == 0 && !isInterim(status) {
		w.fix(status, false)
	}
}

// Write writes the body. Errors are also those of net/http: ErrBodyNotAllowed and ErrContentLength.
func (w *wholeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if err := w.take(len(p)); err != nil {
		return 0, err
	}
	if w.isReady() {
		return w.rest.Write(p)
	}
	w.body.Write(p)
	if w.body.Len() > sequence.MaxMessage {
		w.be(nil)
	}
	return len(p), nil
}

func (w *wholeWriter) isReady() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// be says that the beginning of the reply is there, or that there will be none.
func (w *wholeWriter) be(failed error) {
	w.WriteHeader(http.StatusOK)
	w.head, w.failed = w.final(w.body.Bytes()), failed
	close(w.ready)
}

// end is the end of the service.
func (w *wholeWriter) end(failed error) {
	if !w.isReady() {
		w.be(failed)
	}
	_ = w.rest.CloseWithError(failed) // io.EOF without an error
}

// message is the reply.
func (w *wholeWriter) message() (*streamer.Message, error) {
	<-w.ready
	if w.failed != nil {
		return nil, w.failed
	}
	body := struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(w.body.Bytes()), w.reader), w.reader}
	return &streamer.Message{Head: w.head, Body: body}, nil
}

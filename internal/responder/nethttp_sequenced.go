package responder

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/sequence"
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
	req, err := exchangeRequest(ctx, request, FactsOf(ctx))
	if err != nil {
		s.log.Info("message without a request head", "err", err)
		return emptyReply(http.StatusBadRequest), nil
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("%v", p)
		}
		if err != nil && !errors.Is(err, http.ErrAbortHandler) {
			s.log.Error("service panicked", "path", req.URL.Path, "panic", err)
		}
	}()
	w := &wholeWriter{header: http.Header{}}
	s.services.ServeHTTP(w, req)
	return w.message(), nil
}

func emptyReply(status int) *streamer.Message {
	return streamer.NewMessage(httpmsg.ReplyHead(status, nil), nil)
}

// wholeWriter is the ResponseWriter of a reply that is sent as a whole.
type wholeWriter struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

// Header returns the fields to be sent.
func (w *wholeWriter) Header() http.Header { return w.header }

// WriteHeader sets the status, once; informational ones are dropped, as nobody waits for them.
func (w *wholeWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write writes the body, up to what a sequence takes.
func (w *wholeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.tooLong = w.tooLong || w.body.Len()+len(p) > sequence.MaxMessage; w.tooLong {
		return 0, fmt.Errorf("a reply of more than the %d bytes that a sequence takes", sequence.MaxMessage)
	}
	return w.body.Write(p)
}

// message is the reply. One that is too long is told by its status.
func (w *wholeWriter) message() *streamer.Message {
	if w.tooLong {
		return emptyReply(http.StatusInternalServerError)
	}
	w.WriteHeader(http.StatusOK)
	if _, ok := w.header["Content-Type"]; !ok && w.body.Len() > 0 {
		w.header.Set("Content-Type", http.DetectContentType(w.body.Bytes()))
	}
	w.header.Del("Date")
	return streamer.NewMessage(httpmsg.ReplyHead(w.status, w.header), w.body.Bytes())
}

package responder

import (
	"bytes"
	"context"
	"net/http"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// handled are services of net/http for messages that come in sequences. They have effects of their
// own. Each request is served at most once for each time that the sequence delivers it.
type handled struct{ h *Handler }

// Transactional implements [Sequenced].
func (handled) Transactional(string) bool { return false }

// Transact implements [Sequenced]. It is not called.
func (s handled) Transact(
	ctx context.Context, path string, _ *wsrm.Tx, request *streamer.Message,
) (*streamer.Message, error) {
	return s.Handle(ctx, path, request), nil
}

// Handle implements [Sequenced].
func (s handled) Handle(ctx context.Context, _ string, request *streamer.Message) (reply *streamer.Message) {
	failed := streamer.NewMessage(httpmsg.ReplyHead(http.StatusInternalServerError, nil), nil)
	req, err := exchangeRequest(ctx, request, FactsOf(ctx))
	if err != nil {
		s.h.cfg.Log.Info("message without a request head", "err", err)
		return streamer.NewMessage(httpmsg.ReplyHead(http.StatusBadRequest, nil), nil)
	}
	defer func() {
		if p := recover(); p != nil {
			s.h.cfg.Log.Error("service panicked", "path", req.URL.Path, "panic", p)
			reply = failed
		}
	}()
	w := &wholeWriter{header: http.Header{}}
	s.h.services.ServeHTTP(w, req)
	w.WriteHeader(http.StatusOK)
	if _, ok := w.header["Content-Type"]; !ok && w.body.Len() > 0 {
		w.header.Set("Content-Type", http.DetectContentType(w.body.Bytes()))
	}
	w.header.Del("Date")
	return streamer.NewMessage(httpmsg.ReplyHead(w.status, w.header), w.body.Bytes())
}

// wholeWriter is the ResponseWriter of a reply that is sent as a whole.
type wholeWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the fields to be sent.
func (w *wholeWriter) Header() http.Header { return w.header }

// WriteHeader sets the status, once; informational ones are dropped, as nobody waits for them.
func (w *wholeWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// Write writes the body.
func (w *wholeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.body.Write(p)
}

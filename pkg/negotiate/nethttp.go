package negotiate

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Handler makes an unchanged SOAP server of net/http speak HHFR: it is an [http.Handler] that answers offers and passes all else on, and
// [Responder.ServeStreams] accepts the streams, whose messages reach the server as requests. All methods are safe for concurrent use.
type Handler struct {
	*Responder
	services http.Handler
	plain    http.Handler
}

// NewHandler makes one for a server. cfg.Addresses is required, cfg.Serve is not used. Errors: BadConfig. The caller calls Close in the end.
//
// A request that came by a stream has the head that the initiator gave, the remote address of nobody, and the host of the URL that was negotiated. Its context
// has the session's facts ([FactsOf]). A reply's head travels without the fields that speak of one connection, and without Date.
func NewHandler(services http.Handler, cfg ResponderConfig) (*Handler, error) {
	h := &Handler{services: services}
	cfg.Serve = h.serveExchange
	if len(cfg.Addresses) == 0 {
		return nil, badConfig("Addresses are required")
	}
	r, err := NewResponder(cfg)
	if err != nil {
		return nil, err
	}
	h.Responder, h.plain = r, r.Handler(services)
	return h, nil
}

// ServeHTTP serves plain SOAP and offers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.plain.ServeHTTP(w, r) }

// serveExchange has an exchange of a stream served as a request.
func (h *Handler) serveExchange(ctx context.Context, _ string, x *streamer.Exchange) {
	facts := FactsOf(ctx)
	req, err := exchangeRequest(ctx, x.Message(), facts)
	if err != nil {
		h.cfg.Log.Info("message without a request head", "err", err)
		return // the stream tells the other end that the exchange failed
	}
	w := &exchangeWriter{header: http.Header{}, reply: make(chan *streamer.Message, 1)}
	w.body, w.pipe = io.Pipe()
	var ended bool
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer func() {
			// A server that panics ends its reply there, as net/http has it; the cause is logged as it would be there.
			p := recover()
			if err, _ := p.(error); p != nil && !errors.Is(err, http.ErrAbortHandler) {
				h.cfg.Log.Error("service panicked", "path", req.URL.Path, "panic", p)
			}
			w.finish(ended)
		}()
		h.services.ServeHTTP(w, req)
		ended = true
	}()
	if m, ok := <-w.reply; ok {
		if x.OneWay() {
			_, _ = io.Copy(io.Discard, m.Body)
		} else if err := x.Reply(ctx, m); err != nil {
			h.cfg.Log.Debug("reply not sent", "err", err)
		}
	}
	_ = w.body.CloseWithError(context.Canceled)
	<-served
}

// exchangeRequest makes a message a request.
func exchangeRequest(ctx context.Context, m *streamer.Message, facts *Facts) (*http.Request, error) {
	octets := m.Head
	if octets == nil {
		octets = DefaultRequestHead(facts.Path)
	}
	head, n, err := http1.ParseHead(octets, 0)
	if err != nil || head.IsReply() {
		return nil, &Error{Code: Malformed, At: int64(n), Remote: true, Err: err}
	}
	body := m.Body
	if body == nil {
		body = http.NoBody
	}
	if err := http1.CheckFields(&head); err != nil {
		return nil, malformed(err)
	}
	target, err := http1.OriginForm(&head, func(scheme, authority string) bool {
		u, err := url.Parse(scheme + "://" + authority)
		return err == nil && u.User == nil && Origin(u) == facts.Origin
	})
	if err != nil {
		return nil, malformed(err)
	}
	req, err := http.NewRequestWithContext(ctx, string(head.Method()), target, body)
	if err != nil {
		return nil, malformed(err)
	}
	req.RequestURI, req.ContentLength = target, -1
	if m.Body == nil {
		req.ContentLength = 0
	}
	for _, f := range head.Fields() {
		if !isFraming(f) {
			req.Header.Add(string(f.Name), string(f.Unfolded()))
		}
	}
	// The host is that of the negotiated URL whatever the target says: a session never leads to another.
	req.Host, req.URL.Scheme, req.URL.Host, req.URL.User = hostOf(facts.Origin), "", "", nil
	return req, nil
}

// hostOf is host and port of an origin.
func hostOf(origin string) string {
	req, err := http.NewRequest(http.MethodPost, origin, nil)
	if err != nil {
		return ""
	}
	return req.URL.Host
}

// exchangeWriter is the ResponseWriter of an exchange: a short reply is given as a whole, a long one as it comes.
type exchangeWriter struct {
	header http.Header
	status int
	start  bytes.Buffer // before the reply is given
	given  bool
	reply  chan *streamer.Message
	body   *io.PipeReader
	pipe   *io.PipeWriter
}

// Header gives the fields to be sent.
func (w *exchangeWriter) Header() http.Header { return w.header }

// WriteHeader sets the status, once. Informational ones are not carried.
func (w *exchangeWriter) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
}

// wholeReply is the longest reply that is held back to be sent as a whole, in octets.
const wholeReply = 32 << 10

// Write writes the body.
func (w *exchangeWriter) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if !w.given {
		if w.start.Len()+len(p) <= wholeReply {
			return w.start.Write(p)
		}
		w.Flush()
	}
	return w.pipe.Write(p)
}

// Flush sends what there is.
func (w *exchangeWriter) Flush() {
	if w.given {
		return
	}
	w.WriteHeader(http.StatusOK)
	w.give(io.MultiReader(bytes.NewReader(w.start.Bytes()), w.body))
}

func (w *exchangeWriter) give(body io.Reader) {
	w.given = true
	if _, ok := w.header["Content-Type"]; !ok && w.start.Len() > 0 {
		w.header.Set("Content-Type", http.DetectContentType(w.start.Bytes()))
	}
	w.header.Del("Date")
	head, err := http1.AppendStatusLine(nil, "HTTP/1.1", w.status, http.StatusText(w.status))
	if err != nil {
		head, _ = http1.AppendStatusLine(nil, "HTTP/1.1", http.StatusInternalServerError, "")
	}
	head, _ = appendHeader(head, w.header, func(error) error { return nil })
	if bytes.Equal(head, DefaultReplyHead()) {
		head = nil
	}
	w.reply <- &streamer.Message{Head: head, Body: body}
}

// finish ends the reply; one that its server did not end is cut short, and the other end is told.
func (w *exchangeWriter) finish(ended bool) {
	defer close(w.reply)
	switch {
	case w.given && ended:
		_ = w.pipe.Close()
	case w.given:
		_ = w.pipe.CloseWithError(http.ErrAbortHandler)
	case ended:
		w.WriteHeader(http.StatusOK)
		if n, err := strconv.Atoi(w.header.Get("Content-Length")); err == nil && n > w.start.Len() {
			return // promised more than it gave
		}
		w.give(bytes.NewReader(w.start.Bytes()))
	}
}

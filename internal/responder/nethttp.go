package responder

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Handler makes an unchanged SOAP server of net/http speak HHFR. It is an [http.Handler] that
// answers offers and passes everything else on. [Responder.ServeStreams] accepts the streams, whose
// messages reach the server as requests. All methods are safe for concurrent use.
type Handler struct {
	*Responder
	services http.Handler
	plain    http.Handler
}

// NewHandler makes one for a server. cfg.Serve is not used. Without cfg.Addresses streams run over
// upgraded connections alone, and without cfg.Sequenced the server also gets the messages of
// sequences as requests, for effects of its own ([SequencedHandler]). The caller must call Close in
// the end. Errors: BadConfig.
//
// A request that came over a stream has the head that the initiator gave, and the host of the URL
// that was negotiated. Its remote address and TLS are those of the stream's connection. A request
// of a sequence has neither address nor TLS, as it may have come over several connections. The
// context of a request has the session's facts ([FactsOf]). A reply's head travels without the
// fields about one connection, without Date, and without trailers.
func NewHandler(services http.Handler, cfg Config) (*Handler, error) {
	h := &Handler{services: services}
	if cfg.Sequenced == nil {
		cfg.Sequenced = SequencedHandler(services, nil, cfg.Log)
	}
	r, err := serving(cfg, h.serveExchange)
	if err != nil {
		return nil, err
	}
	h.Responder, h.plain = r, r.Handler(services)
	return h, nil
}

// ServeHTTP serves plain SOAP and offers.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.plain.ServeHTTP(w, r) }

// servedRequest is what a request over a stream takes, in one piece of memory.
type servedRequest struct {
	in     httpmsg.Incoming
	body   RequestBody
	writer exchangeWriter
}

// RequestBody is the body of a request that came over a stream.
type RequestBody struct {
	io.ReadCloser
	// Failed, if given, returns what services get of an error of Read other than io.EOF.
	Failed func(error) error
}

// Read implements [io.Reader].
func (b *RequestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && b.Failed != nil && !errors.Is(err, io.EOF) {
		err = b.Failed(err)
	}
	return n, err
}

// serveExchange serves an exchange of a stream as a request.
func (h *Handler) serveExchange(ctx context.Context, s *servedSession, x *streamer.Exchange) {
	served, use := new(servedRequest), s.use()
	req, err := use.requests.RequestIn(ctx, x.Lane(), x.Message(), &served.in)
	if err != nil {
		h.cfg.Log.Info("message without a request head", "err", err)
		return // the stream tells the peer that the exchange failed
	}
	req.RemoteAddr, req.TLS = s.client.remote, s.client.tls
	if s.opener != nil && !s.opener.apply(req) {
		x.Refuse("another path than that of the stream")
		return
	}
	if req.Body != http.NoBody { // services compare with it
		served.body.ReadCloser = req.Body
		req.Body = &served.body
	}
	w := &served.writer
	w.ctx, w.x, w.known, w.lane = ctx, x, &use.replies, x.Lane()
	path, ended := req.URL.Path, false
	defer func() { w.end(h.cfg.Log, path, ended, recover()) }()
	h.services.ServeHTTP(w, req)
	ended = true
}

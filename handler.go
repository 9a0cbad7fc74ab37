package hhfr

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Handler puts hhfr around the services of an unchanged server of net/http. It serves plain SOAP,
// and answers clients that negotiate. What arrives on a stream reaches the services as ordinary
// requests. A body that breaks off returns an [Error] of code FateUnknown. The zero value works;
// fields must not be changed after the first request. It is an [http.Handler], safe for concurrent
// use.
//
// Handlers around this one see plain requests, offers, and the first request of a stream; they do
// not see the others of the stream. So a stream takes only POST requests for the path that its
// first request was for, with the path changed as they changed that (http.StripPrefix). Other
// requests go as plain SOAP through them. What is to hold for each request of a path belongs into
// the Handler within: authentication of each request, limits of rates, logs.
//
// Streams on connections of their own need a [Server].
type Handler struct {
	// Handler has the services; nil: [http.DefaultServeMux].
	Handler http.Handler
	// AnyPath: streams take requests for all paths, whatever their first request was for. Set it if
	// the handlers around this one treat all requests alike, or there are none. A prefix that they
	// removed from the path of the first request is removed from the others; requests without it
	// go as plain SOAP.
	AnyPath bool
	// StreamContext, if given, returns the context of the requests of a stream, beginning with the
	// second, so that values which handlers around this one have set reach the services. It is
	// called once for each stream. ctx is the context to derive it from, and r the first request.
	// Values of r's context that are used again when r is over must not be passed on. nil: these
	// requests have none of its values.
	StreamContext func(ctx context.Context, r *http.Request) context.Context
	// Store holds sessions, the shapes of messages, and what was handled under a guarantee; nil:
	// memory, for as long as the Handler lives.
	Store ctxstore.Store
	// Common is a context store that clients use as well; nil: none is agreed to.
	Common *CommonContexts
	// Archive keeps what decodes recordings of sessions in Store for good; false: as long as the
	// sessions last.
	Archive bool
	// Log receives problems that were survived; nil: nothing is logged.
	Log *slog.Logger

	once   sync.Once
	below  *responder.Handler
	broken error
	tally  tally
}

// open creates the handler below, once. addresses say where streams are accepted, by transport.
func (h *Handler) open(addresses map[string]string) error {
	h.once.Do(func() {
		services := h.Handler
		if services == nil {
			services = http.DefaultServeMux
		}
		common, err := h.Common.opened()
		if err != nil {
			h.broken = err
			return
		}
		h.below, err = responder.NewHandler(receiving(services, &h.tally), responder.Config{
			Stream:    streamer.Config{Carried: &h.tally.streams},
			Addresses: addresses, Store: h.Store, Common: common, Archive: h.Archive, Log: h.Log,
			OnePath: !h.AnyPath, StreamContext: h.StreamContext,
		})
		h.broken = fault(err)
	})
	return h.broken
}

// ServeHTTP serves one request; see [http.Handler]. Without a request, or a writer for its reply,
// it does nothing.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if w == nil || r == nil {
		return
	}
	if err := h.open(nil); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.below.ServeHTTP(w, r)
}

// Shutdown is Close for requests that take longer: [Server.Shutdown] for the streams. Plain SOAP
// ends with the server of net/http, whose own Shutdown does not wait for streams.
func (h *Handler) Shutdown(ctx context.Context) error {
	if ctx == nil {
		return errNoContext
	}
	if err := h.open(nil); err != nil {
		return err
	}
	return unfinished(h.below.Shutdown(ctx))
}

// Close ends all streams, after what was accepted is written, within 5 seconds, and waits for them.
// It is idempotent.
func (h *Handler) Close() error {
	if err := h.open(nil); err != nil {
		return err
	}
	return fault(h.below.Close())
}

package hhfr

import (
	"log/slog"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Handler puts hhfr around the services of an unchanged server of net/http. It serves plain SOAP,
// and answers clients that negotiate. What arrives on a stream reaches the services as ordinary
// requests. A body that breaks off returns an [Error] of code FateUnknown. The zero value works;
// fields must not be changed after the first request. It is an [http.Handler], safe for concurrent
// use.
//
// Streams on connections of their own need a [Server].
type Handler struct {
	// Handler has the services; nil: [http.DefaultServeMux].
	Handler http.Handler
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
		h.below, err = responder.NewHandler(receiving(services), responder.Config{
			Addresses: addresses, Store: h.Store, Common: common, Archive: h.Archive, Log: h.Log,
		})
		h.broken = fault(err)
	})
	return h.broken
}

// ServeHTTP serves one request; see [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.open(nil); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	h.below.ServeHTTP(w, r)
}

// Close ends all streams, after what was accepted is written, and waits for them. It is idempotent.
func (h *Handler) Close() error {
	if err := h.open(nil); err != nil {
		return err
	}
	return fault(h.below.Close())
}

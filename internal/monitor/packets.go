package monitor

import (
	"errors"
	"net/http"

	"github.com/hhfr/hhfr/internal/browser"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// packets answers with a recording of what passes from now on, until whoever asks goes away: inside
// TLS, and with a sync on every stream, at once or as soon as there may be one, so that it can be
// decoded. It shows what clients send: so
// it has to be asked for when the process begins, and requests come from this machine, and are none
// of a page. One is answered at a time.
func (m *Monitor) packets(w http.ResponseWriter, r *http.Request) {
	switch {
	case !isLocal(r) || browser.IsForeign(r):
		http.Error(w, "recordings are for programs of this machine only", http.StatusForbidden)
		return
	case m.tap == nil:
		http.Error(w, "nothing is shown without --packets", http.StatusNotFound)
		return
	case r.Method != http.MethodGet:
		return
	}
	w.Header().Set("Content-Type", "application/x-pcapng")
	w.Header().Set("Cache-Control", "no-store")
	flush := func() { _ = http.NewResponseController(w).Flush() } // a client that went away
	err := m.tap.Listen(r.Context(), w, func() { m.syncSoon(r.Context()) }, flush)
	switch {
	case errors.Is(err, pcapng.ErrSlow):
		panic(http.ErrAbortHandler) // the connection breaks: something is missing
	case errors.Is(err, pcapng.ErrListening):
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

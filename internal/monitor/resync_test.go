package monitor_test

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// silent is a listener to which nothing comes.
type silent chan struct{}

func (s silent) Accept() (net.Conn, error) { <-s; return nil, net.ErrClosed }
func (s silent) Close() error              { close(s); return nil }
func (silent) Addr() net.Addr              { return &net.TCPAddr{} }

// fromElsewhere are requests that are not for programs of this machine alone: where they come from,
// whom they name, and a field.
var fromElsewhere = [][4]string{
	{"192.0.2.1:5", "127.0.0.1:9101"}, {"127.0.0.1:5", "evil.example:9101"}, {"127.0.0.1:5", "192.0.2.1"},
	{"127.0.0.1:5", "gate.example"}, {"127.0.0.1:5", "127.0.0.1:9101", "Origin", "http://127.0.0.1:9101"},
	{"127.0.0.1:5", "localhost", "Sec-Fetch-Site", "cross-site"},
}

// ask answers a request that comes from somewhere, names a host, and has a field.
func ask(t *testing.T, m *monitor.Monitor, method, path string, c [4]string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if r.RemoteAddr, r.Host = c[0], c[1]; c[2] != "" {
		r.Header.Set(c[2], c[3])
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w
}

// TestPacketsAreForThisMachine: what passes is shown to programs of this machine, and only if it
// was asked for when the process began.
func TestPacketsAreForThisMachine(t *testing.T) {
	for _, tap := range []*pcapng.Tap{nil, new(pcapng.Tap)} {
		m := monitor.Start(make(silent), meter.New(time.Now()), tap, []string{"gate.example"},
			slog.New(slog.DiscardHandler))
		for _, c := range fromElsewhere {
			assert.Equal(t, http.StatusForbidden, ask(t, m, http.MethodGet, "/packets", c).Code, c)
		}
		if tap == nil {
			w := ask(t, m, http.MethodGet, "/packets", [4]string{"127.0.0.1:5", "localhost:9101"})
			assert.Equal(t, http.StatusNotFound, w.Code)
			assert.Contains(t, w.Body.String(), "--packets")
		}
		require.NoError(t, m.Close())
	}
}

// TestSyncsOnDemand: a POST of /status is for programs of this machine, and one in ten seconds;
// what is refused does not count.
func TestSyncsOnDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := monitor.Start(make(silent), meter.New(time.Now()), new(pcapng.Tap), []string{"gate.example"},
			slog.New(slog.DiscardHandler))
		defer func() { require.NoError(t, m.Close()) }()
		for _, c := range fromElsewhere {
			assert.Equal(t, http.StatusForbidden, ask(t, m, http.MethodPost, "/status", c).Code, c)
		}
		good := func() *httptest.ResponseRecorder {
			return ask(t, m, http.MethodPost, "/status", [4]string{"[::1]:5", "localhost:9101"})
		}
		w := good()
		assert.Equal(t, http.StatusAccepted, w.Code)
		assert.JSONEq(t, `{"version": 1, "streams": 0}`, w.Body.String())
		time.Sleep(9500 * time.Millisecond)
		w = good()
		assert.Equal(t, http.StatusTooManyRequests, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		time.Sleep(500 * time.Millisecond)
		assert.Equal(t, http.StatusAccepted, good().Code)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/metrics", http.NoBody)
		w = httptest.NewRecorder()
		m.ServeHTTP(w, r)
		assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
	})
}

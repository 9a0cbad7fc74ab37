// Package monitor shows what a process carries to those who run it, over HTTP at an address of its
// own: a page, JSON, Prometheus text, whether it is healthy, and to programs of the same machine
// profiles. It counts nothing itself (package meter does).
package monitor

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/browser"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor/prometheus"
	"github.com/hhfr/hhfr/internal/pcapng"
)

const (
	// headTimeout and idleTimeout bound how long a client may hold a connection without a request.
	headTimeout = 10 * time.Second
	idleTimeout = 2 * time.Minute
	// maxHead is the longest head of a request, in bytes.
	maxHead = 16 << 10
)

// page is for browsers, and fetches what it shows.
//
//go:embed assets/status.html
var page string

// Monitor is a listener that answers until it is closed.
type Monitor struct {
	server   *http.Server
	take     func() *meter.Snapshot
	sync     func() (streams int)
	tap      *pcapng.Tap
	names    []string
	exporter *prometheus.Exporter
	ending   atomic.Bool
	done     chan struct{}

	resyncing sync.Mutex
	resynced  time.Time // when that was asked for last
}

// Start answers requests that come to l, which it closes, with what is counted; a POST of /status
// has the streams send a sync. names are those of its host; requests may also name it by any
// address. tap has the connections of the process; nil: they are not shown.
func Start(l net.Listener, counts *meter.Meter, tap *pcapng.Tap, names []string, logger *slog.Logger) *Monitor {
	take := func() *meter.Snapshot { return counts.Snapshot(time.Now()) }
	m := &Monitor{
		take: take, sync: counts.Resync, names: names, exporter: prometheus.New(take), done: make(chan struct{}),
		tap: tap,
	}
	m.server = &http.Server{
		Handler: m, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHead,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(m.done)
		if err := m.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("no metrics any more", "address", l.Addr(), "err", err)
		}
	}()
	return m
}

// Ending has /healthz answer 503: no more work is to be given to this process.
func (m *Monitor) Ending() { m.ending.Store(true) }

// finishTime is how long whoever listens may take for the end of what passed.
const finishTime = time.Second

// Close ends it and all that it answers. Who listens to what passes has all of that then.
func (m *Monitor) Close() error {
	if m.tap != nil {
		ctx, cancel := context.WithTimeout(context.Background(), finishTime)
		m.tap.Finish(ctx)
		cancel()
	}
	err := m.server.Close()
	<-m.done
	return err
}

// ServeHTTP answers one request. Without a multiplexer: that of net/http is large, and nothing else
// of the program uses it.
func (m *Monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodPost && r.URL.Path == "/status":
		m.resync(w, r)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD, and POST of /status", http.StatusMethodNotAllowed)
		return
	}
	name, isProfile := strings.CutPrefix(r.URL.Path, "/debug/pprof/")
	switch {
	case isProfile:
		profiles(w, r, name)
	case r.URL.Path == "/packets":
		m.packets(w, r)
	case r.URL.Path == "/healthz":
		m.healthz(w)
	case !browser.IsNamed(r, netip.Addr.IsValid, m.names...) || browser.IsForeign(r):
		http.Error(w, "this is for requests by an address, by localhost, or by a name that --metrics or "+
			"--metrics-host has, and for no page from elsewhere", http.StatusForbidden)
	case r.URL.Path == "/", r.URL.Path == "/status":
		m.status(w, r)
	case r.URL.Path == "/metrics":
		m.metrics(w)
	default:
		http.Error(w, "here are /status, /metrics, /healthz, /packets and /debug/pprof/", http.StatusNotFound)
	}
}

// status is a page for browsers, and JSON for all who ask for that, or do not say.
func (m *Monitor) status(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Vary", "Accept")
	if r.URL.Query().Get("format") != "json" && accepts(r, "text/html") {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		// The page loads nothing, and nobody shows it in a frame.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "+
			"script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'")
		_, _ = io.WriteString(w, page) // a client that went away
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(m.take()) // a client that went away
}

// accepts reports whether a request names a media type.
func accepts(r *http.Request, media string) bool {
	for _, field := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(field, ",") {
			if name, _, err := mime.ParseMediaType(one); err == nil && name == media {
				return true
			}
		}
	}
	return false
}

func (m *Monitor) metrics(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	m.exporter.Write(w)
}

func (m *Monitor) healthz(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if m.ending.Load() {
		http.Error(w, "ending", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

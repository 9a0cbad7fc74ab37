package queuelink

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/soapjms"
)

// nearHalf takes requests of HTTP, and has them answered over a queue.
type nearHalf struct {
	to  http.RoundTripper
	log *slog.Logger
}

// ServeHTTP implements [http.Handler].
func (n *nearHalf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "SOAP is posted here", http.StatusMethodNotAllowed)
		return
	}
	reply, err := n.to.RoundTrip(r)
	if err != nil {
		if r.Context().Err() == nil {
			n.log.Warn("a request failed", "path", r.URL.Path, "err", err)
		}
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	relay(w, reply, n.log)
}

// statusOf is the status of HTTP for what became of a request.
func statusOf(err error) int {
	var wrong *soapjms.Error
	if errors.As(err, &wrong) {
		switch wrong.Code {
		case soapjms.NoReply:
			return http.StatusGatewayTimeout
		case soapjms.TooLarge:
			return http.StatusRequestEntityTooLarge
		case soapjms.Unreachable, soapjms.Refused:
			return http.StatusServiceUnavailable
		case soapjms.BadAddress, soapjms.Malformed:
		}
	}
	return http.StatusBadGateway
}

// relay gives a reply out.
func relay(w http.ResponseWriter, reply *http.Response, logger *slog.Logger) {
	defer reply.Body.Close()
	for _, name := range [...]string{"Content-Type", "Content-Encoding"} {
		if value := reply.Header.Get(name); value != "" {
			w.Header().Set(name, value)
		}
	}
	w.WriteHeader(reply.StatusCode)
	if _, err := io.Copy(w, reply.Body); err != nil {
		logger.Warn("a reply was cut", "err", err)
		panic(http.ErrAbortHandler)
	}
}

// Pauses after attempts to reach an origin that is not there: the first, and the longest.
const firstPause, longestPause = 100 * time.Millisecond, 30 * time.Second

// farHalf sends requests of a queue to their origin. One that is not there gets none, and they are
// in the queue for as long as they live.
type farHalf struct {
	origin *url.URL // whose path is that of requests that name no service
	client http.RoundTripper
	log    *slog.Logger
	ends   context.Context // done when it ends

	mu    sync.Mutex
	pause time.Duration // 0: the origin was there last
}

// ServeHTTP implements [http.Handler].
func (f *farHalf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := *r.URL
	to.Scheme, to.Host = f.origin.Scheme, f.origin.Host
	out, err := http.NewRequestWithContext(r.Context(), r.Method, to.String(), r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out.Header, out.ContentLength = r.Header.Clone(), r.ContentLength
	out.Header.Set("User-Agent", "") // none
	reply, err := f.client.RoundTrip(out)
	var dial *net.OpError
	switch {
	case err == nil:
		f.reached()
		relay(w, reply, f.log)
	case errors.As(err, &dial) && dial.Op == "dial":
		f.wait(err)
		panic(soapjms.ErrNotNow)
	default:
		f.log.Warn("a request failed", "to", to.Redacted(), "err", err)
		http.Error(w, "the origin did not answer, and may have handled the request: "+err.Error(),
			http.StatusBadGateway)
	}
}

func (f *farHalf) reached() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pause = 0
}

// wait waits before the next attempt to reach the origin.
func (f *farHalf) wait(why error) {
	f.mu.Lock()
	if f.pause == 0 {
		f.log.Warn("the origin is not there; requests are in the queue until it is", "err", why)
	}
	f.pause = min(max(2*f.pause, firstPause), longestPause)
	timer := time.NewTimer(f.pause)
	f.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ends.Done():
	}
}

package queuelink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/internal/soapjms"
)

const (
	// small is how much of a request each connection may hold, in bytes.
	small = 1 << 20
	// mostLong is how many requests that are longer are in memory at once.
	mostLong = 16
	// longWait is how long another such request waits.
	longWait = time.Minute
)

var errManyLong = fmt.Errorf("%d requests of more than %d bytes are being sent, and none had its reply within %v",
	mostLong, small, longWait)

// nearHalf takes requests of HTTP, and has them answered over a queue.
type nearHalf struct {
	to   http.RoundTripper
	log  *slog.Logger
	long chan struct{} // an element for each request of more than small in memory
}

// boundedBody is the body of a request. It has a place among the long ones before more than small
// of it is read.
type boundedBody struct {
	io.ReadCloser
	ctx  context.Context
	long chan struct{}
	left int // until it needs one
	has  bool
}

// Read implements [io.Reader].
func (b *boundedBody) Read(p []byte) (n int, err error) {
	if b.left == 0 && !b.has {
		timer := time.NewTimer(longWait)
		defer timer.Stop()
		select {
		case b.long <- struct{}{}:
			b.has = true
		case <-timer.C:
			return 0, errManyLong
		case <-b.ctx.Done():
			return 0, context.Cause(b.ctx)
		}
	}
	if !b.has && len(p) > b.left {
		p = p[:b.left]
	}
	n, err = b.ReadCloser.Read(p)
	b.left = max(b.left-n, 0)
	return n, err
}

// free gives the place back.
func (b *boundedBody) free() {
	if b.has {
		<-b.long
	}
}

// ServeHTTP implements [http.Handler].
func (n *nearHalf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "SOAP is posted here", http.StatusMethodNotAllowed)
		return
	}
	body := &boundedBody{ReadCloser: r.Body, ctx: r.Context(), long: n.long, left: small}
	defer body.free()
	r.Body = body
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
	if errors.Is(err, errManyLong) {
		return http.StatusServiceUnavailable
	}
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

// originTime is how long an origin may take with its whole reply: a request that waits has one of
// the places in which requests of its queue are handled.
const originTime = 5 * time.Minute

// longestReply bounds a reply of an origin, in bytes, as messages of queues are.
const longestReply = 64 << 20

// farHalf sends requests of a queue to their origin. One that is not there gets none, and they are
// in the queue for as long as they live.
type farHalf struct {
	origin *url.URL // whose path is that of requests that name no service
	client http.RoundTripper
	log    *slog.Logger
	ends   context.Context // done when it ends
	cut    context.Context // done when requests in progress have to end

	mu      sync.Mutex
	pause   time.Duration // 0: the origin was there last
	doubled time.Time     // when pause became what it is
}

// ServeHTTP implements [http.Handler].
func (f *farHalf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := *r.URL
	to.Scheme, to.Host = f.origin.Scheme, f.origin.Host
	ctx, cancel := f.limited(r.Context())
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	out, err := http.NewRequestWithContext(traced, r.Method, to.String(), r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	out.Header, out.ContentLength = r.Header.Clone(), r.ContentLength
	out.Header.Set("User-Agent", "") // none
	reply, err := f.ask(out)
	var dial *net.OpError
	switch {
	case err == nil:
		relay(w, reply, f.log)
	case errors.As(err, &dial) && dial.Op == "dial":
		f.wait(ctx, err)
		panic(soapjms.ErrNotNow)
	case ctx.Err() != nil && !connected.Load(): // nothing was sent
		panic(soapjms.ErrNotNow)
	default:
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		f.log.Warn("a request failed", "to", to.Redacted(), "err", err)
		http.Error(w, "no reply from the origin, which may have handled the request: "+err.Error(),
			http.StatusBadGateway)
	}
}

// limited is a context for one request: it ends after originTime, and when requests have to end.
func (f *farHalf) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.cut, func() { end(errors.New("the proxy was ended")) })
	ctx, cancel := context.WithTimeoutCause(ctx, originTime, fmt.Errorf("no whole reply within %v", originTime))
	return ctx, func() {
		stop()
		cancel()
		end(nil)
	}
}

// ask sends a request to the origin, and reads the whole reply.
func (f *farHalf) ask(out *http.Request) (*http.Response, error) {
	reply, err := f.client.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	f.reached()
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, longestReply+1))
	if err != nil {
		return nil, fmt.Errorf("its reply was cut: %w", err)
	}
	if len(body) > longestReply {
		return nil, fmt.Errorf("its reply is longer than %d bytes", longestReply)
	}
	reply.Body = io.NopCloser(bytes.NewReader(body))
	return reply, nil
}

func (f *farHalf) reached() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pause = 0
}

// wait waits before the next attempt to reach the origin. Attempts at once count as one.
func (f *farHalf) wait(ctx context.Context, why error) {
	f.mu.Lock()
	if f.pause == 0 {
		f.log.Warn("the origin is not there; requests are in the queue until it is", "err", why)
	}
	if now := time.Now(); now.Sub(f.doubled) >= f.pause {
		f.pause, f.doubled = min(max(2*f.pause, firstPause), longestPause), now
	}
	timer := time.NewTimer(f.pause)
	f.mu.Unlock()
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-f.ends.Done():
	case <-ctx.Done():
	}
}

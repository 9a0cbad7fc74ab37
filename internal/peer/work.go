package peer

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Work is how a [Server] does the work of its services, for measurements. The zero value is without
// bounds.
type Work struct {
	// Workers is how many requests are processed at once; 0: all. [QueuePerWorker] more for each
	// wait; others are refused at once, by a fault with status 503 and Retry-After.
	Workers int
	// Time is how long each request takes beside what its service does.
	Time time.Duration
	// Tells: replies have the field Server-Timing (W3C), whose metric app is the time from when the
	// request was taken up to when its reply began, without the wait for that.
	Tells bool
}

// QueuePerWorker is how many requests wait for each worker: so few that they are answered before
// clients give them up, unless one takes a second.
const QueuePerWorker = 16

// retryAfter is what those are told to wait that are refused, in seconds.
const retryAfter = "1"

// handler does the work of next. Descriptions, which GET asks for, are none.
func (w *Work) handler(c clock.Clock, next http.Handler) http.Handler {
	if *w == (Work{}) {
		return next
	}
	slots := make(chan struct{}, w.Workers)
	var waiting atomic.Int64
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(to, r)
			return
		}
		if w.Workers > 0 {
			most := int64(w.Workers) * (1 + QueuePerWorker)
			defer waiting.Add(-1)
			if waiting.Add(1) > most {
				refuseBusy(to, r)
				return
			}
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-r.Context().Done():
				panic(http.ErrAbortHandler) // nobody reads a reply
			}
		}
		if w.Tells {
			to = &timedReply{ResponseWriter: to, clock: c, begun: c.Now()}
		}
		if w.Time > 0 && c.Sleep(r.Context(), w.Time) != nil {
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(to, r)
	})
}

// refuseBusy answers a request that is not processed.
func refuseBusy(w http.ResponseWriter, r *http.Request) {
	v := soap.ParseContentType(r.Header.Get("Content-Type")).Version()
	if v == soap.None {
		v = soap.V11
	}
	fault, err := soap.BuildFault(v, soap.Fault{Code: soap.Server,
		Reason: "the service has as many requests as it takes; this one was not processed"})
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Retry-After", retryAfter)
	send(w, r, http.StatusServiceUnavailable, typeOf(v), fault)
}

// timedReply is a reply that says how long it took to begin.
type timedReply struct {
	http.ResponseWriter
	clock clock.Clock
	begun time.Time
	told  bool
}

// Unwrap is for [http.ResponseController].
func (t *timedReply) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (t *timedReply) WriteHeader(status int) {
	if !t.told && status >= http.StatusOK {
		t.told = true
		took := t.clock.Now().Sub(t.begun)
		t.Header().Set("Server-Timing", fmt.Sprintf("app;dur=%.3f", float64(took)/float64(time.Millisecond)))
	}
	t.ResponseWriter.WriteHeader(status)
}

// Write implements [io.Writer].
func (t *timedReply) Write(p []byte) (int, error) {
	if !t.told {
		t.WriteHeader(http.StatusOK)
	}
	return t.ResponseWriter.Write(p)
}

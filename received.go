package hhfr

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/hhfr/hhfr/internal/responder"
)

// received is the body of a received message. If it breaks off, the message is not whole, over each
// path.
type received struct {
	io.Reader
	length int64                 // in bytes, where it is known and above 0
	over   func()                // called once, at the end or on Close; nil: nothing
	tally  atomic.Pointer[tally] // of the request that this ends; nil: none
}

// Read implements [io.Reader].
func (r *received) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		err = brokenOff(err)
	}
	r.end()
	return n, err
}

// Close implements [io.Closer].
func (r *received) Close() error {
	err := closeBody(r.Reader)
	r.end()
	return err
}

func (r *received) end() {
	if r.over != nil {
		r.over()
		r.over = nil
	}
	if t := r.tally.Swap(nil); t != nil {
		t.end()
	}
}

// brokenOff is the error of a message that was received in part.
func brokenOff(err error) error {
	var own *Error
	if errors.As(err, &own) && own.Code == FateUnknown {
		return err
	}
	errors.As(fault(err), &own)
	return &Error{Code: FateUnknown, Remote: own.Remote, Sent: true, Err: err}
}

// receiving gives services bodies whose errors are those of this package, and counts requests.
func receiving(services http.Handler, t *tally) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.begin()
		defer t.end()
		if body, ok := r.Body.(*responder.RequestBody); ok {
			body.Failed = brokenOff
		} else if r.Body != nil && r.Body != http.NoBody { // services compare with NoBody
			if responder.FactsOf(r.Context()) == nil {
				own := *r // since the server of net/http continues to use its own
				r = &own
			}
			r.Body = &received{Reader: r.Body}
		}
		services.ServeHTTP(w, r)
	})
}

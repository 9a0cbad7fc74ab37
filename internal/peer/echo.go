package peer

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

// EchoPath is where [Echo] stands.
const EchoPath = "/echo"

// Echo gives back the body of each request, byte for byte as it arrives, with the request's
// Content-Type (and Content-Encoding, if it has one) and status 200. It parses nothing: what is no
// SOAP comes back too.
func Echo() Service { return Service{Path: EchoPath, Handler: http.HandlerFunc(echo), Verbatim: true} }

func echo(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Content-Type"] = r.Header["Content-Type"] // none is none: net/http would guess one
	if coding, ok := r.Header["Content-Encoding"]; ok {
		h["Content-Encoding"] = coding
	}
	if r.ContentLength >= 0 {
		h.Set("Content-Length", strconv.FormatInt(r.ContentLength, 10))
	}
	w.WriteHeader(http.StatusOK)
	if _, err := io.Copy(w, r.Body); err != nil {
		panic(http.ErrAbortHandler) // a reply cut short must not look whole
	}
}

// maxWhole is the longest request that [ReadWhole] reads, in bytes.
const maxWhole = 1 << 30

// ReadWhole is a service that is called when its whole request is there, as most are that
// understand it. [Echo] replies while it reads otherwise: both directions of a link work at once
// then, and no connection is upgraded by its request.
func ReadWhole(s Service) Service {
	next := s.Handler
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxWhole))
		if err != nil {
			sendError(w, r, soap.V11, err)
			return
		}
		whole := *r
		whole.Body, whole.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, &whole)
	})
	return s
}

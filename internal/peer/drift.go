package peer

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
)

// drift has replies change their structure, again and again: what described them, or was learned of
// them, holds no more.
type drift struct {
	every   int64 // replies of one structure
	replies atomic.Int64
}

// handler serves what next does, with replies that drift.
func (d *drift) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := &heldReply{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(reply, r)
		if reply.tooLong {
			panic(http.ErrAbortHandler)
		}
		body := d.alter(reply.body.Bytes())
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(reply.status)
		_, _ = w.Write(body) // net/http knows if it is not taken
	})
}

// maxDrifting is the longest reply that is held to be changed, in bytes.
const maxDrifting = 1 << 20

// heldReply is the ResponseWriter of a reply that is to be changed.
type heldReply struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

// Header gives the fields to be sent.
func (h *heldReply) Header() http.Header { return h.header }

// WriteHeader sets the status.
func (h *heldReply) WriteHeader(status int) { h.status = status }

// Write writes the body.
func (h *heldReply) Write(p []byte) (int, error) {
	if h.tooLong = h.tooLong || h.body.Len()+len(p) > maxDrifting; h.tooLong {
		return 0, fmt.Errorf("a reply of more than %d bytes cannot drift", maxDrifting)
	}
	return h.body.Write(p)
}

// alter puts an element before the end of the Body, of another name each time that the structure
// changes; what has no Body stays as it is.
func (d *drift) alter(body []byte) []byte {
	at := endOfBody(body)
	if at < 0 {
		return body
	}
	n := d.replies.Add(1)
	if n <= d.every {
		return body
	}
	element := fmt.Sprintf(`<d:drift%d xmlns:d="urn:hhfr:drift">%d</d:drift%[1]d>`, (n-1)/d.every, n)
	return slices.Insert(body, at, []byte(element)...)
}

// endOfBody is where the end tag of a SOAP Body begins; -1 if there is none.
func endOfBody(envelope []byte) int {
	for rest := envelope; ; {
		at := bytes.LastIndex(rest, []byte("</"))
		if at < 0 {
			return -1
		}
		name, _, _ := bytes.Cut(envelope[at+2:], []byte(">"))
		_, local, prefixed := bytes.Cut(name, []byte(":"))
		if string(name) == "Body" || prefixed && string(local) == "Body" {
			return at
		}
		rest = rest[:at]
	}
}

package responder

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/httpmsg"
)

// replyHead is the head of a service's reply, and what it says of the body, as net/http has it:
// changes of the fields count until the status is set.
type replyHead struct {
	header http.Header         // of the service; nil: it did not ask for it
	status int                 // 0: not set
	known  *httpmsg.ReplyHeads // of the session; nil: none are
	lane   uint64
	// fixed are the fields as they were then, where one may still be added; nil: the head is ready.
	fixed http.Header
	head  []byte // nil: the default one

	announced int64 // length of the body; -1: not known
	written   int64 // bytes of the body that the service has written
	taken     int64 // those of them that belong to it
}

// checkStatus panics where net/http does, which ends the reply in the same way.
func checkStatus(status int) {
	if status < 100 || status > 999 {
		panic(fmt.Sprintf("invalid WriteHeader code %d", status))
	}
}

// isInterim reports whether other replies follow one with this status.
func isInterim(status int) bool {
	return status >= 100 && status < 200 && status != http.StatusSwitchingProtocols
}

// Header returns the fields to be sent.
func (h *replyHead) Header() http.Header {
	if h.header == nil {
		h.header = http.Header{}
	}
	return h.header
}

// fix sets the status, once. ended: the service has returned, so that it changes nothing any more.
func (h *replyHead) fix(status int, ended bool) {
	h.status, h.announced = status, -1
	if length := h.header["Content-Length"]; len(length) > 0 {
		if n, err := strconv.ParseInt(length[0], 10, 64); err == nil && n >= 0 {
			h.announced = n
		}
	}
	_, typed := h.header["Content-Type"]
	_, trailers := h.header["Trailer"]
	switch {
	case !trailers && (typed || !h.hasBody()):
		h.head = h.encode(status, h.header)
		return
	case ended:
		h.fixed = h.Header()
	default:
		h.fixed = h.Header().Clone()
	}
	delete(h.fixed, "Trailer") // streams carry none
}

// hasBody reports whether a reply with this status has a body.
func (h *replyHead) hasBody() bool {
	return h.status >= 200 && h.status != http.StatusNoContent && h.status != http.StatusNotModified
}

// take counts bytes that the service writes. Its error is that of net/http for those that do not
// belong to the body.
func (h *replyHead) take(n int) error {
	if n == 0 {
		return nil
	}
	if !h.hasBody() {
		return http.ErrBodyNotAllowed
	}
	if h.written += int64(n); h.announced >= 0 && h.written > h.announced {
		return http.ErrContentLength
	}
	h.taken += int64(n)
	return nil
}

// isShort reports whether the body lacks a part of what was announced.
func (h *replyHead) isShort() bool { return h.hasBody() && h.taken < h.announced }

// final returns the head; start is the beginning of the body.
func (h *replyHead) final(start []byte) []byte {
	if h.fixed == nil {
		return h.head
	}
	_, typed := h.fixed["Content-Type"]
	if !typed && h.hasBody() && h.fixed.Get("Content-Encoding") == "" && len(start) > 0 {
		h.fixed.Set("Content-Type", http.DetectContentType(start))
	}
	return h.encode(h.status, h.fixed)
}

// encode writes a head as net/http has it.
func (h *replyHead) encode(status int, header http.Header) []byte {
	delete(header, "Date")
	return h.known.Head(h.lane, status, header)
}

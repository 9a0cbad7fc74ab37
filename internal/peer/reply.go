package peer

import (
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	xmlType  = "text/xml; charset=utf-8"
	soapType = "application/soap+xml; charset=utf-8"
)

// trackedBody knows whether a request was read to its end.
type trackedBody struct {
	io.ReadCloser
	ended bool
}

// Read implements [io.Reader].
func (b *trackedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || errors.Is(err, io.EOF)
	return n, err
}

// sendHead begins a reply of a known length.
func sendHead(w http.ResponseWriter, r *http.Request, status int, contentType string, length int) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(length))
	if tracked, ok := r.Body.(*trackedBody); ok && !tracked.ended && status >= http.StatusBadRequest {
		// Nobody reads the rest, so that net/http closes the connection: the client must not send
		// another request on it.
		h.Set("Connection", "close")
	}
	w.WriteHeader(status)
}

// send sends a reply.
func send(w http.ResponseWriter, r *http.Request, status int, contentType string, body []byte) {
	sendHead(w, r, status, contentType, len(body))
	_, _ = w.Write(body) // the server knows if it does not get through
}

// sendText sends an answer of HTTP that is no SOAP.
func sendText(w http.ResponseWriter, r *http.Request, status int, text string) {
	send(w, r, status, "text/plain; charset=utf-8", []byte(text))
}

func sendFault(w http.ResponseWriter, r *http.Request, v soap.Version, f soap.Fault) {
	fault, err := soap.BuildFault(v, f)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	send(w, r, soap.FaultStatus(v, f.Code), typeOf(v), fault)
}

// sendError answers a request that has no result: by a fault that says what is wrong with it, or,
// if that is no fault of its sender's, by one that does not tell why.
func sendError(w http.ResponseWriter, r *http.Request, v soap.Version, err error) {
	var why *complaint
	switch {
	case errors.As(err, &why) && why.coding:
		w.Header().Set("Accept-Encoding", "gzip")
		sendText(w, r, http.StatusUnsupportedMediaType, why.reason+"\n")
	case errors.As(err, &why):
		sendFault(w, r, v, soap.Fault{Code: why.code, Reason: why.reason, NotUnderstood: why.notUnderstood})
	case errors.Is(err, &Error{Code: Slow}): // which ends the context, too
		sendText(w, r, http.StatusRequestTimeout, "the request's body came too slowly\n")
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler)
	default:
		sendFault(w, r, soap.V11, soap.Fault{Code: soap.Server, Reason: "the service failed"})
	}
}

// typeOf is the Content-Type of an envelope.
func typeOf(v soap.Version) string {
	if contentType, err := soap.ContentType(v, ""); err == nil {
		return contentType
	}
	return xmlType
}

package proxy

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
)

// answerWriter receives the answer of a responder.
type answerWriter struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// wire is the answer as it goes to the client.
func (w *answerWriter) wire(last bool) []byte {
	if w.status != http.StatusNoContent {
		w.header.Set("Content-Length", strconv.Itoa(w.body.Len()))
	}
	if last {
		w.header.Set("Connection", "close")
	}
	out := bytes.NewBuffer(fmt.Appendf(nil, "HTTP/1.1 %d %s\r\n", w.status, http.StatusText(w.status)))
	_ = w.header.Write(out)
	return append(append(out.Bytes(), "\r\n"...), w.body.Bytes()...)
}

func (w *answerWriter) Header() http.Header         { return w.header }
func (w *answerWriter) WriteHeader(status int)      { w.status = status }
func (w *answerWriter) Write(b []byte) (int, error) { return w.body.Write(b) }

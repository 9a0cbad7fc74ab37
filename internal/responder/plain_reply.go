package responder

import (
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// servePlain serves a request of plain SOAP. Its reply has references in the place of header blocks
// that the request names (docs/negotiation.md, section 3.3).
func (r *Responder) servePlain(w http.ResponseWriter, req *http.Request, services http.Handler) {
	field := req.Header.Get(negotiate.FragmentsField)
	if field == "" || r.restorer == nil {
		services.ServeHTTP(w, req)
		return
	}
	reply := r.restorer.Reply(field, r.life.run)
	if reply == nil {
		services.ServeHTTP(w, req)
		return
	}
	referring := &referringWriter{ResponseWriter: w, reply: reply}
	services.ServeHTTP(referring, req)
	referring.finish() // not after a panic: the reply is to break off
}

// referringWriter is the ResponseWriter of a request that names fragments. It holds a reply back
// until the header blocks are there, or the service flushes.
type referringWriter struct {
	http.ResponseWriter
	reply  *unchanging.Reply
	status int    // 0: the service has written nothing
	start  []byte // held back
	passes bool   // what is written goes on as it is
}

// WriteHeader sets the status, once; informational ones are sent at once.
func (w *referringWriter) WriteHeader(status int) {
	switch {
	case w.passes || status >= 100 && status < 200 && status != http.StatusSwitchingProtocols:
		w.ResponseWriter.WriteHeader(status)
	case w.status != 0:
	default:
		if w.status = status; !w.mayRefer() {
			_ = w.pass(nil) // nothing is written yet
		}
	}
}

// mayRefer reports whether the reply may be one with header blocks.
func (w *referringWriter) mayRefer() bool {
	h := w.Header()
	return w.status != http.StatusSwitchingProtocols && h.Get("Content-Encoding") == "" && h.Get("Trailer") == "" &&
		soap.ParseContentType(h.Get("Content-Type")).Version() != soap.None
}

// Write writes the body.
func (w *referringWriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if w.passes {
		return w.ResponseWriter.Write(p)
	}
	if w.start = append(w.start, p...); !unchanging.Begun(w.start) {
		return len(p), nil
	}
	return len(p), w.refer()
}

// refer sends what was held back, with references.
func (w *referringWriter) refer() error {
	by, references := w.reply.Refer(w.start)
	if references == 0 {
		return w.pass(w.start)
	}
	if length := w.Header().Get("Content-Length"); length != "" {
		if n, err := strconv.ParseInt(length, 10, 64); err == nil {
			w.Header().Set("Content-Length", strconv.FormatInt(n-int64(len(w.start)-len(by)), 10))
		}
	}
	return w.pass(by)
}

// pass sends the beginning of a reply; the rest goes on as it comes.
func (w *referringWriter) pass(start []byte) error {
	w.passes, w.start = true, nil
	w.ResponseWriter.WriteHeader(w.status)
	if len(start) == 0 {
		return nil
	}
	_, err := w.ResponseWriter.Write(start)
	return err
}

// finish sends what is held back when the service has returned.
func (w *referringWriter) finish() {
	if w.status != 0 && !w.passes {
		_ = w.refer() // the client is gone
	}
}

// Flush sends what is held back; see [http.Flusher].
func (w *referringWriter) Flush() { _ = w.FlushError() }

// FlushError is Flush with an error; see [http.ResponseController].
func (w *referringWriter) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.passes {
		if err := w.refer(); err != nil {
			return err
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap returns the writer below, for [http.ResponseController].
func (w *referringWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

package responder

import (
	"log/slog"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

// writeFault answers a request with a fault.
func writeFault(to *slog.Logger, w http.ResponseWriter, v soap.Version, f soap.Fault) {
	message, err := soap.BuildFault(v, f)
	if err != nil {
		to.Warn("fault not written", "err", err)
		return
	}
	writeMessage(to, w, v, soap.FaultStatus(v, f.Code), message)
}

// writeMessage answers a request with a message of this end.
func writeMessage(to *slog.Logger, w http.ResponseWriter, v soap.Version, status int, message []byte) {
	contentType, err := soap.ContentType(v, "")
	if err != nil {
		contentType = "text/xml"
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(message)))
	// The token in an answer is for this initiator only.
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if _, err := w.Write(message); err != nil {
		to.Debug("answer not written", "err", err)
	}
}

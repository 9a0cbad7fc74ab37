package responder

import (
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/pkg/soap"
)

// fault answers a request with a fault.
func (c *Config) fault(w http.ResponseWriter, v soap.Version, f soap.Fault) {
	message, err := soap.BuildFault(v, f)
	if err != nil {
		c.Log.Warn("fault not written", "err", err)
		return
	}
	c.write(w, v, soap.FaultStatus(v, f.Code), message)
}

// write answers a request with a message of this end.
func (c *Config) write(w http.ResponseWriter, v soap.Version, status int, message []byte) {
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
		c.Log.Debug("answer not written", "err", err)
	}
}

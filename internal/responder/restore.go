package responder

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/soap"
)

// restore puts fragments back into a request, of which the beginning was read. false: that cannot
// be done, and the client has been told so.
func (r *Responder) restore(
	w http.ResponseWriter, req *http.Request, start []byte, err error,
) (_ []byte, _ error, ok bool) {
	if r.restorer == nil || req.Header.Get("Content-Encoding") != "" ||
		soap.ParseContentType(req.Header.Get("Content-Type")).Version() == soap.None {
		return start, err, true
	}
	start, err = unchanging.Beginning(start, err, req.Body)
	whole, fragments, failed := r.restorer.Restore(req.Context(), start)
	var lost *unchanging.Unrestored
	switch {
	case errors.As(failed, &lost):
		r.cfg.Log.Debug("message refused", "err", failed)
		writeFault(r.cfg.Log, w, lost.Version, lost.Fault())
		return nil, nil, false
	case fragments == 0:
		return start, err, true
	}
	if req.ContentLength >= 0 {
		req.ContentLength += int64(len(whole) - len(start))
		req.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	return whole, err, true
}

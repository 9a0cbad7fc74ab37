package responder

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Handler answers offers made at the paths of services, and passes everything else on to them
// unchanged. A request is an offer if it is a POST whose Body has the child [negotiate.OfferName]
// within its first 4 KiB. An offer that cannot be met, or is malformed, is answered with a fault.
func (r *Responder) Handler(services http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodOptions && req.Header.Get(negotiate.Field) != "" && r.serveQuestion(w, req) {
			return
		}
		if req.Method != http.MethodPost || (r.cfg.Serves != nil && !r.cfg.Serves(req.URL.Path)) {
			services.ServeHTTP(w, req)
			return
		}
		start, isOffer, err := peek(req.Body, req.ContentLength)
		if !isOffer {
			var ok bool
			if start, err, ok = r.restore(w, req, start, err); !ok {
				return
			}
			// The service reads what was read here again, and the error with it.
			req.Body = &httpmsg.Peeked{Reader: resumed(start, err, req.Body), Closer: req.Body}
			r.serveAsking(w, req, services)
			return
		}
		r.serveOffer(w, req, start)
	})
}

// peek reads until it is clear whether a body is an offer. length is that of the body, below 0 if
// it is not known.
func peek(body io.Reader, length int64) (start []byte, isOffer bool, err error) {
	most := maxPeek
	if length >= 0 && length < maxPeek {
		most = int(length) + 1 // its end is found, too
	}
	start = make([]byte, 0, most)
	for len(start) < most && err == nil {
		var n int
		n, err = body.Read(start[len(start):most])
		start = start[:len(start)+n]
		if !couldBeXML(start) {
			return start, false, err
		}
		if got := soap.Recognize(start); got.Complete {
			return start, got.Operation == negotiate.OfferName, err
		}
	}
	return start, false, err
}

// couldBeXML reports whether an XML document in UTF-8 may begin with these bytes. Of other bodies
// only the first bytes are waited for.
func couldBeXML(start []byte) bool {
	const mark = "\xEF\xBB\xBF"
	if len(start) < len(mark) && strings.HasPrefix(mark, string(start)) {
		return true
	}
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte(mark)), " \t\r\n")
	return len(start) == 0 || start[0] == '<'
}

// resumed returns a body of which start was read already, with the error that followed. It reports
// the end together with the last bytes where the end is known, as net/http does: then a service
// that writes while it reads is upgraded like any other.
func resumed(start []byte, err error, rest io.Reader) io.Reader {
	if errors.Is(err, io.EOF) {
		return &ending{start}
	}
	return io.MultiReader(bytes.NewReader(start), httpmsg.Failing(err), rest)
}

// ending is a reader that returns io.EOF with its last bytes.
type ending struct{ left []byte }

func (e *ending) Read(p []byte) (int, error) {
	n := copy(p, e.left)
	if e.left = e.left[n:]; len(e.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (r *Responder) serveOffer(w http.ResponseWriter, req *http.Request, start []byte) {
	data, err := io.ReadAll(io.LimitReader(req.Body, negotiate.MaxOffer+1-int64(len(start))))
	if err != nil {
		// The initiator is gone, or sends nothing more; nobody would read an answer.
		return
	}
	data = append(start, data...)
	offer, version, err := negotiate.ParseOffer(data)
	if version == soap.None {
		version = soap.V11
	}
	var unmet *negotiate.NotUnderstood
	switch {
	case errors.As(err, &unmet):
		writeFault(r.cfg.Log, w, version, unmet.Fault)
		return
	case err != nil:
		writeFault(r.cfg.Log, w, version, soap.Fault{Code: soap.Client, Reason: err.Error()})
		return
	}
	answer, err := r.offers.answer(req.Context(), req, offer)
	if err != nil {
		r.cfg.Log.Info("offer refused", "peer", req.RemoteAddr, "err", err)
		var items negotiate.RefusedItems
		if !errors.As(err, &items) {
			// A store's error names files; it must not reach the peer.
			items = negotiate.RefusedItems{{Item: "Session", Why: "cannot be stored: " + ctxstore.Reason(err)}}
		}
		writeFault(r.cfg.Log, w, version, negotiate.RefusalFault(items))
		return
	}
	message, err := answer.Message(version)
	if err != nil {
		r.offers.withdraw(req.Context(), answer)
		writeFault(r.cfg.Log, w, version, soap.Fault{Code: soap.Server, Reason: err.Error()})
		return
	}
	writeMessage(r.cfg.Log, w, version, http.StatusOK, message)
}

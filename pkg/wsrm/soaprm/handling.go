package soaprm

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

type inTransaction struct{}

type transaction struct {
	tx  *wsrm.Tx
	uri string
}

// TxOf returns the transaction of the message in a sequence that a handler with this context
// serves, and the URI under which the state of the sequence lies in the store; nil if there is
// none, and effects are the handler's own. It is good until the handler returns.
func TxOf(ctx context.Context) (tx *wsrm.Tx, uri string) {
	t, _ := ctx.Value(inTransaction{}).(transaction)
	return t.tx, t.uri
}

// handling is one message at its service.
type handling struct {
	s *servedPair
	a *admittedRequest
}

// Deliver implements [wsrm.Handler].
func (h handling) Deliver(_ context.Context, tx *wsrm.Tx, _ []byte) ([]byte, error) {
	ctx := context.WithValue(context.WithoutCancel(h.a.ctx), inTransaction{}, transaction{tx, h.s.record.State})
	return h.run(ctx)
}

// run calls the service and makes what is stored of its reply; nil: there is none. An error says
// that the service panicked.
func (h handling) run(ctx context.Context) (reply []byte, err error) {
	if h.a.b.Last && h.a.in.Body.Local == "" { // the end of a sequence of 1.0, and no more
		return nil, nil
	}
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			err = p
		default:
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			h.s.endpoint.cfg.Log.Error("service panicked", "path", h.a.r.URL.Path, "panic", err)
		}
	}()
	var w headers.KeptReply
	h.s.endpoint.next.ServeHTTP(&w, headers.WithBody(h.a.r.WithContext(ctx), h.a.in.Message))
	if w.Body.Len() == 0 || isNone(h.a.at.ReplyTo) {
		return nil, nil
	}
	if !w.IsEnvelope() { // an answer of HTTP alone could acknowledge nothing
		return h.failed(fmt.Sprintf("the service answered with status %d: %.200s", w.Status, &w.Body)), nil
	}
	octets, err := h.s.endpoint.chain.Out(h.a.ctx, w.Body.Bytes())
	if err != nil {
		return h.failed("the reply of the service cannot be sent"), nil
	}
	if len(octets) > maxReply {
		return h.failed(fmt.Sprintf("the reply has more than %d bytes", maxReply)), nil
	}
	place := h.a.replies
	if string(soap.OperationName(octets)) == "Fault" {
		place = h.a.faults
	}
	contentType := addPlace(w.Header().Get("Content-Type"), place)
	return encodeReply(h.a.b.Number, max(w.Status, http.StatusOK), contentType, octets), nil
}

// failed is the reply of a service that has none.
func (h handling) failed(why string) []byte {
	f := soap.Fault{Code: soap.Server, Reason: why}
	e := f.Envelope(h.a.in.Version)
	to := h.a.at.AnswerFault(h.s.record.Version.faultAction(h.a.at.Space))
	e.Header = slices.Concat(to.Blocks(), parameters(h.a.at.Endpoint(true)), e.Header)
	octets, err := soap.Build(e)
	if err != nil {
		return nil
	}
	contentType, _ := soap.ContentType(h.a.in.Version, "") // no action, no error
	return encodeReply(h.a.b.Number, http.StatusInternalServerError, addPlace(contentType, h.a.faults), octets)
}

// encodeReply is a reply as the engine keeps it. The place it goes to stands behind its type.
func encodeReply(to uint64, status int, contentType string, envelope []byte) []byte {
	b := binary.AppendUvarint(nil, to)
	b = binary.AppendUvarint(b, uint64(status))
	b = bin.AppendBytes(b, []byte(contentType))
	return append(b, envelope...)
}

func decodeReply(b []byte) (to uint64, status int, contentType string, envelope []byte) {
	c := bin.NewCursor(b, 0)
	to, status = c.Uvarint(), int(c.Uvarint())
	contentType = string(c.Bytes(uint64(len(b))))
	return to, status, contentType, c.Rest()
}

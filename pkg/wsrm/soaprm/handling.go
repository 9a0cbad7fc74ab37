package soaprm

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/bin"
	"github.com/hhfr/hhfr/pkg/ctxstore/pieces"
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
	if len(octets) > MaxMessage {
		return h.failed(fmt.Sprintf("the reply has more than %d bytes", MaxMessage)), nil
	}
	r := storedReply{to: h.a.b.Number, status: max(w.Status, http.StatusOK), place: h.a.replies,
		contentType: w.Header().Get("Content-Type"), envelope: octets}
	if string(soap.OperationName(octets)) == "Fault" {
		r.place = h.a.faults
	}
	if len(octets) > maxReply {
		if r.long, err = putLong(ctx, h.s.bodies, octets); err != nil {
			h.s.endpoint.cfg.Log.Error("a long reply is not stored", "bytes", len(octets), "err", err)
			return h.failed("the store has no space for the reply"), nil
		}
	}
	return r.encode(), nil
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
	r := storedReply{to: h.a.b.Number, status: http.StatusInternalServerError, place: h.a.faults,
		contentType: contentType, envelope: octets}
	return r.encode()
}

// storedReply is a reply as the engine keeps it.
type storedReply struct {
	to          uint64 // the number of its request
	status      int
	contentType string
	place       string // where it goes; empty: on the connection
	envelope    []byte
	long        *storedBody // nil, or what is in place of the envelope
}

// encode writes the place behind the type, and that the reply is long behind that.
func (r *storedReply) encode() []byte {
	b := binary.AppendUvarint(nil, r.to)
	b = binary.AppendUvarint(b, uint64(r.status))
	kind, _, _ := strings.Cut(r.contentType, "\n")
	switch {
	case r.long != nil:
		return r.long.append(bin.AppendBytes(b, []byte(kind+"\n"+r.place+"\n")))
	case r.place != "":
		kind += "\n" + r.place
	}
	return append(bin.AppendBytes(b, []byte(kind)), r.envelope...)
}

// whole returns the envelope. A long one is read from the store.
func (r *storedReply) whole(ctx context.Context) ([]byte, error) {
	if r.long != nil {
		return r.long.read(ctx)
	}
	return r.envelope, nil
}

func decodeReply(b []byte, in pieces.Bodies) storedReply {
	c := bin.NewCursor(b, 0)
	r := storedReply{to: c.Uvarint(), status: int(c.Uvarint())}
	kind := strings.SplitN(string(c.Bytes(uint64(len(b)))), "\n", 3)
	r.contentType, r.envelope = kind[0], c.Rest()
	if len(kind) > 1 {
		r.place = kind[1]
	}
	if len(kind) > 2 {
		r.long, r.envelope = readStoredBody(r.envelope, in), nil
	}
	return r
}

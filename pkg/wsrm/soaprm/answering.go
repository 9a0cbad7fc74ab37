package soaprm

import (
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// refuse answers a message that was not processed.
func (e *SequenceDestination) refuse(w http.ResponseWriter, a *admittedRequest, err error) {
	r, ok := headers.RefusalOf(err)
	if !ok {
		e.cfg.Log.Error("sequence", "err", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "the message was not processed and may be sent again", http.StatusServiceUnavailable)
		return
	}
	v, action := a.in.Version, addressing.FaultAction(a.at.Space)
	switch {
	case a.b.Version != "":
		action = a.version().faultAction(a.at.Space)
	case r.Fault.SubcodeSpace == V11.Namespace():
		action = V11.faultAction(a.at.Space)
	}
	if a.connection != nil {
		action = xmlns.WSMC + "/fault"
	}
	if a.at.MessageID != "" || a.b.Version != "" {
		p, to := a.at.AnswerFault(action), a.at.Endpoint(true)
		if a.faults == "" {
			p.To, to = addressing.Anonymous(p.Space), nil
		}
		r = &headers.RefusedMessage{Fault: r.Fault, Blocks: slices.Concat(p.Blocks(), parameters(to), r.Blocks)}
	}
	if hasConnection(a.faults) {
		headers.WriteFault(w, v, r)
		return
	}
	fault := r.Fault.Envelope(v)
	fault.Header = append(fault.Header, r.Blocks...)
	octets, err := soap.Build(fault)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	contentType, _ := soap.ContentType(v, "") // no action, no error
	accepted(w)
	e.outbox.send(letter{a.faults, action, v, contentType, octets})
}

// parameters are the header blocks for who a reference names.
func parameters(r *addressing.Reference) []soap.Element {
	if r == nil {
		return nil
	}
	return r.Parameters
}

// answer sends a message of the protocol as the answer to one: to a place, or on its connection.
func (e *SequenceDestination) answer(w http.ResponseWriter, a *admittedRequest, place string, status int,
	action string, b *header.Blocks) error {
	p, to := a.at.Answer(a.version().action(action)), a.at.ReplyTo
	if place == "" {
		p.To, to = addressing.Anonymous(p.Space), nil
	}
	head, body := b.Elements(p.Space)
	octets, err := soap.Build(&soap.Envelope{Version: a.in.Version, Body: body,
		Header: slices.Concat(p.Blocks(), parameters(to), head)})
	if err != nil {
		return err
	}
	contentType, err := soap.ContentType(a.in.Version, p.Action)
	if err != nil {
		return err
	}
	if hasConnection(place) {
		headers.Write(w, status, contentType, octets)
		return nil
	}
	accepted(w)
	e.outbox.send(letter{place, p.Action, a.in.Version, contentType, octets})
	return nil
}

// accepted answers a request whose answer goes elsewhere, before that one does: clients look for
// the other answer once this one came.
func accepted(w http.ResponseWriter) {
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusAccepted)
	_ = http.NewResponseController(w).Flush() // where there is no such thing it goes when the handler returns
}

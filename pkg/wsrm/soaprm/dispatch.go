package soaprm

import (
	"context"
	"net/http"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// ServeHTTP serves one message.
func (e *SequenceDestination) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := &longBody{ReadCloser: r.Body, ctx: r.Context(), slots: e.slots}
	defer body.done()
	read := *r
	read.Body = body
	octets, ok := headers.ReadMessage(w, &read)
	if !ok {
		e.next.ServeHTTP(w, headers.WithBody(r, octets))
		return
	}
	a, err := e.open(r, octets)
	a.body = body
	if err == nil {
		err = e.serve(w, a)
	}
	if err != nil {
		e.refuse(w, a, err)
	}
}

// open has the chain look at a message.
func (e *SequenceDestination) open(r *http.Request, octets []byte) (a *admittedRequest, err error) {
	a = &admittedRequest{r: r, at: &addressing.Properties{Space: addressing.V200508}, b: &header.Blocks{}}
	a.ctx, a.in, err = e.chain.In(r.Context(), octets)
	if p := addressing.Of(a.ctx); p != nil {
		a.at = p
	}
	if err != nil {
		return a, err
	}
	if b := said(a.ctx); b != nil {
		a.b = b
	}
	if a.in.Body == connectionName("MakeConnection") {
		envelope, err := whole(octets)
		if err != nil {
			return a, err
		}
		a.connection = &envelope.Body[0]
	}
	space := a.in.Body.Space
	isFault := a.in.Body.Local == "Fault" && space == a.in.Version.Namespace()
	if space == V10.Namespace() || space == V11.Namespace() || isFault {
		envelope, err := whole(octets)
		if err != nil && !isFault { // a fault may be of an application
			return a, err
		}
		if err == nil {
			if b := header.Parse(envelope); b != nil {
				a.b = b
			}
		}
	}
	return a, nil
}

// serve serves a message. An error is what the sender is told instead; nothing was done then.
func (e *SequenceDestination) serve(w http.ResponseWriter, a *admittedRequest) error {
	inSequence := a.b.Number > 0 || a.b.Rollover
	if (inSequence || a.b.Control != "") && e.cfg.Guaranteed(a.ctx) {
		return &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Client,
			Reason: "a message over a stream that guarantees its delivery is in no further sequence"}}
	}
	if inSequence || a.b.Control != "" || len(a.b.AckRequested) > 0 {
		if err := e.routes(a); err != nil && a.b.Control != createSequence {
			return err
		} else if err != nil {
			return refusal(a.in.Version, a.version(), createRefused, whyRefused)
		}
	}
	if err := e.acknowledgements(a); err != nil {
		return err
	}
	if a.connection != nil {
		return e.connect(w, a)
	}
	switch a.b.Control {
	case createSequence:
		return e.create(w, a)
	case closeSequence, terminateSequence:
		return e.end(w, a)
	}
	switch {
	case inSequence:
		return e.deliver(w, a)
	case len(a.b.AckRequested) > 0 && a.in.Body.Local == "":
		return e.acknowledge(w, a)
	case a.in.Body.Local == "" && (a.b.Version != "" || isAboutSequences(a.at.Action)),
		a.at.Action == V10.action(lastMessage), a.at.Action == V10.action(terminateSequence):
		w.WriteHeader(http.StatusAccepted) // it says no more than its acknowledgements
		return nil
	case a.b.Fault != "": // which is not answered by another one
		e.cfg.Log.Warn("fault of a client", "fault", a.b.Fault)
		w.WriteHeader(http.StatusAccepted)
		return nil
	case a.b.Version != "" && len(a.b.Broken) > 0 && a.in.Body.Local == createSequence:
		return refusal(a.in.Version, a.version(), createRefused, a.b.Broken[0])
	case a.b.Version != "" && len(a.b.Broken) > 0:
		return &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Client, Reason: a.b.Broken[0]}}
	case e.cfg.Required:
		return refusal(a.in.Version, V11, rmRequired, "messages are taken in sequences of WS-ReliableMessaging only")
	}
	e.plain(w, a)
	return nil
}

// isAboutSequences reports whether an action is one of messages without a body. CXF sends such an
// acknowledgement without a block, if another message took that along.
func isAboutSequences(action string) bool {
	for _, v := range []Protocol{V10, V11} {
		if action == v.action(acknowledgementOnly) || action == v.action(ackRequested) {
			return true
		}
	}
	return false
}

// plain serves a message that is in no sequence.
func (e *SequenceDestination) plain(w http.ResponseWriter, a *admittedRequest) {
	var reply headers.KeptReply
	e.next.ServeHTTP(&reply, headers.WithBody(a.r.WithContext(a.ctx), a.in.Message))
	if reply.IsEnvelope() {
		if out, err := e.chain.Out(a.ctx, reply.Body.Bytes()); err == nil {
			reply.Body.Reset()
			reply.Body.Write(out)
		}
	}
	reply.WriteTo(w)
}

// lookup finds the sequence that a message is about, for its client. Errors: a refusal, Unstored.
func (e *SequenceDestination) lookup(a *admittedRequest, id string) (*servedPair, error) {
	e.mu.Lock()
	s := e.byID[id]
	known := s != nil && s.record.Version == a.version()
	if known {
		s.used = true
	}
	e.mu.Unlock()
	if !known {
		return nil, refusal(a.in.Version, a.version(), unknownSequence, "the sequence is not known here",
			identifier(a.version(), id))
	}
	return s, s.begin(context.WithoutCancel(a.ctx))
}

// acknowledgements takes in what a message acknowledges of replies. One beside a message of an
// application that is about no sequence of ours is passed over.
func (e *SequenceDestination) acknowledgements(a *admittedRequest) error {
	alone := a.in.Body.Local == "" && a.b.Number == 0
	for _, block := range a.b.Invalid {
		if alone || e.find(e.byOffer, identifierOf(block), a.version()) != nil {
			return invalidAcknowledgement(a.in.Version, a.version(), brokenRule(a.b), block)
		}
	}
	for i := range a.b.Acknowledgements {
		ack := &a.b.Acknowledgements[i]
		s := e.find(e.byOffer, ack.Sequence, a.version())
		switch {
		case s != nil:
			if err := s.acknowledged(a, ack); err != nil {
				return err
			}
		case alone:
			return refusal(a.in.Version, a.version(), unknownSequence, "the sequence is not known here",
				identifier(a.version(), ack.Sequence))
		}
	}
	return nil
}

// acknowledge answers who only asks for acknowledgements (1.1, section 3.8).
func (e *SequenceDestination) acknowledge(w http.ResponseWriter, a *admittedRequest) error {
	answer := &header.Blocks{Version: a.b.Version}
	for _, id := range a.b.AckRequested {
		s, err := e.lookup(a, id)
		if err != nil {
			return err
		}
		ack, err := s.acknowledgement(a)
		if err != nil {
			return err
		}
		answer.Acknowledgements = append(answer.Acknowledgements, ack...)
		defer s.sendDue()
	}
	if len(answer.Acknowledgements) == 0 { // they go elsewhere, or there is no word for nothing
		accepted(w)
		return nil
	}
	return e.answer(w, a, "", http.StatusOK, acknowledgementOnly, answer)
}

// end closes or terminates a sequence (1.1, sections 3.5 and 3.6).
func (e *SequenceDestination) end(w http.ResponseWriter, a *admittedRequest) error {
	s, err := e.lookup(a, a.b.Sequence)
	if err != nil {
		return err
	}
	ack, err := s.end(a)
	if err != nil {
		return err
	}
	b := &header.Blocks{Version: a.b.Version, Acknowledgements: ack}
	if a.version() == V10 { // it has no response (1.0, section 3.5)
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	b.Control, b.Sequence = a.b.Control+"Response", a.b.Sequence
	return e.answer(w, a, a.replies, http.StatusOK, b.Control, b)
}

// deliver serves a message in a sequence.
func (e *SequenceDestination) deliver(w http.ResponseWriter, a *admittedRequest) error {
	s, err := e.lookup(a, a.b.Sequence)
	if err != nil {
		return err
	}
	defer s.sendDue()
	out, err := s.deliver(a)
	if err != nil {
		return err
	}
	for _, id := range a.b.AckRequested { // of other sequences; one that is not known is not why this message fails
		if other := e.find(e.byID, id, a.version()); other != nil && other != s {
			if ack, err := other.acknowledgement(a); err == nil {
				out.b.Acknowledgements = append(out.b.Acknowledgements, ack...)
			}
			defer other.sendDue()
		}
	}
	if out.reply == nil {
		if len(out.b.Acknowledgements) == 0 {
			accepted(w)
			return nil
		}
		return e.answer(w, a, "", http.StatusAccepted, acknowledgementOnly, out.b)
	}
	if out.reply.long != nil {
		if err := a.body.hold(); err != nil {
			return err
		}
	}
	envelope, err := out.reply.whole(a.ctx)
	if err != nil {
		return err
	}
	octets, err := with(envelope, s.record.Addressing, out.b)
	if err != nil {
		return err
	}
	headers.Write(w, out.reply.status, out.reply.contentType, octets)
	return nil
}

var _ http.Handler = (*SequenceDestination)(nil)

package soaprm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/accept"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// create begins a sequence (1.1, section 3.4).
func (e *SequenceDestination) create(w http.ResponseWriter, a *admittedRequest) error {
	refused := func(format string, args ...any) error {
		return refusal(a.in.Version, a.version(), createRefused, fmt.Sprintf(format, args...))
	}
	terms := a.b.Terms
	acksTo, allowed := e.route(a, terms.AcksTo)
	switch {
	case len(e.cfg.Versions) > 0 && !slices.Contains(e.cfg.Versions, a.version()):
		return refused("version %s is not spoken here", a.version())
	case !allowed:
		return refused("AcksTo: %s", whyRefused)
	case a.version() == V10 && (isPolled(acksTo) || isPolled(a.replies)):
		return refused("1.0 has no polling")
	}
	life := e.cfg.Expires
	if terms.Expires != "" {
		asked, ok := parseDuration(terms.Expires)
		if !ok {
			return refused("Expires %.40q is no duration", terms.Expires)
		}
		if asked > 0 {
			life = min(life, asked)
		}
	}
	s, err := e.created(a, acksTo, life)
	if err != nil {
		return err
	}
	granted := &header.Terms{Expires: formatDuration(life)}
	if s.record.Version == V11 {
		granted.Incomplete = "NoDiscard"
	}
	if s.record.Offered != "" {
		granted.AcksTo = a.at.To
		if granted.AcksTo == "" {
			granted.AcksTo = addressing.Anonymous(a.at.Space)
		}
	}
	err = e.answer(w, a, a.replies, http.StatusOK, createSequenceResponse, &header.Blocks{
		Version: a.b.Version, Control: createSequenceResponse, Sequence: s.record.Identifier, Terms: granted,
	})
	if err != nil || a.replies == "" && isLost(w) {
		e.drop(a.ctx, s)
	}
	return err
}

// created makes a sequence.
func (e *SequenceDestination) created(a *admittedRequest, acksTo string, life time.Duration) (*servedPair, error) {
	id := addressing.NewID()
	s := &servedPair{endpoint: e, uri: servedPrefix + id, places: map[string]bool{}, record: pairRecord{
		Form: recordForm, Version: a.version(), Addressing: a.at.Space, SOAP: a.in.Version,
		Identifier: id, State: stateOf(id), CreatedBy: a.at.MessageID, Peer: accept.Peer(a.r.RemoteAddr),
		Expires: e.cfg.Clock.Now().Add(life), AcksTo: acksTo, Decoupled: acksTo != "",
	}}
	s.forget.Store(s.record.Expires.Add(tombstone).UnixNano())
	if o := a.b.Terms.Offer; o != nil {
		s.record.Offered = o.Sequence
	}
	s.mu.Lock() // who would discard it waits until it is stored
	gone, why := e.reserve(s)
	var err error
	if why == "" {
		e.serves(s, acksTo)
		err = s.record.put(context.WithoutCancel(a.ctx), e.cfg.Store, s.uri, life+tombstone)
	}
	s.mu.Unlock()
	e.discard(a.ctx, gone...)
	switch {
	case why != "":
		return nil, refusal(a.in.Version, a.version(), createRefused, why)
	case err != nil:
		e.drop(a.ctx, s)
		return nil, err
	}
	return s, nil
}

// isLost reports whether an answer could not be written to its connection.
func isLost(w http.ResponseWriter) bool {
	err := http.NewResponseController(w).Flush()
	return err != nil && !errors.Is(err, http.ErrNotSupported)
}

package soaprm

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

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
	return e.answer(w, a, a.replies, http.StatusOK, createSequenceResponse, &header.Blocks{
		Version: a.b.Version, Control: createSequenceResponse, Sequence: s.record.Identifier, Terms: granted,
	})
}

// created makes a sequence, or finds the one that the same message created before.
func (e *SequenceDestination) created(a *admittedRequest, acksTo string, life time.Duration) (*servedPair, error) {
	if s := e.again(a.at.MessageID); s != nil {
		return s, nil
	}
	many := e.sweep() >= e.cfg.MaxSequences
	e.mu.Lock()
	taken := a.b.Terms.Offer != nil && e.byOffer[a.b.Terms.Offer.Sequence] != nil
	e.mu.Unlock()
	switch {
	case many:
		return nil, refusal(a.in.Version, a.version(), createRefused, "there are too many sequences")
	case taken:
		return nil, refusal(a.in.Version, a.version(), createRefused, "the sequence offered is in use already")
	}
	id := addressing.NewID()
	s := &servedPair{endpoint: e, uri: servedPrefix + id, record: pairRecord{
		Form: recordForm, Version: a.version(), Addressing: a.at.Space, SOAP: a.in.Version,
		Identifier: id, State: stateOf(id), CreatedBy: a.at.MessageID, Expires: e.cfg.Clock.Now().Add(life),
		AcksTo: acksTo, Decoupled: acksTo != "",
	}}
	if o := a.b.Terms.Offer; o != nil {
		s.record.Offered = o.Sequence
	}
	if err := s.record.put(context.WithoutCancel(a.ctx), e.cfg.Store, s.uri, life+tombstone); err != nil {
		return nil, err
	}
	e.add(s)
	return s, nil
}

// again finds the sequence that a message created which comes again.
func (e *SequenceDestination) again(by string) *servedPair {
	if by == "" {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.byID {
		if s.record.CreatedBy == by {
			return s
		}
	}
	return nil
}

// sweep forgets what ended long ago, or earlier if that is too much; the store forgets it by
// itself. It returns how many sequences have not ended.
func (e *SequenceDestination) sweep() (live int) {
	now := e.cfg.Clock.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	much := len(e.byID) > 4*e.cfg.MaxSequences
	for id, s := range e.byID {
		switch ended := s.ended.Load() || s.isExpired(); {
		case s.forget.Load() < now.UnixNano(), ended && much:
			delete(e.byID, id)
			delete(e.byOffer, s.record.Offered)
		case !ended:
			live++
		}
	}
	return live
}

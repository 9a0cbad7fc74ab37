package soaprm

import (
	"context"
	"errors"
	"net/http"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// NewDestination makes an endpoint in front of services, and goes on with the sequences in the
// store. The caller calls Close in the end. Errors: BadConfig, Unstored.
func NewDestination(ctx context.Context, next http.Handler, cfg DestinationConfig) (*SequenceDestination, error) {
	if next == nil {
		return nil, &Error{Code: BadConfig, Err: errors.New("an endpoint needs services")}
	}
	if err := cfg.withDefaults(); err != nil {
		return nil, err
	}
	e := &SequenceDestination{cfg: cfg, next: next, chain: chainOf(cfg.Handlers),
		outbox: newOutbox(cfg.Client, cfg.Log), slots: make(longSlots, maxLong),
		byID: map[string]*servedPair{}, byOffer: map[string]*servedPair{}}
	if err := e.load(ctx); err != nil {
		e.outbox.close()
		return nil, err
	}
	return e, nil
}

// Close ends what is sent to other addresses. What was not acknowledged stays in the store. No
// request may come after that.
func (e *SequenceDestination) Close() error {
	e.outbox.close()
	return nil
}

// load finds the sequences in the store.
func (e *SequenceDestination) load(ctx context.Context) error {
	for info, err := range e.cfg.Store.List(ctx, servedPrefix) {
		if err != nil {
			return unstored(err)
		}
		entry, err := e.cfg.Store.Get(ctx, info.URI)
		if errors.Is(err, ctxstore.NotFound) {
			continue // it expired just now
		}
		if err != nil {
			return unstored(err)
		}
		r, err := readRecord(entry.Value)
		if err != nil {
			return err
		}
		s := &servedPair{endpoint: e, record: *r, uri: info.URI}
		s.used, err = ctxstore.Has(ctx, e.cfg.Store, r.State)
		if err != nil {
			return unstored(err)
		}
		e.add(s)
		if err := s.resume(ctx); err != nil {
			return err
		}
	}
	return nil
}

// add takes in a pair of the store.
func (e *SequenceDestination) add(s *servedPair) {
	s.forget.Store(s.record.Expires.Add(tombstone).UnixNano())
	s.ended.Store(s.record.Terminated)
	s.used = s.used || s.record.Closed
	s.begun.Store(s.used)
	s.places = map[string]bool{}
	e.serves(s, s.record.AcksTo)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.byID[s.record.Identifier] = s
	if s.record.Offered != "" && (s.used || e.byOffer[s.record.Offered] == nil) {
		e.byOffer[s.record.Offered] = s
	}
}

package soaprm

import (
	"context"
	"net/http"
	"sync"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// SequenceDestination serves messages in sequences, and passes all others on as they are but for
// the header blocks that its chain processes. It is safe for concurrent use.
type SequenceDestination struct {
	cfg   DestinationConfig
	next  http.Handler
	chain headers.Chain

	outbox *outbox
	slots  longSlots

	mu      sync.Mutex
	byID    map[string]*servedPair
	byOffer map[string]*servedPair
}

func (e *SequenceDestination) find(in map[string]*servedPair, id string, v Protocol) *servedPair {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := in[id]; s != nil && s.record.Version == v {
		return s
	}
	return nil
}

// admittedRequest is a request that the chain has let in.
type admittedRequest struct {
	r    *http.Request
	body *longBody       // of r, as it was read
	ctx  context.Context // with what the chain found
	in   headers.AdmittedMessage
	at   *addressing.Properties // never nil
	b    *header.Blocks         // never nil

	replies, faults string        // where they go; empty: on the connection, or nowhere
	connection      *soap.Element // the body, if it asks for what waits
}

func (a *admittedRequest) version() Protocol { return Protocol(a.b.Version) }

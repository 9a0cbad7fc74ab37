package soaprm

import (
	"net/http"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// Subcodes of faults of WS-MakeConnection (section 4).
const (
	missingSelection     = "MissingSelection"
	unsupportedSelection = "UnsupportedSelection"
)

// connect answers who asks for what waits for an address, with one message or with none
// (WS-MakeConnection 1.1, section 3.2).
func (e *SequenceDestination) connect(w http.ResponseWriter, a *admittedRequest) error {
	address, err := selected(a.connection)
	if err != nil {
		return err
	}
	l, err := e.waitingFor(a, address)
	if err != nil {
		return err
	}
	if l == nil {
		w.WriteHeader(http.StatusAccepted)
		return nil
	}
	parts, err := soap.Split(l.octets, soap.Limits{})
	if err != nil {
		return err
	}
	octets, err := parts.Rewrite(nil, []soap.Element{pending(e.isWaiting(address))})
	if err != nil {
		return err
	}
	headers.Write(w, http.StatusOK, l.contentType, octets)
	return nil
}

// selected is the address that messages are asked for. Errors: a refusal, for what selects by
// anything else.
func selected(body *soap.Element) (address string, err error) {
	refused := func(subcode, reason string, detail ...soap.Element) error {
		return &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Server, Subcode: subcode, SubcodeSpace: xmlns.WSMC,
			Reason: reason, Detail: detail}}
	}
	for i := range body.Children {
		c := &body.Children[i]
		if c.Name != connectionName("Address") || address != "" {
			name := soap.Element{Name: connectionName("UnsupportedElement"), Text: "u:" + c.Name.Local,
				Attrs: []soap.Attr{{Name: "xmlns:u", Value: c.Name.Space}}}
			return "", refused(unsupportedSelection, "messages are selected by one Address", name)
		}
		if address = c.Text; address == "" {
			break
		}
	}
	if address == "" {
		return "", refused(missingSelection, "no Address is asked for")
	}
	return address, nil
}

// waitingFor hands out one message for an address that polls; nil: none waits.
func (e *SequenceDestination) waitingFor(a *admittedRequest, address string) (*letter, error) {
	if !isPolled(address) {
		return nil, nil
	}
	for _, s := range e.pairsAt(address) {
		s.mu.Lock()
		out, _ := s.nextLocked(address)
		s.mu.Unlock()
		if out == nil {
			continue
		}
		if out.reply != nil && out.reply.long != nil {
			if err := a.body.hold(); err != nil {
				return nil, err
			}
		}
		if err := s.write(a.ctx, out); err != nil {
			return nil, err
		}
		if out.number > 0 {
			s.mu.Lock()
			if s.engine != nil && s.record.Offered == "" { // nobody acknowledges it
				s.repliedLocked([][2]uint64{{out.number, out.number}})
			}
			s.mu.Unlock()
		}
		return &out.letter, nil
	}
	return nil, nil
}

// isWaiting reports whether there is more for an address now.
func (e *SequenceDestination) isWaiting(address string) bool {
	for _, s := range e.pairsAt(address) {
		s.mu.Lock()
		due, _ := s.findLocked(address)
		s.mu.Unlock()
		if due != nil {
			return true
		}
	}
	return false
}

// pairsAt are the pairs that may have something for an address.
func (e *SequenceDestination) pairsAt(address string) (list []*servedPair) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.byID {
		if s.places[address] {
			list = append(list, s)
		}
	}
	return list
}

// serves notes that a pair may have something for addresses that poll.
func (e *SequenceDestination) serves(s *servedPair, places ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, place := range places {
		if isPolled(place) && len(s.places) < maxPlaces {
			s.places[place] = true
		}
	}
}

// maxPlaces is how many addresses of one pair may poll.
const maxPlaces = 16

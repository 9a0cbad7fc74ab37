// Package header is the SOAP form of WS-ReliableMessaging: header blocks and bodies of 1.0 (February 2005) and of 1.1 and 1.2 (OASIS 200702), read from envelopes. It keeps no sequences; that is package wsrm.
package header

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/wsrm"
)

// Version is that of the protocol, which its namespace tells.
type Version uint8

const (
	// V10 is WS-ReliableMessaging 1.0.
	V10 Version = iota + 1
	// V11 is 1.1 and 1.2, which do not differ on the wire.
	V11
)

// Namespace is that of all elements but endpoint references.
func (v Version) Namespace() string {
	if v == V10 {
		return xmlns.WSRM10
	}
	return xmlns.WSRM
}

func (v Version) String() string {
	if v == V10 {
		return "1.0"
	}
	return "1.1"
}

// Blocks is what one SOAP message says about sequences.
type Blocks struct {
	Version Version
	// Sequence is the place of the message in one; nil: in none.
	Sequence *Sequence
	// AckRequested and Acknowledgements may be about several sequences.
	AckRequested     []AckRequested
	Acknowledgements []Acknowledgement
	// Fault is that of the header block SequenceFault, which goes with a fault of SOAP 1.1, or the fault of SOAP 1.2 itself.
	Fault *Fault
	// Control is the body, if it is about a sequence itself.
	Control *Control
	// Broken are rules that its elements break, at most eight; what these say is left out.
	Broken []*Error
}

// Sequence is the header block of that name (1.1, section 3.7). Last is the marker LastMessage of 1.0.
type Sequence struct {
	Identifier string
	Number     uint64
	Last       bool
}

// AckRequested is the header block of that name (1.1, section 3.8). MaxUsed is of 1.0; 0: not said.
type AckRequested struct {
	Identifier string
	MaxUsed    uint64
}

// Acknowledgement is the header block SequenceAcknowledgement (1.1, section 3.9). Ranges ascend.
// None and Final are of 1.1. Either there are Nacks, or Ranges, or None.
type Acknowledgement struct {
	Identifier  string
	Ranges      []wsrm.Range
	Nacks       []uint64
	None, Final bool
}

// Fault is what went wrong (1.1, section 4): the local name of its code, and the sequence it is about, if it says so.
type Fault struct{ Code, Identifier string }

// Kind tells bodies apart.
type Kind string

// The bodies that create, close and terminate sequences (1.1, sections 3.4 to 3.6). Closing and responses to terminating are of 1.1.
const (
	CreateSequence            Kind = "CreateSequence"
	CreateSequenceResponse    Kind = "CreateSequenceResponse"
	CloseSequence             Kind = "CloseSequence"
	CloseSequenceResponse     Kind = "CloseSequenceResponse"
	TerminateSequence         Kind = "TerminateSequence"
	TerminateSequenceResponse Kind = "TerminateSequenceResponse"
)

// Control is a body about a sequence; fields that its kind does not have are empty.
type Control struct {
	Kind       Kind
	Identifier string
	// AcksTo is the address that acknowledgements go to: of CreateSequence, or of the Accept of its response.
	AcksTo string
	// Expires is a duration as it stands; empty: never.
	Expires string
	// Offer is a sequence for the way back.
	Offer *Offer
	// Incomplete is the IncompleteSequenceBehavior of 1.1.
	Incomplete string
	// LastNumber is the LastMsgNumber of 1.1; 0: not said.
	LastNumber uint64
}

// Offer is the element of that name in CreateSequence. Endpoint and Incomplete are of 1.1.
type Offer struct{ Identifier, Endpoint, Expires, Incomplete string }

// maxNumber is the greatest message number.
const maxNumber = 1<<63 - 1

// Error says which element breaks a rule.
type Error struct {
	Element string
	Err     error
}

func (e *Error) Error() string { return fmt.Sprintf("wsrm: %s: %v", e.Element, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// versionOf tells which version's elements an envelope has, or which version's fault it is; 0: none.
func versionOf(e *soap.Envelope, fault *soap.Fault) Version {
	spaces := []string{fault.SubcodeSpace}
	for _, list := range [][]soap.Element{e.Header, e.Body} {
		for i := range list {
			spaces = append(spaces, list[i].Name.Space)
		}
	}
	for _, space := range spaces {
		switch space {
		case xmlns.WSRM10:
			return V10
		case xmlns.WSRM:
			return V11
		}
	}
	return 0
}

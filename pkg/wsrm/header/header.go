// Package header reads and writes the SOAP form of WS-ReliableMessaging: header blocks and bodies
// of 1.0 (February 2005) and of 1.1 and 1.2 (OASIS 200702). It keeps no sequences; those are in
// packages wsrm and soaprm.
package header

import (
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// Blocks is what one SOAP message says about sequences.
type Blocks struct {
	// Version is 1.0, or 1.1, which does not differ from 1.2 on the wire.
	Version string
	// Sequence is the one that the message is of, or that it creates, closes or terminates.
	Sequence string
	// Number is that of the message in the sequence (1.1, section 3.7); 0: it has none. Last is the
	// marker LastMessage of 1.0.
	Number uint64
	Last   bool
	// Rollover: the number of the message is above the greatest one, 2^63-1; Number is 0 then (1.1,
	// section 4.5).
	Rollover bool
	// Control is the name of the body, if it is one that creates, closes or terminates a sequence
	// (1.1, sections 3.4 to 3.6).
	Control string
	// Terms are those of a sequence that is created: asked for, or granted.
	Terms *Terms
	// LastNumber is the LastMsgNumber of CloseSequence and TerminateSequence (1.1); 0: none was
	// sent, or it is not said.
	LastNumber uint64
	// AckRequested are the sequences that acknowledgements are asked for (1.1, section 3.8).
	AckRequested     []string
	Acknowledgements []Acknowledgement
	// Fault is the local name of the code of a fault (1.1, section 4): of the header block
	// SequenceFault, which goes with a fault of SOAP 1.1, or of the fault of SOAP 1.2 itself.
	Fault string
	// Invalid are blocks SequenceAcknowledgement whose ranges or nacks break a rule, as they came,
	// at most eight; they are not among Acknowledgements (1.1, section 4.4).
	Invalid []soap.Element
	// Broken are rules that its elements break, for people, at most eight; what these say is left
	// out.
	Broken []string
}

// Acknowledgement is the header block SequenceAcknowledgement (1.1, section 3.9). Ranges, of first
// and last numbers, ascend. None and Final are of 1.1. Either there are Nacks, or Ranges, or None.
type Acknowledgement struct {
	Sequence    string
	Ranges      [][2]uint64
	Nacks       []uint64
	None, Final bool
}

// Terms are what CreateSequence asks for, or what CreateSequenceResponse grants (1.1, section 3.4).
type Terms struct {
	// AcksTo is the address for acknowledgements. In a response it is that of Accept; empty: an
	// offer was not accepted.
	AcksTo string
	// Expires is how long the sequence may last, as an xs:duration; empty: it is not said.
	Expires string
	// Incomplete is the IncompleteSequenceBehavior of 1.1; empty: it is not said.
	Incomplete string
	// Offer is the sequence that the peer may use for its own messages (CreateSequence); nil: none.
	Offer *OfferedSequence
}

// OfferedSequence is a sequence for the other direction (1.1, section 3.4).
type OfferedSequence struct {
	// Sequence is its identifier.
	Sequence string
	// Endpoint is where messages about it go (1.1).
	Endpoint string
	// Expires and Incomplete are as in [Terms].
	Expires, Incomplete string
}

// The versions, and the namespaces of all their elements but endpoint references.
const v10, v11 = "1.0", "1.1"

// Namespace returns the namespace of a version, "1.0" or "1.1"; empty for any other.
func Namespace(version string) string { return namespaces[version] }

var namespaces = map[string]string{v10: xmlns.WSRM10, v11: xmlns.WSRM}

// versionOf is the version whose elements an envelope has, or whose fault it is; empty: none.
func versionOf(e *soap.Envelope, fault *soap.Fault) string {
	spaces := []string{fault.SubcodeSpace}
	for _, list := range [][]soap.Element{e.Header, e.Body} {
		for i := range list {
			spaces = append(spaces, list[i].Name.Space)
		}
	}
	for _, space := range spaces {
		for version, namespace := range namespaces {
			if space == namespace {
				return version
			}
		}
	}
	return ""
}

package negotiate

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
)

// FragmentsLane is the lane of messages, without a head, that say which header blocks messages will
// refer to from now on, in a session with a common store (docs/negotiation.md, section 3.3).
// Nothing else is on it.
const FragmentsLane = 1<<32 - 1

// MaxFragments is how many of them one message names.
const MaxFragments = maxChoices

var (
	// FragmentsName is the Body child of that message, and FragmentsKeptName that of the reply
	// which agrees.
	FragmentsName     = soap.Name{Space: xmlns.HHFRNegotiation, Local: "Fragments"}
	FragmentsKeptName = soap.Name{Space: xmlns.HHFRNegotiation, Local: "FragmentsKept"}
)

// FragmentsMessage writes the message about fragments of the common store. Errors: Malformed.
func FragmentsMessage(references []string) ([]byte, error) {
	w := documentWriter{ns: FragmentsName.Space}
	w.references(references)
	return w.message(soap.V11, FragmentsName.Local)
}

// ParseFragments reads the references of that message. Errors: Malformed.
func ParseFragments(data []byte) (references []string, err error) {
	r, _, err := open(data, FragmentsName)
	if err != nil {
		return nil, err
	}
	if references = r.texts("HeaderReference", maxChoices); r.err == nil && len(references) == 0 {
		r.fail("no HeaderReference")
	}
	if r.err != nil {
		return nil, AsMalformed(fmt.Errorf("%s: %w", FragmentsName.Local, r.err))
	}
	return references, nil
}

// FragmentsKept writes the reply that agrees. Errors: Malformed.
func FragmentsKept() ([]byte, error) {
	return (&documentWriter{ns: FragmentsKeptName.Space}).message(soap.V11, FragmentsKeptName.Local)
}

// ParseFragmentsKept returns why a reply does not agree. Errors: Malformed, which may be a
// [FaultAnswer].
func ParseFragmentsKept(data []byte) error {
	_, _, err := open(data, FragmentsKeptName)
	return err
}

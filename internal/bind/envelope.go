package bind

import (
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/internal/xmltext/pull"
	"github.com/hhfr/hhfr/pkg/soap"
)

// maxMandatory is how many header blocks are named that are not understood.
const maxMandatory = 16

// EnvelopeError is a document that is no message of SOAP.
type EnvelopeError struct {
	// Code is what the fault is that answers it.
	Code soap.FaultCode
	What string
}

func (e *EnvelopeError) Error() string { return e.What }

// OpenEnvelope is an envelope of which the parser stands in the child of Body.
type OpenEnvelope struct {
	Version soap.Version
	// Mandatory are the header blocks that the ultimate receiver must understand, the first of
	// them.
	Mandatory []soap.Name
	// Fault: the child is a fault.
	Fault bool
}

// Open reads an envelope up to the start tag of the child of its Body. Errors are *[EnvelopeError],
// and those of the parser.
func Open(x *pull.Parser) (o OpenEnvelope, err error) {
	if _, err = x.Next(); err != nil { // which is the start tag of the root
		return o, err
	}
	space, local := x.Name()
	switch {
	case string(local) != "Envelope":
		return o, &EnvelopeError{soap.Client, fmt.Sprintf("%.80s is no SOAP envelope", local)}
	case string(space) == xmlns.SOAP11:
		o.Version = soap.V11
	case string(space) == xmlns.SOAP12:
		o.Version = soap.V12
	default:
		return o, &EnvelopeError{soap.VersionMismatch, "neither SOAP 1.1 nor SOAP 1.2"}
	}
	for {
		found, err := child(x)
		if err != nil {
			return o, err
		}
		space, local = x.Name()
		own := found && string(space) == o.Version.Namespace()
		switch {
		case own && string(local) == "Header":
			if err := o.header(x); err != nil {
				return o, err
			}
		case own && string(local) == "Body":
			return o, o.body(x)
		case found:
			return o, &EnvelopeError{soap.Client, fmt.Sprintf("%.80s is neither Header nor Body", local)}
		default:
			return o, &EnvelopeError{soap.Client, "the envelope has no Body"}
		}
	}
}

func (o *OpenEnvelope) body(x *pull.Parser) error {
	found, err := child(x)
	if err == nil && !found {
		return &EnvelopeError{soap.Client, "the Body is empty"}
	}
	space, local := x.Name()
	o.Fault = string(local) == "Fault" && string(space) == o.Version.Namespace()
	return err
}

// header passes over header blocks.
func (o *OpenEnvelope) header(x *pull.Parser) error {
	for {
		found, err := child(x)
		if err != nil || !found {
			return err
		}
		if o.mandatory(x.Attrs()) && len(o.Mandatory) < maxMandatory {
			space, local := x.Name()
			o.Mandatory = append(o.Mandatory, soap.Name{Space: string(space), Local: string(local)})
		}
		if err := x.Skip(); err != nil {
			return err
		}
	}
}

// mandatory tells header blocks that must be understood here (SOAP 1.1, section 4.2.3; SOAP 1.2
// part 1, section 5.2.3).
func (o *OpenEnvelope) mandatory(attrs []pull.Attr) bool {
	must, ours := false, true
	for _, a := range attrs {
		if string(a.Space) != o.Version.Namespace() {
			continue
		}
		switch value := string(a.Value); string(a.Local) {
		case "mustUnderstand":
			must = value == "1" || value == "true"
		case "actor", "role":
			ours = value == "" || strings.HasSuffix(value, "/next") || strings.HasSuffix(value, "/ultimateReceiver")
		}
	}
	return must && ours
}

// Close reads an envelope to its end, behind the child of its Body, which is the only one.
func Close(x *pull.Parser) error {
	for range 2 {
		found, err := child(x)
		if err == nil && found {
			_, local := x.Name()
			err = &EnvelopeError{soap.Client, fmt.Sprintf("there is %.80s where nothing more is expected", local)}
		}
		if err != nil {
			return err
		}
	}
	_, err := x.Next()
	return err // io.EOF, if all is well
}

// child goes to the next child of the element that the parser stands in; false at its end.
func child(x *pull.Parser) (bool, error) {
	for {
		step, err := x.Next()
		switch {
		case err != nil:
			return false, err
		case step == pull.Chars:
			if len(trim(x.Text())) > 0 {
				return false, &EnvelopeError{soap.Client, fmt.Sprintf("text %.40q between elements", x.Text())}
			}
		default:
			return step == pull.StartTag, nil
		}
	}
}

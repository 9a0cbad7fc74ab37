// Package soap implements SOAP envelopes of both versions as far as carriers, the negotiation and
// small endpoints need them. It recognizes an envelope by its first bytes without parsing it,
// builds and parses small ones, writes faults, and implements the HTTP binding.
//
// Carriers examine messages with [Recognize] only, which never fails. [Parse] is for messages that
// an endpoint processes; it refuses what a hostile peer could use: document type declarations,
// depth, size. [Envelope.Mandatory] decides about header blocks that must be understood.
package soap

import (
	"fmt"

	"github.com/hhfr/hhfr/internal/xmlns"
)

// Version is a SOAP version. The zero value means: no known envelope.
type Version uint8

const (
	// None: no SOAP envelope.
	None Version = iota
	// V11 is SOAP 1.1.
	V11
	// V12 is SOAP 1.2.
	V12
)

var versions = [...]struct{ name, namespace, mediaType string }{
	None: {"none", "", ""},
	V11:  {"1.1", xmlns.SOAP11, "text/xml"},
	V12:  {"1.2", xmlns.SOAP12, "application/soap+xml"},
}

// String returns "1.1", "1.2" or "none".
func (v Version) String() string {
	if int(v) < len(versions) {
		return versions[v].name
	}
	return fmt.Sprintf("version(%d)", uint8(v))
}

// Namespace returns the namespace of the version's envelope; empty for None.
func (v Version) Namespace() string {
	if int(v) < len(versions) {
		return versions[v].namespace
	}
	return ""
}

// ParseVersion reads "1.1" or "1.2"; anything else gives None and an [Error] with the code
// BadVersion.
func ParseVersion(s string) (Version, error) {
	for v := V11; int(v) < len(versions); v++ {
		if s == versions[v].name {
			return v, nil
		}
	}
	return None, &Error{Code: BadVersion, At: -1, Err: fmt.Errorf("%q is not 1.1 or 1.2", s)}
}

func versionOf(namespace string) Version {
	for v := V11; int(v) < len(versions); v++ {
		if namespace == versions[v].namespace {
			return v
		}
	}
	return None
}

// Name is an XML name: a namespace and a local part, never a prefix.
type Name struct{ Space, Local string }

// String returns `{namespace}local`, or the local part alone when there is no namespace.
func (n Name) String() string {
	if n.Space == "" {
		return n.Local
	}
	return "{" + n.Space + "}" + n.Local
}

// Package negotiate defines the messages by which two peers agree on a session
// (docs/negotiation.md): offers and answers in SOAP, the context that both keep, and the HTTP field
// HHFR that asks for a stream without an offer. It reads, checks, writes and compares; it opens no
// connection.
//
// [DefaultRequestHead] and [DefaultReplyHead] define the meaning of a message without a head.
package negotiate

import (
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Scheme is the URI-S of this version of the HHFR rules.
const Scheme = "urn:hhfr:scheme:1"

// The assurance and the security of sessions of this version.
const (
	// AtMostOnce: no message is ever sent twice; a message whose fate is unknown is reported.
	AtMostOnce = AssurancePrefix + "at-most-once"
	// TransportSecurity: the stream is as secure as its transport, and nothing is added.
	TransportSecurity = securityPrefix + "transport"
)

// HTTPTransport is the URI-T of messages that stay plain SOAP, with references to what is in the
// context store of both peers. It has no streams.
const HTTPTransport = TransportPrefix + "http"

const (
	AssurancePrefix      = "urn:hhfr:assurance:"
	securityPrefix       = "urn:hhfr:security:"
	representationPrefix = "urn:hhfr:representation:"
	TransportPrefix      = "urn:hhfr:transport:"
)

// Representations ties the name of a representation to its number in hello (docs/wire-format.md,
// section 3). The first is preferred.
var Representations = []struct {
	Name   string
	Number uint64
}{
	{"binary", 1},
	{"xml", 2},
}

// Transports lists the transports that can be negotiated. The first is preferred. private: the
// transport is as private as HTTPS, so a session negotiated over HTTPS may use it without being
// configured to. httpsOnly: an http URL names nobody whose certificate could be checked. ports:
// addresses have a port, at the host of the URL or another.
var Transports = []struct {
	Name                      string
	Private, HTTPSOnly, ports bool
}{
	{Name: "tls", Private: true, HTTPSOnly: true, ports: true},
	{Name: "tcp", ports: true},
	{Name: "udp", ports: true},
	{Name: "inproc", Private: true},
}

// RepresentationURI returns the URI-R of a representation: "binary", "xml".
func RepresentationURI(name string) string {
	if name == "binary" {
		return representationPrefix + "binary" // of most sessions: they share it
	}
	return representationPrefix + name
}

// TransportURI returns the URI-T of a transport: "tls", "tcp", "udp", "inproc".
func TransportURI(name string) string { return TransportPrefix + name }

// TransportName returns the name of a transport by its URI-T.
func TransportName(uri string) (name string, known bool) {
	name, _ = strings.CutPrefix(uri, TransportPrefix)
	return name, uri == TransportURI(name) && KnownTransport(name)
}

// HasPorts reports whether addresses of a transport have a port, at the host of the URL or another.
func HasPorts(name string) bool {
	for _, t := range Transports {
		if t.Name == name {
			return t.ports
		}
	}
	return false
}

// RepresentationNumber returns the number of a representation in hello, by its URI-R.
func RepresentationNumber(uri string) (number uint64, known bool) {
	name, _ := strings.CutPrefix(uri, representationPrefix)
	for _, r := range Representations {
		if r.Name == name {
			return r.Number, true
		}
	}
	return 0, false
}

// SessionID is the identity of a session, a UUID.
type SessionID [16]byte

// NewSessionID makes a random one (RFC 9562, version 4).
func NewSessionID() SessionID { return SessionID(uuid.New()) }

// String returns the form in messages and documents: urn:uuid: and the UUID in lower case.
func (id SessionID) String() string { return uuid.UUID(id).URN() }

// URI returns the URI of the session's context in a store.
func (id SessionID) URI() string { return ctxstore.SessionURI(id) }

// MarshalText returns the text of String.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *SessionID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseSessionID(string(b))
	return err
}

// ParseSessionID reads the form of [SessionID.String], in either case. Errors: Malformed.
func ParseSessionID(s string) (SessionID, error) {
	const urn = len("urn:uuid:00000000-0000-0000-0000-000000000000")
	id, err := uuid.Parse(s)
	if err != nil || len(s) != urn {
		return SessionID{}, AsMalformed(fmt.Errorf("%.60q is no UUID URN", s))
	}
	return SessionID(id), nil
}

// CheckRepresentations replaces nil by all, and refuses unknown names.
func CheckRepresentations(names *[]string) error {
	if *names == nil {
		for _, r := range Representations {
			*names = append(*names, r.Name)
		}
	}
	if len(*names) == 0 || len(*names) > maxChoices {
		return BadConfigf("%d representations", len(*names))
	}
	for _, n := range *names {
		if _, ok := RepresentationNumber(RepresentationURI(n)); !ok {
			return BadConfigf("unknown representation %q", n)
		}
	}
	return nil
}

// KnownTransport reports whether a name is that of a transport.
func KnownTransport(name string) bool {
	for _, t := range Transports {
		if t.Name == name {
			return true
		}
	}
	return false
}

// The names by which a request asks for a stream, and an answer offers one (docs/negotiation.md,
// section 6).
const (
	// Field is in requests that ask, and in answers to requests whose connection could not be
	// upgraded.
	Field = "HHFR"
	// FragmentsField is in requests of plain SOAP: references that the reply may have in the place
	// of header blocks (section 3.3).
	FragmentsField = "HHFR-Fragments"
	// Protocol is what connections are upgraded to, and the ALPN name of streams in TLS.
	Protocol = "hhfr/1"
)

// OwnTransport returns the transport at the address of a URL.
func OwnTransport(secure bool) string {
	if secure {
		return "tls"
	}
	return "tcp"
}

// Origin returns scheme, host and port of an http or https URL, as [Facts].Origin has them.
func Origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

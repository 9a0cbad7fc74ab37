// Package negotiate lets two endpoints agree, over plain SOAP, on a session: how messages are represented and which transport carries
// them (docs/negotiation.md). A [Dialer] makes offers and gives back a [Session], which speaks over the stream that was agreed on, or plain
// SOAP when anything is missing. A [Responder] answers offers in front of plain SOAP services and accepts the streams.
//
// Messages reach the services the same way by either: an optional HTTP head and a body. What a message without a head means is defined by
// [DefaultRequestHead] and [DefaultReplyHead].
package negotiate

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/pkg/ctxstore"
)

// Scheme is the URI-S of this version of the HHFR rules.
const Scheme = "urn:hhfr:scheme:1"

// What sessions of this version assure, and how they are secured.
const (
	// AtMostOnce: no message is ever sent twice; one whose fate is unknown is reported.
	AtMostOnce = assurancePrefix + "at-most-once"
	// TransportSecurity: the stream is as secure as its transport, and nothing is added.
	TransportSecurity = securityPrefix + "transport"
)

const (
	assurancePrefix      = "urn:hhfr:assurance:"
	securityPrefix       = "urn:hhfr:security:"
	representationPrefix = "urn:hhfr:representation:"
	transportPrefix      = "urn:hhfr:transport:"
)

// representations ties the name of a representation to its number in hello (docs/wire-format.md, section 3). The first is preferred.
var representations = []struct {
	name   string
	number uint64
}{
	{"binary", 1},
	{"xml", 2},
}

// transports lists those that can be negotiated. The first is preferred. private: what travels there is no less private than HTTPS, so a
// session negotiated over HTTPS may use it without being asked. httpsOnly: an http URL names nobody whose certificate could be
// checked. ports: addresses have a port, at the host of the URL or another.
var transports = []struct {
	name                      string
	private, httpsOnly, ports bool
}{
	{name: "tls", private: true, httpsOnly: true, ports: true},
	{name: "tcp", ports: true},
	{name: "udp", ports: true},
	{name: "inproc", private: true},
}

// RepresentationURI is the URI-R of a representation: "binary", "xml".
func RepresentationURI(name string) string { return representationPrefix + name }

// TransportURI is the URI-T of a transport: "tls", "tcp", "udp", "inproc".
func TransportURI(name string) string { return transportPrefix + name }

// hasPorts reports whether addresses of a transport have a port, at the host of the URL or another.
func hasPorts(name string) bool {
	for _, t := range transports {
		if t.name == name {
			return t.ports
		}
	}
	return false
}

func representationNumber(uri string) (number uint64, known bool) {
	name, _ := strings.CutPrefix(uri, representationPrefix)
	for _, r := range representations {
		if r.name == name {
			return r.number, true
		}
	}
	return 0, false
}

// SessionID is the identity of a session, a UUID.
type SessionID [16]byte

// newSessionID makes a random one (RFC 9562, version 4).
func newSessionID() (id SessionID) {
	rand.Read(id[:])
	id[6] = id[6]&0x0F | 0x40
	id[8] = id[8]&0x3F | 0x80
	return id
}

// String is the form of messages and documents: urn:uuid: and the UUID in lower case.
func (id SessionID) String() string {
	h := hex.EncodeToString(id[:])
	return uuidPrefix + strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// URI is the URI of the session's context in a store.
func (id SessionID) URI() string { return ctxstore.SessionURI(id) }

// MarshalText is String.
func (id SessionID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (id *SessionID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseSessionID(string(b))
	return err
}

const uuidPrefix = "urn:uuid:"

// ParseSessionID reads the form of [SessionID.String], in either case.
func ParseSessionID(s string) (id SessionID, err error) {
	u, ok := strings.CutPrefix(strings.ToLower(s), uuidPrefix)
	if ok && len(u) == 36 && u[8] == '-' && u[13] == '-' && u[18] == '-' && u[23] == '-' {
		if _, err := hex.Decode(id[:], []byte(strings.ReplaceAll(u, "-", ""))); err == nil {
			return id, nil
		}
	}
	return SessionID{}, malformed(fmt.Errorf("%.60q is no UUID URN", s))
}

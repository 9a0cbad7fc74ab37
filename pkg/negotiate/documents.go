package negotiate

import (
	"time"

	"github.com/hhfr/hhfr/pkg/soap"
)

// Offer is what an initiator proposes (docs/negotiation.md, section 2). Lists begin with the
// preferred value.
type Offer struct {
	Schemes, Representations, Transports []string // URIs
	// Assurances and Securities are URIs. None means at-most-once, and no security beyond that of
	// the transport.
	Assurances, Securities []string
	// Sequence is the URI of the session's sequence, urn:hhfr:sequence:…; "" without an assurance
	// that needs one.
	Sequence string
	// Request and Reply describe the messages of each direction; nil: not described.
	Request, Reply *Description
	// Headers are header blocks that messages have in common, as XML text, at most 16 of 4 KiB.
	Headers []string
	// Common is the context store that the initiator wants both peers to use; nil: none.
	Common *Common
	// References name further header blocks in that store; at most 16 together with Headers.
	References []string
	// Lifetime is how long the initiator would like the session to last, in whole seconds; 0: the
	// responder chooses.
	Lifetime time.Duration
	// RequestHead and ReplyHead are the fields of messages without a head; nil means those of this
	// version.
	RequestHead, ReplyHead []soap.Field
	// Shapes are fingerprints of shapes that the initiator has, at most [MaxShapes].
	Shapes [][32]byte
	// Ignored names elements that this version does not know, at most 16. It is read, not written.
	Ignored []soap.Name
}

// Answer is what a responder selects from an offer (docs/negotiation.md, section 3).
type Answer struct {
	Scheme, Representation, Transport string // URIs from the offer
	// Assurance and Security are URIs from the offer. Empty means at-most-once, and no security
	// beyond that of the transport.
	Assurance, Security string
	// Sequence is the URI of the session's sequence, and SequenceKnown reports whether the
	// responder has its state; "" under at-most-once without order.
	Sequence      string
	SequenceKnown bool
	// Request confirms the offer's description of requests. Reply is the responder's description of
	// replies, or confirms that of the offer. nil: none.
	Request, Reply *Description
	// HeadersKept is how many of the offer's header blocks, those named by references included, are
	// agreed on: all, or none.
	HeadersKept int
	// ContextStore is the URL of the offer's Common that is agreed on; empty: none.
	ContextStore string
	// Refused are items of the offer that were not agreed to, although the rest was; at most 16.
	Refused []Declined
	// Ignored names the elements of the offer that the responder does not know; at most 16.
	Ignored []soap.Name
	// Unknown names elements of the answer that this version does not know. It is read, not
	// written.
	Unknown []soap.Name
	// Address is where the stream is opened: for tcp and udp ":PORT" (the host is that of the
	// negotiated URL) or "HOST:PORT", for inproc a name.
	Address string
	Session SessionID
	// Token admits its bearer to the session, once. The responder stores only its SHA-256.
	Token [16]byte
	// Lifetime is how long the session lasts from now on; whole seconds, more than 0.
	Lifetime time.Duration
	// RequestHead and ReplyHead are the fields of messages without a head; nil means those of this
	// version.
	RequestHead, ReplyHead []soap.Field
	// Shapes are the fingerprints of the offer whose shapes the responder has too.
	Shapes [][32]byte
}

// Facts are what was agreed on for a session: its context, kept in the stores of both ends under
// [SessionID.URI] until it expires, and the part of it in recordings. It contains no secret: the
// join token is not part of it, nor is anything of the URL but scheme, host and path.
type Facts struct {
	Session        SessionID `json:"session"`             // urn:uuid
	Scheme         string    `json:"scheme"`              // URI of the scheme
	Representation string    `json:"representation"`      // URI of the representation
	Transport      string    `json:"transport"`           // URI of the transport
	Assurance      string    `json:"assurance,omitempty"` // URI; empty: at-most-once
	Security       string    `json:"security,omitempty"`  // URI; empty: none
	// Sequence is the URI of the session's sequence, "" if there is none. Whoever knows it could
	// offer to continue the sequence, so recordings leave it out.
	Sequence string `json:"-"`
	// RequestDescription and ReplyDescription are URIs of what describes the messages; empty: there
	// is none.
	RequestDescription string `json:"request_description,omitempty"`
	ReplyDescription   string `json:"reply_description,omitempty"`
	// Headers are the unchanging header blocks that were agreed on, as XML text, in the order of
	// the offer.
	Headers []string `json:"unchanging_headers,omitempty"`
	// Common is the context store that both peers use; nil: they share none. Its key is a secret.
	Common *Common `json:"-"`
	// Origin is scheme, host and port of the negotiated URL; empty where only its path is known.
	Origin string `json:"origin,omitempty"`
	// Path is that of the negotiated URL: requests without a head go there.
	Path string `json:"path"`
	// Address is where the stream is opened, as in the answer.
	Address string    `json:"address"`
	Expires time.Time `json:"expires"` // end of the session
	// Proxy: the responder is half of a pair of proxies (docs/proxy.md).
	Proxy bool `json:"proxy,omitempty"`
	// PeerShapes are fingerprints of shapes that the peer announced.
	PeerShapes [][32]byte `json:"-"`
}

// Common is the context store that both peers of a session use (docs/negotiation.md, section 3.3).
type Common struct {
	// URL names the store as both peers do.
	URL string
	// Key seals the fragments that the peers put there: who has the store alone reads nothing.
	Key [32]byte
}

// Description describes the messages of one direction, in one of three forms (docs/negotiation.md,
// section 3).
type Description struct {
	// Schema is the text of an HHFR Schema.
	Schema string
	// Shape is the canonical serialization of a shape (docs/wire-format.md, section 9).
	Shape []byte
	// Fingerprint is the URI of a schema or shape that the peer may know.
	Fingerprint string
}

// Declined is one item of an offer that the responder did not agree to, with the reason.
type Declined struct {
	// Item is the name of the element, "Transport" for example.
	Item string `json:"item"`
	Why  string `json:"why"`
}

// Agreed is the outcome of a negotiation.
type Agreed struct {
	// HHFR: there is a stream, or there was until Why happened to it.
	HHFR bool
	// Why is the reason for plain SOAP; empty while the stream is open.
	Why string
	// Undecided: a call is to ask for a stream, or asks for one. HHFR is then false, and Why says
	// that there is no stream yet.
	Undecided bool
	// Mode is how the session was negotiated: by Met, FirstCall or Explicit; empty without HHFR.
	Mode Mode
	// Tried are the attempts that led to the current stream, in their order, or those after which
	// plain SOAP is spoken.
	Tried []Attempt
	// Remembered: Why is from an earlier negotiation; no peer was asked.
	Remembered bool
	// NoStream is the address of a stream that was agreed on and could not be opened, for the
	// reason in Why; empty for any other outcome. Often it is a port that something on the path
	// blocks.
	NoStream string
	// Facts are those of the session; nil without HHFR.
	Facts *Facts
	// Offer is what was offered, and Answer what was answered, without its token; nil if there was
	// none. They must not be changed.
	Offer  *Offer
	Answer *Answer
	// Refused are items that the peer explicitly did not agree to.
	Refused []Declined
}

// Attempt is one attempt to get a stream.
type Attempt struct {
	Mode Mode
	// Transport is the URI of the stream's transport, and Address where it was to be opened; empty
	// if the attempt ended before that.
	Transport, Address string
	// Why is why this attempt led to no stream; empty: it did.
	Why string
}

// Mode is how a session is negotiated (docs/negotiation.md, section 6).
type Mode string

const (
	// Explicit: by an offer in plain SOAP, before the first message.
	Explicit Mode = "explicit"
	// FirstCall: by the first request, whose connection is upgraded.
	FirstCall Mode = "first-call"
	// Declared: by what the description of the service declares.
	Declared Mode = "declared"
	// Met: by joining again a session that is remembered.
	Met Mode = "met"
	// Auto: by Met if a session is remembered; else by Declared if the description declares a
	// stream; else by Explicit if a setting needs an offer; else by FirstCall.
	Auto Mode = "auto"
)

package negotiate

import (
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
)

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

// NoRoom reports whether the peer would have agreed, but had no space for another session. That is
// not remembered, as it may pass.
func (a *Agreed) NoRoom() bool {
	return slices.ContainsFunc(a.Refused, func(d Declined) bool { return a.Answer == nil && d.Item == Busy[0].Item })
}

// Ignored names elements that were ignored: those of the offer by the peer, and those of the answer
// by this end.
func (a *Agreed) Ignored() (offer, answer []soap.Name) {
	if a.Answer == nil {
		return nil, nil
	}
	return a.Answer.Ignored, a.Answer.Unknown
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

// Modes returns all modes.
func Modes() []Mode { return []Mode{Auto, FirstCall, Met, Declared, Explicit} }

// ParseMode reads the name of a mode. Errors: BadConfig.
func ParseMode(name string) (Mode, error) {
	if m := Mode(name); slices.Contains(Modes(), m) {
		return m, nil
	}
	var names []string
	for _, m := range Modes() {
		names = append(names, string(m))
	}
	return "", BadConfigf("%q is no mode; there are %s", name, strings.Join(names, ", "))
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

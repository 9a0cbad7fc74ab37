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
	// Why says what plain SOAP is spoken for; empty while the stream lives.
	Why string
	// Undecided: a call is to ask for a stream, or asks for one; then HHFR is false, and Why tells
	// that there is none yet.
	Undecided bool
	// Mode is how the session came about: by Met, FirstCall or Explicit; empty without HHFR.
	Mode Mode
	// Tried are the ways to the stream at hand that were tried, in their order, or those after
	// which plain SOAP is spoken.
	Tried []Attempt
	// Remembered: Why is from an earlier negotiation, nobody was asked.
	Remembered bool
	// NoStream is the address of a stream that was agreed on and could not be opened, of which Why
	// tells the reason; empty for any other outcome. Often it is a port that something on the way
	// blocks.
	NoStream string
	// Facts are those of the session; nil without HHFR.
	Facts *Facts
	// Offer is what was offered, and Answer what came back, without its token; nil if nothing was,
	// or did. They must not be changed.
	Offer  *Offer
	Answer *Answer
	// Refused are items that the peer did not agree to, and said so.
	Refused []Declined
}

// NoRoom reports whether the peer would have agreed, but had no room for another session. Nobody
// remembers that: another time there may be.
func (a *Agreed) NoRoom() bool {
	return slices.ContainsFunc(a.Refused, func(d Declined) bool { return a.Answer == nil && d.Item == Busy[0].Item })
}

// Ignored names elements that were passed over: those of the offer by the peer, and those of
// the answer by this one.
func (a *Agreed) Ignored() (offer, answer []soap.Name) {
	if a.Answer == nil {
		return nil, nil
	}
	return a.Answer.Ignored, a.Answer.Unknown
}

// Mode is how a session comes about (docs/negotiation.md, section 6).
type Mode string

const (
	// Explicit: by an offer in plain SOAP, before the first message.
	Explicit Mode = "explicit"
	// FirstCall: by the first request, whose connection is upgraded.
	FirstCall Mode = "first-call"
	// Met: by joining again a session that is remembered.
	Met Mode = "met"
	// Auto: by Met if a session is remembered; else by Explicit if something is configured that
	// only that can express; else by FirstCall.
	Auto Mode = "auto"
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Auto, FirstCall, Met, Explicit} }

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

// Attempt is one way to a stream that was tried.
type Attempt struct {
	Mode Mode
	// Transport is the URI of the stream's transport, and Address where it was to be opened; empty
	// where it did not come to that.
	Transport, Address string
	// Why is why there was no stream by this way; empty: there was.
	Why string
}

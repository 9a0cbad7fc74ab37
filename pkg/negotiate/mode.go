package negotiate

import (
	"slices"
	"strings"
)

// Mode is how a session comes about (docs/negotiation.md, section 6).
type Mode string

const (
	// Explicit: by an offer in plain SOAP, before the first message.
	Explicit Mode = "explicit"
	// FirstCall: by the first request, whose connection is upgraded.
	FirstCall Mode = "first-call"
	// Met: by joining again a session that is remembered.
	Met Mode = "met"
	// Auto: by Met if a session is remembered; else by Explicit if something is configured that only that can express; else by
	// FirstCall.
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
	return "", badConfig("%q is no mode; there are %s", name, strings.Join(names, ", "))
}

// needsOffer is what is configured that only an offer can express, for http or https URLs; empty: nothing is. Shapes that are to be offered
// are none of it: without an offer they travel once.
func (c *Config) needsOffer(secure bool) string {
	_, streams := c.Transports[ownTransport(secure)]
	switch {
	case c.RequestSchema != nil || c.ReplySchema != nil:
		return "schemas"
	case len(c.Headers) > 0:
		return "unchanging headers"
	case c.sequenced():
		return "an assurance or order"
	case c.Representations[0] != representations[0].name:
		return "a representation other than " + representations[0].name
	case !streams:
		return "a transport other than " + ownTransport(secure)
	case c.Lifetime > 0:
		return "a lifetime"
	}
	return ""
}

// Attempt is one way to a stream that was tried.
type Attempt struct {
	Mode Mode
	// Transport is the URI of the stream's transport, and Address where it was to be opened; empty where it did not come to that.
	Transport, Address string
	// Why is why there was no stream by this way; empty: there was.
	Why string
}

// try goes one way, and notes what came of it.
func (n *negotiation) try(mode Mode, way func() error) error {
	n.transport, n.address = "", ""
	err := way()
	n.tried(mode, err)
	return err
}

// tried notes what came of a way.
func (n *negotiation) tried(mode Mode, err error) {
	a := Attempt{Mode: mode, Transport: n.transport, Address: n.address}
	if err != nil {
		a.Why = err.Error()
	} else {
		n.agreed.Mode = mode
	}
	n.agreed.Tried = append(n.agreed.Tried, a)
}

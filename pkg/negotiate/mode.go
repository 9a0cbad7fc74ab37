package negotiate

import (
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/wsrm"
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

// needsOffer reports whether something is configured that only an offer can express, for http or https URLs.
func (c *Config) needsOffer(secure bool) bool {
	_, streams := c.Transports[ownTransport(secure)]
	return c.RequestSchema != nil || c.ReplySchema != nil || len(c.Headers) > 0 || len(c.Shapes) > 0 || c.sequenced() || c.Assurance > wsrm.AtMostOnce ||
		c.Representations[0] != representations[0].name || !streams || c.Lifetime > 0
}

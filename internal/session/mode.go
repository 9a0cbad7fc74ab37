package session

import "github.com/hhfr/hhfr/pkg/negotiate"

// needsOffer returns the name of a setting that only an offer can express, for http or https URLs;
// empty: there is none. Shapes to be offered do not count: without an offer they travel once.
func (c *Config) needsOffer(secure bool) string {
	_, streams := c.Transports[negotiate.OwnTransport(secure)]
	switch needs := c.undeclarable(); {
	case needs != "":
		return needs
	case c.Representations[0] != negotiate.Representations[0].Name:
		return "a representation other than " + negotiate.Representations[0].Name
	case !streams:
		return "a transport other than " + negotiate.OwnTransport(secure)
	}
	return ""
}

// undeclarable returns the name of a setting that no description of a service can declare; empty:
// there is none.
func (c *Config) undeclarable() string {
	switch {
	case c.RequestSchema != nil || c.ReplySchema != nil:
		return "schemas"
	case len(c.Headers) > 0:
		return "unchanging headers"
	case c.Common != nil:
		return "a common context store"
	case c.sequenced():
		return "an assurance or order"
	case c.Lifetime > 0:
		return "a lifetime"
	}
	return ""
}

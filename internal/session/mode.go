package session

import "github.com/hhfr/hhfr/pkg/negotiate"

// needsOffer is what is configured that only an offer can express, for http or https URLs; empty:
// nothing is. Shapes that are to be offered are none of it: without an offer they travel once.
func (c *Config) needsOffer(secure bool) string {
	_, streams := c.Transports[negotiate.OwnTransport(secure)]
	switch {
	case c.RequestSchema != nil || c.ReplySchema != nil:
		return "schemas"
	case len(c.Headers) > 0:
		return "unchanging headers"
	case c.sequenced():
		return "an assurance or order"
	case c.Representations[0] != negotiate.Representations[0].Name:
		return "a representation other than " + negotiate.Representations[0].Name
	case !streams:
		return "a transport other than " + negotiate.OwnTransport(secure)
	case c.Lifetime > 0:
		return "a lifetime"
	}
	return ""
}

// try goes one way, and notes what came of it.
func (n *negotiation) try(mode negotiate.Mode, way func() error) error {
	n.transport, n.address = "", ""
	err := way()
	n.tried(mode, err)
	return err
}

// tried notes what came of a way.
func (n *negotiation) tried(mode negotiate.Mode, err error) {
	a := negotiate.Attempt{Mode: mode, Transport: n.transport, Address: n.address}
	if err != nil {
		a.Why = err.Error()
	} else {
		n.agreed.Mode = mode
	}
	n.agreed.Tried = append(n.agreed.Tried, a)
}

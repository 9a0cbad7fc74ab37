package session

import (
	"net/url"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// means is how a session comes to the connection of its stream.
type means uint8

const (
	dials    means = 1 << iota // it opens one
	upgrades                   // a request is answered with status 101 on its own
	selects                    // TLS selects streams by ALPN on that of a request
)

// everywhere is dialed over each transport.
var everywhere = map[string]means{"tls": dials, "tcp": dials, "udp": dials, "inproc": dials}

// transports are the means of each path by transport. Those that are missing it does not have.
var transports = map[negotiate.Mode]map[string]means{
	negotiate.Met: everywhere,
	// A first contact over datagrams is refused: addresses there may be made up.
	negotiate.Declared: {"tls": dials, "tcp": dials, "inproc": dials},
	negotiate.Explicit: everywhere,
	negotiate.FirstCall: {
		"tls": selects | upgrades | dials, "tcp": upgrades | dials, "udp": dials, "inproc": dials,
	},
}

// streams lists the URIs of the transports that a path dials, preferred first, as far as they are
// configured and as private as a URL has to have them.
func (c *Config) streams(mode negotiate.Mode, u *url.URL) (uris []string) {
	for _, t := range negotiate.Transports {
		allowed := !t.HTTPSOnly
		if u.Scheme == "https" {
			allowed = t.Private || c.AllowCleartext
		}
		if _, ok := c.Transports[t.Name]; ok && allowed && transports[mode][t.Name]&dials != 0 {
			uris = append(uris, negotiate.TransportURI(t.Name))
		}
	}
	return uris
}

package proxy

import (
	"cmp"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// codesAgain is the ability to take bodies that travel as they were before zlib coded them
// (docs/proxy.md, section 3).
const codesAgain = 1

// changesClients is the ability to take changes of the client of a lane.
const changesClients = 2

// endsShortly is the ability to take a line of one byte for [hangUp].
const endsShortly = 4

// StreamConfig returns the configuration of a pair's stream, from that of any stream.
func StreamConfig(c streamer.Config) streamer.Config {
	c.Limits.MaxExchanges = cmp.Or(c.Limits.MaxExchanges, maxFlight)
	c.Limits.MaxMessage = endless
	c.Proxy, c.Abilities = true, codesAgain|changesClients|endsShortly
	return c
}

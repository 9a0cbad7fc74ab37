package session

import (
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
)

// describe is what an offer says of the messages of a direction: the schema of that alone, or the
// name of the description of both, which may be of any size; nil: nothing.
func (c *Config) describe(own *schema.Schema) *negotiate.Description {
	if own == nil && c.Contract != nil {
		return &negotiate.Description{Fingerprint: c.Contract.URI()}
	}
	return negotiate.Describe(own)
}

// shared reports whether the peer has the description of the service, too.
func (c *Config) shared(facts *negotiate.Facts) bool {
	if c.Contract == nil {
		return false
	}
	uri := c.Contract.URI()
	return facts.RequestDescription == uri || facts.ReplyDescription == uri
}

package capture

import (
	"encoding/json"
	"net/url"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// serves returns the service of a stream: from the context of its session in the store, from a
// recording, or from the beginning of the stream.
func (c *capturedConn) serves() Endpoint {
	contexts, session := &c.r.contexts, c.stream.Session
	if kept := contexts.kept(c.r.shapes.ctx, session); kept.service.Path != "" {
		return kept.service
	}
	told := c.service
	for i := range c.ways {
		if in := c.ways[i].in; in != nil && in.target != "" {
			if u, err := url.Parse(in.target); err == nil {
				told = serviceOf(u)
			}
		}
	}
	var facts negotiate.Facts
	if json.Unmarshal([]byte(c.facts), &facts) == nil && facts.Path != "" {
		told = Endpoint{facts.Origin, facts.Path}
		if len(facts.Headers) > 0 && facts.Session == session {
			contexts.seen(session).headers = facts.Headers
		}
	}
	if told.Path != "" {
		contexts.seen(session).service = told
	}
	return told
}

// ServiceOf is that of the stream of a message, as far as it is known; of plain SOAP none.
func (s *Summary) ServiceOf(d *Decoded) Endpoint {
	if d.Stream < 1 || d.Stream > len(s.Streams) {
		return Endpoint{}
	}
	return s.Streams[d.Stream-1].Service
}

package capture

import (
	"encoding/json"
	"net/url"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Endpoint is the service of a session: scheme, host and port, empty where only the path is known,
// and the path of requests without a head.
type Endpoint struct{ Origin, Path string }

func serviceOf(u *url.URL) Endpoint {
	s := Endpoint{Path: u.EscapedPath()}
	if u.Scheme != "" && u.Host != "" {
		s.Origin = u.Scheme + "://" + u.Host
	}
	return s
}

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

// serve gives streams without a known service that of another stream of their session.
func (r *Reader) serve() {
	for _, s := range r.summary.Streams {
		if seen := r.contexts.agreed[s.Session]; seen != nil && s.Service.Path == "" {
			s.Service = seen.service
		}
	}
}

// ServiceOf is that of the stream of a message, as far as it is known; of plain SOAP none.
func (s *Summary) ServiceOf(d *Decoded) Endpoint {
	if d.Stream < 1 || d.Stream > len(s.Streams) {
		return Endpoint{}
	}
	return s.Streams[d.Stream-1].Service
}

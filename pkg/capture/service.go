package capture

import (
	"encoding/json"
	"net/url"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// Service is what a session is with: scheme, host and port, empty where only the path is known, and
// where requests without a head go.
type Service struct{ Origin, Path string }

func serviceOf(u *url.URL) Service {
	s := Service{Path: u.EscapedPath()}
	if u.Scheme != "" && u.Host != "" {
		s.Origin = u.Scheme + "://" + u.Host
	}
	return s
}

// serves is the service of a stream: as the context of its session in the store has it, or what a
// recording says of the stream, or what it begins with.
func (c *conn) serves() Service {
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
		told = Service{facts.Origin, facts.Path}
	}
	if told.Path != "" {
		contexts.seen(session).service = told
	}
	return told
}

// serve has streams of which nothing else tells it have the service of another stream of their
// session.
func (r *Reader) serve() {
	for _, s := range r.summary.Streams {
		if seen := r.contexts.agreed[s.Session]; seen != nil && s.Service.Path == "" {
			s.Service = seen.service
		}
	}
}

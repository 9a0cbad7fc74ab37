package session

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// groupBackOff is the pause after all nodes of a group were tried for the first time: one that
// takes over needs no start.
const groupBackOff = 50 * time.Millisecond

// nodesOf returns the URLs of a service: the dialed one, and those of further nodes.
func nodesOf(u *url.URL, others []string) ([]*url.URL, error) {
	nodes := []*url.URL{u}
	for _, text := range others {
		node, err := parseURL(text)
		if err != nil {
			return nil, err
		}
		if node.Scheme != u.Scheme || node.RequestURI() != u.RequestURI() {
			return nil, negotiate.BadConfigf(
				"%q and %q are no nodes of one service: they differ in more than host and port",
				loggable(u), loggable(node))
		}
		nodes = append(nodes, node)
	}
	return nodes, nil
}

// target returns the URL of the node that the session speaks to, or will next.
func (s *Session) target() *url.URL {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[s.node]
}

// leave makes another node the target, unless it is another already.
func (s *Session) leave(node *url.URL) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaveLocked(node)
}

func (s *Session) leaveLocked(node *url.URL) {
	if s.nodes[s.node] == node {
		s.node = (s.node + 1) % len(s.nodes)
	}
}

// isNode reports whether a request goes to a node of the service.
func (s *Session) isNode(u *url.URL) bool {
	origin := negotiate.Origin(u)
	return slices.ContainsFunc(s.nodes, func(node *url.URL) bool { return negotiate.Origin(node) == origin })
}

// first makes the first attempt to get a stream, at the first node that agrees.
func (s *Session) first(ctx context.Context) (n *negotiation, err error) {
	for range s.nodes {
		n = s.negotiation()
		if err = n.find(ctx, s.cfg.RequireHHFR); err == nil || errors.Is(err, errNotAsked) || ctx.Err() != nil {
			break
		}
		s.leave(n.url)
	}
	return n, err
}

// plainly sends a message as plain SOAP, to the first node that can be reached.
func (s *Session) plainly(
	ctx context.Context, m streamer.Message, by func(*sessionStream, streamer.Message) error,
) (err error) {
	for i := range s.nodes {
		if i == len(s.nodes)-1 {
			break
		}
		node, body := s.target(), httpmsg.Keep(m.Body)
		if err = by(nil, streamer.Message{Head: m.Head, Body: body.Reader()}); !isUnreachable(err) {
			body.Release()
			return err
		}
		s.leave(node)
		var ok bool
		if m.Body, ok = body.Again(ctx); !ok {
			return err
		}
	}
	return by(nil, m)
}

func isUnreachable(err error) bool {
	return errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable})
}

package session

import (
	"net/url"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/pkg/negotiate"
)

// nodes are the URLs of a service: the dialed one, and those of further nodes.
type nodes struct {
	urls []*url.URL

	mu sync.Mutex
	at int // index of the target
}

// nodesOf returns the nodes of a service: the dialed one, and others.
func nodesOf(u *url.URL, others []string) (*nodes, error) {
	urls := []*url.URL{u}
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
		urls = append(urls, node)
	}
	return &nodes{urls: urls}, nil
}

// target returns the URL of the node that the session speaks to, or will next.
func (n *nodes) target() *url.URL {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.urls[n.at]
}

// leave makes another node the target, unless it is another already.
func (n *nodes) leave(node *url.URL) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.urls[n.at] == node {
		n.at = (n.at + 1) % len(n.urls)
	}
}

// may reports whether the connection of a first call to the service may become a stream so.
func (n *nodes) may(m means) bool {
	return transports[negotiate.FirstCall][negotiate.OwnTransport(n.urls[0].Scheme == "https")]&m != 0
}

// has reports whether a request goes to a node of the service.
func (n *nodes) has(u *url.URL) bool {
	origin := negotiate.Origin(u)
	return slices.ContainsFunc(n.urls, func(node *url.URL) bool { return negotiate.Origin(node) == origin })
}

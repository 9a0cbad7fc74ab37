package session

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hhfr/hhfr/internal/wsdl"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// errNotDeclared means that the description of the service declares no stream, or that there is no
// description.
var errNotDeclared = errors.New("no description of the service declares a stream at this URL")

// declared opens a stream where the description of the service says that there is one. It waits
// only for the connection: hello and the first message leave together.
func (n *negotiation) declared(ctx context.Context) error {
	d := n.dialer
	facts, transport, err := n.declaredFacts()
	if err != nil {
		return &refusal{err: err, passing: true, notAsked: true}
	}
	addr, err := d.streamAddr(transport, facts.Address, n.url)
	if err != nil {
		return &refusal{err: err, passing: true, notAsked: true}
	}
	early := streamer.EarlyLimits
	o := &streamOpening{
		facts: facts, transport: transport, addr: addr, target: targetOf(n.url), early: &early, names: true,
		optimistic: true,
	}
	if n.careful {
		o.early = nil
	}
	err = n.openStream(ctx, o)
	refusalOf(err).notAsked = true // a description that is out of date says nothing of the service
	return err
}

// declaredFacts are those of a session by what the description declares, as far as this end can do
// that.
func (n *negotiation) declaredFacts() (facts negotiate.Facts, transport string, err error) {
	d := n.dialer
	declares := n.declares()
	switch {
	case declares == nil:
		return facts, "", errNotDeclared
	case declares.Scheme != "" && declares.Scheme != negotiate.Scheme:
		return facts, "", fmt.Errorf("the description declares streams of %s, which is not spoken here",
			declares.Scheme)
	}
	representation := negotiate.RepresentationURI(negotiate.Representations[0].Name)
	if of := declares.Representations; len(of) > 0 {
		i := slices.IndexFunc(of, func(uri string) bool {
			return slices.ContainsFunc(d.cfg.Representations, func(name string) bool {
				return negotiate.RepresentationURI(name) == uri
			})
		})
		if i < 0 {
			return facts, "", errors.New("the description declares no representation that is wanted here")
		}
		representation = of[i]
	} else if !slices.Contains(d.cfg.Representations, negotiate.Representations[0].Name) {
		return facts, "", errors.New("the description declares no representation that is wanted here")
	}
	streams := declares.Streams
	if len(streams) == 0 {
		own := negotiate.OwnTransport(n.url.Scheme == "https")
		streams = []wsdl.DeclaredStream{{Transport: negotiate.TransportURI(own)}}
	}
	allowed := d.cfg.streams(negotiate.Declared, n.url)
	for _, s := range streams {
		if !slices.Contains(allowed, s.Transport) {
			continue
		}
		name, _ := negotiate.TransportName(s.Transport)
		address := s.Address
		if address == "" {
			address = portOf(n.url)
		}
		facts := n.plainFacts(negotiate.NewSessionID(), name, address)
		facts.Representation = representation
		return facts, name, nil
	}
	return facts, "", errors.New("the description declares no transport that is allowed here")
}

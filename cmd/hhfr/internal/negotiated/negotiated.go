// Package negotiated has the flag of commands that speak Fast Infoset to services, as HTTP
// negotiates it.
package negotiated

import (
	"context"
	"net"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/infosets"
)

// FastInfoset is how Fast Infoset is negotiated; empty: it is not.
type FastInfoset string

const (
	pessimistic = "negotiate"
	optimistic  = "at-once"
)

// Flag declares --fast-infoset.
func (o *FastInfoset) Flag(f *pflag.FlagSet) {
	f.StringVar((*string)(o), "fast-infoset", "",
		"plain SOAP in Fast Infoset, to services that speak it: negotiate, from their first reply in it on; or at-once")
}

// Check returns why a value of the flag is invalid; nil if it is valid.
func (o FastInfoset) Check() error {
	if o != "" && o != pessimistic && o != optimistic {
		return exit.Usagef("", "--fast-infoset is %s or %s, not %s", pessimistic, optimistic, string(o))
	}
	return nil
}

// Over is a transport that speaks Fast Infoset over another one, if the flag asks for it.
func (o FastInfoset) Over(base http.RoundTripper, g *command.Global) http.RoundTripper {
	if o == "" {
		return base
	}
	return &infosets.Transport{Base: base, Optimistic: o == optimistic, Tell: o.tell(g)}
}

// Hop is what connections to http origins go through, which speak Fast Infoset; nil, and a dial
// that is nil, if the flag does not ask for it. The caller closes it.
func (o FastInfoset) Hop(g *command.Global) (
	hop *infosets.Hop, dial func(ctx context.Context, network, addr string) (net.Conn, error),
) {
	if o == "" {
		return nil, nil
	}
	hop = infosets.NewHop(new(net.Dialer).DialContext, o == optimistic, o.tell(g))
	return hop, hop.Dial
}

// tell reports which services speak Fast Infoset.
func (o FastInfoset) tell(g *command.Global) func(service string, other *http.Response, unread error) {
	return func(service string, other *http.Response, unread error) {
		switch {
		case unread != nil:
			g.Warn("%s: %v", service, unread)
		case other == nil:
			g.Detail("%s answers in Fast Infoset", service)
		case o == optimistic:
			g.Warn("%s does not answer in Fast Infoset, but with status %d: it gets XML from now on", service,
				other.StatusCode)
		default:
			g.Note("%s answers in XML: messages stay XML", service)
		}
	}
}

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// upstreamOptions are the flags of proxy for one upstream, and the keys of a route for its own.
type upstreamOptions struct {
	upstream, mode          string
	tls                     clientTLS
	allowHost               []string
	allowCleartext, noOffer bool
	clientPerAddress        bool
	remember                time.Duration
	soapRM                  string
}

// flags declares them, with what o has as defaults.
func (o *upstreamOptions) flags(f *pflag.FlagSet) {
	defaults := *o
	f.StringVar(&o.upstream, "upstream", "",
		"http or https URL to forward to; its path is where offers go, the targets of requests stay as they are")
	modeFlag(f, &o.mode, "met if --store remembers a session, otherwise first-call")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"a host, besides that of --upstream, that the answer may name for the stream")
	f.BoolVar(&o.allowCleartext, "allow-cleartext", false,
		"agree on a stream without encryption for an https upstream, too")
	f.BoolVar(&o.noOffer, "no-offer", false, "never ask --upstream for a stream: be a far proxy only")
	f.BoolVar(&o.clientPerAddress, "client-per-address", false,
		"connections from one address are of one client, and go on with what its lanes remember: for devices that "+
			"open one for each call")
	f.DurationVar(&o.remember, "remember", session.DefaultRememberFor,
		"how long an upstream that did not agree gets no further offer")
	f.StringVar(&o.soapRM, "soap-rm", "",
		"put SOAP messages in sequences of WS-ReliableMessaging toward --upstream: 1.0, 1.1 or 1.2")
	o.tls.flags(f, "upstream")
	if defaults.mode != "" {
		*o = defaults
	}
}

// check returns the URL of the upstream.
func (o *upstreamOptions) check() (*url.URL, error) {
	if o.upstream == "" {
		return nil, usage(errors.New("--upstream is missing"), "hhfr proxy --upstream URL")
	}
	u, err := checkURL("--upstream", o.upstream)
	switch {
	case err != nil:
		return nil, err
	case checkMode(o.mode) != nil:
		return nil, checkMode(o.mode)
	case o.remember <= 0:
		return nil, usage(errors.New("--remember is more than 0"), "")
	}
	if _, ok := soaprm.ParseProtocol(o.soapRM); !ok && o.soapRM != "" {
		return nil, usage(fmt.Errorf("--soap-rm is 1.0, 1.1 or 1.2, not %s", o.soapRM), "")
	}
	return u, nil
}

// upstreams are those of all routes by their settings: equal ones share a stream, also over
// reloads.
type upstreams struct {
	system resolve.System
	keys   *os.File // of SSLKEYLOGFILE; nil: none
	known  map[string]*proxy.Upstream
}

// take returns the upstream of settings that were checked. Its name is that of the first route to
// it.
func (all *upstreams) take(name string, u *url.URL, o *upstreamOptions) (*proxy.Upstream, error) {
	key := fmt.Sprintf("%+v", *o)
	for _, file := range []string{o.tls.cacert, o.tls.cert, o.tls.key} {
		text, _ := os.ReadFile(file) // an error is reported by who reads it
		key += fmt.Sprintf(" %x", sha256.Sum256(text))
	}
	if to := all.known[key]; to != nil {
		return to, nil
	}
	secure, err := o.tls.config(all.system)
	if err != nil {
		return nil, err
	}
	(&secured{keys: all.keys}).log(secure)
	version, _ := soaprm.ParseProtocol(o.soapRM) // checked before
	to := &proxy.Upstream{
		Name: name, URL: u, TLS: secure, FarOnly: o.noOffer, AllowHost: o.allowHost, AllowCleartext: o.allowCleartext,
		Mode: negotiate.Mode(o.mode), RememberFor: o.remember, PerAddress: o.clientPerAddress,
		Reliable: version,
	}
	all.known[key] = to
	return to, nil
}

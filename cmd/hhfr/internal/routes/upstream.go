// Package routes reads where a proxy sends its calls: to --upstream, and by the routes of a
// --config file.
package routes

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// UpstreamOptions are the flags of proxy for one upstream, and the keys of a route for its own.
type UpstreamOptions struct {
	URL, SOAPRM                           string
	NoOffer, RequireHHFR                  bool
	mode                                  string
	tls                                   trust.ClientTLS
	allowHost                             []string
	allowCleartext                        bool
	clientPerAddress, clientPerConnection bool
	remember                              time.Duration
}

// Flags declares them, with what o has as defaults.
func (o *UpstreamOptions) Flags(f *pflag.FlagSet) {
	defaults := *o
	o.tls.Prefix = "upstream-"
	f.StringVar(&o.URL, "upstream", "",
		"http or https URL to forward to; its path is where offers go, the targets of requests stay as they are; or "+
			"the address of a queue, jms:queue:NAME, for a pair with a queue as its link")
	flags.Mode(f, &o.mode, "met if --store remembers a session, otherwise first-call")
	flags.AllowHost(f, &o.allowHost)
	flags.AllowCleartext(f, &o.allowCleartext)
	f.BoolVar(&o.NoOffer, "no-offer", false, "never ask --upstream for a stream: be a far proxy only")
	flags.ClientPerAddress(f, &o.clientPerAddress)
	f.BoolVar(&o.clientPerConnection, "client-per-connection", false,
		"each connection is a client: none goes on with what another one said, whatever they show")
	f.BoolVar(&o.RequireHHFR, "require-hhfr", false,
		"refuse calls with status 503 rather than send them plainly")
	f.DurationVar(&o.remember, "remember", session.DefaultRememberFor,
		"how long an upstream that did not agree gets no further offer")
	f.StringVar(&o.SOAPRM, "soap-rm", "",
		"put SOAP messages in sequences of WS-ReliableMessaging toward --upstream: 1.0, 1.1 or 1.2")
	o.tls.Flags(f)
	if defaults.mode != "" {
		*o = defaults
	}
}

// TLS is the configuration of connections to the upstream.
func (o *UpstreamOptions) TLS(system resolve.System) (*tls.Config, error) {
	return o.tls.Config(system)
}

// Check returns the URL of the upstream.
func (o *UpstreamOptions) Check() (*url.URL, error) {
	if o.URL == "" {
		return nil, exit.Usagef("hhfr proxy --upstream URL", "--upstream is missing")
	}
	u, err := command.CheckURL("--upstream", o.URL)
	switch {
	case err != nil:
		return nil, err
	case flags.CheckMode(o.mode) != nil:
		return nil, flags.CheckMode(o.mode)
	case o.clientPerAddress && o.clientPerConnection:
		return nil, exit.Usagef("one of them; false for the other where a route has it from the flags",
			"--client-per-address and --client-per-connection exclude each other")
	case o.remember <= 0:
		return nil, exit.Usagef("", "--remember is more than 0")
	}
	if o.RequireHHFR && (o.NoOffer || o.SOAPRM != "") {
		return nil, exit.Usagef("these ask for no stream; --require-hhfr is for the near half of a pair",
			"--require-hhfr does not go with --no-offer or --soap-rm")
	}
	if _, ok := soaprm.ParseProtocol(o.SOAPRM); !ok && o.SOAPRM != "" {
		return nil, exit.Usagef("", "--soap-rm is 1.0, 1.1 or 1.2, not %s", o.SOAPRM)
	}
	return u, nil
}

// KnownUpstreams are those of all routes by their settings: equal ones share a stream, also over
// reloads.
type KnownUpstreams struct {
	System resolve.System
	Keys   *trust.KeyWriter // nil: none
	Half   string           // a flag that says that the proxy is half of a pair; empty: none does
	known  map[string]*knownUpstream
}

// knownUpstream is an upstream with the TLS that it has from now on.
type knownUpstream struct {
	*proxy.Upstream
	tls   *atomic.Pointer[tls.Config]
	next  *tls.Config // that of its files
	print string      // of the content of its files
	files []string    // those, by flags
}

// take returns the upstream of settings that were checked, with its files as they are now; the ones
// before are not changed until [KnownUpstreams.Use]. Its name is that of the first route to it.
func (all *KnownUpstreams) take(
	before *KnownUpstreams, name string, u *url.URL, o *UpstreamOptions,
) (*proxy.Upstream, error) {
	settings := *o
	settings.URL = proxy.Canonical(u).String()
	key := fmt.Sprintf("%+v", settings)
	if to := all.known[key]; to != nil {
		return to.Upstream, nil
	}
	to := &knownUpstream{tls: new(atomic.Pointer[tls.Config])}
	for _, file := range []string{o.tls.CACert, o.tls.Cert, o.tls.Key} {
		text, _ := os.ReadFile(file) // an error is reported by who reads it
		to.print += fmt.Sprintf(" %x", sha256.Sum256(text))
	}
	var err error
	if to.next, err = o.tls.Config(all.System); err != nil {
		return nil, err
	}
	all.Keys.Of(to.next)
	to.files = o.tls.Files(to.next)
	if old := before.known[key]; old != nil {
		to.Upstream, to.tls = old.Upstream, old.tls
		if to.print == old.print {
			to.next = old.next // which has tickets of the server
		}
	} else {
		to.Upstream = o.of(name, all.Half, u, to.tls.Load)
		to.tls.Store(to.next)
	}
	all.known[key] = to
	return to.Upstream, nil
}

// of is an upstream with these settings.
func (o *UpstreamOptions) of(name, half string, u *url.URL, current func() *tls.Config) *proxy.Upstream {
	version, _ := soaprm.ParseProtocol(o.SOAPRM) // checked before
	return &proxy.Upstream{
		Name: name, URL: u, CurrentTLS: current, FarOnly: o.NoOffer, AllowHost: o.allowHost,
		AllowCleartext: o.allowCleartext, Mode: negotiate.Mode(o.mode), RememberFor: o.remember,
		Clients: o.clients(), Reliable: version, RequireStream: o.RequireHHFR, Paired: o.paired(half),
	}
}

// paired is a flag that says that there is to be a partner; half if that is none for one upstream.
func (o *UpstreamOptions) paired(half string) string {
	switch {
	case o.RequireHHFR:
		return "--require-hhfr"
	case o.clientPerAddress:
		return "--client-per-address"
	case o.clientPerConnection:
		return "--client-per-connection"
	case o.mode != "auto":
		return "--mode"
	case o.allowCleartext:
		return "--allow-cleartext"
	case len(o.allowHost) > 0:
		return "--allow-host"
	}
	return half
}

// clients is whose lanes go on with what they remember.
func (o *UpstreamOptions) clients() principal.Mode {
	switch {
	case o.clientPerAddress:
		return principal.ByAddress
	case o.clientPerConnection:
		return principal.ByConnection
	}
	return principal.ByProof
}

// Use has the connections that are opened from now on use the files as they were read.
func (all *KnownUpstreams) Use() {
	for _, to := range all.known {
		to.tls.Store(to.next)
	}
}

// Files are those of all, by flags.
func (all *KnownUpstreams) Files() (files []string) {
	for _, to := range all.known {
		files = append(files, to.files...)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// Package proxy is hhfr proxy.
package proxy

import (
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/cmdline"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/negotiated"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queuelink"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/routes"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/internal/proxy"
)

// proxyGrace is how long calls in progress may take after the first Ctrl-C, as in serve.
const proxyGrace = 5 * time.Second

type proxyOptions struct {
	server.ServerOptions
	routes.RoutingOptions
	link           queuelink.LinkOptions
	schema         description.SchemaSource
	timeout, drain time.Duration
	maxConns       int
	maxPerPeer     int // 0: half of maxConns
	maxBuffer      flags.Size
	without        flags.Stages
	transport      string
	fastInfoset    negotiated.FastInfoset
	checks         bool // nothing else
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	o := &proxyOptions{}
	c := &cobra.Command{
		Use:         "proxy",
		Short:       "One half of a pair that carries SOAP over a thin link, for systems that nobody can change",
		Long:        proxyHelp,
		Example:     proxyExamples,
		Annotations: map[string]string{cmdline.KeysOfRoutes: strings.Join(routes.Keys(), " ")},
		Args:        command.Takes(),
		RunE: func(c *cobra.Command, _ []string) error {
			if o.link.Used(o.URL) {
				return o.overQueue(c, g)
			}
			return runProxy(c, g, o)
		},
	}
	o.flags(c.Flags())
	command.OutputFlag(c, &o.Output)
	return c
}

func (o *proxyOptions) flags(f *pflag.FlagSet) {
	o.UpstreamOptions.Flags(f)
	o.link.Flags(f)
	o.Flags(f, "127.0.0.1:8081", true)
	o.schema.Flags(f)
	o.schema.AnnotationFlag(f)
	f.StringVar(&o.transport, "transport", "tcp",
		"tcp, in TLS for https; or http: ask for no stream, but send plain SOAP with references to --common-store")
	o.fastInfoset.Flag(f)
	o.Record.Flags(f, "write what goes over the link to this pcapng file")
	flags.Without(f, &o.without)
	f.BoolVar(&o.checks, "check", false,
		"read flags, variables, files and routes, print what the proxy would be, and end: nothing is opened or asked")
	f.DurationVar(&o.timeout, "timeout", proxy.DefaultTimeout, "bound on negotiation, and on opening a connection")
	f.IntVar(&o.maxConns, "max-conns", proxy.DefaultMaxConns,
		"maximum number of connections of clients, and of those to upstreams; what is beyond gets status 503")
	flags.MaxPerPeer(f, &o.maxPerPeer, 0, "; 0: half of --max-conns")
	o.maxBuffer = proxy.DefaultMaxBuffer
	f.Var(&o.maxBuffer, "max-buffer", "how much of one message is held at most to see it whole")
	f.DurationVar(&o.drain, "drain", proxyGrace, "how long calls in progress may take after SIGTERM or Ctrl-C")
}

func (o *proxyOptions) check() error {
	u, err := o.Check()
	switch {
	case err != nil && (o.URL != "" || len(o.Others) == 0):
		return err
	case u != nil && u.Host == o.Listen:
		return exit.Usagef("name the far proxy or the server with --upstream, or another port with --listen",
			"--upstream %s is --listen: all calls would come back", o.URL)
	case command.CheckHost("--advertise", o.Advertise) != nil:
		return command.CheckHost("--advertise", o.Advertise)
	case o.Sync > 1<<20:
		return exit.Usagef("", "--sync is at most 1MiB")
	case o.transport != "tcp" && o.transport != flags.PlainTransport:
		return exit.Usagef("", "--transport is tcp or http, not %s", o.transport)
	case o.transport == flags.PlainTransport && o.RequireHHFR:
		return exit.Usagef("", "--require-hhfr does not go with --transport http, which asks for no stream")
	case o.Common.CheckTransport(o.transport) != nil:
		return o.Common.CheckTransport(o.transport)
	case o.Common.Store != "" && (o.SOAPRM != "" || slices.ContainsFunc(o.Others,
		func(r routes.RouteOptions) bool { return r.SOAPRM != "" })):
		return exit.Usagef("a message in a sequence has no references: let another proxy do one of the two",
			"--soap-rm does not go with --common-store")
	case o.fastInfoset.Check() != nil:
		return o.fastInfoset.Check()
	case o.fastInfoset != "" && !o.toServers():
		return exit.Usagef("--no-offer says that an upstream is a server; of a pair the far proxy has --fast-infoset",
			"--fast-infoset is for servers at http URLs, without --soap-rm")
	case o.FlushDelay < 0:
		return exit.Usage(flags.ErrNegativeFlushDelay, "")
	case o.NoOffer && o.TCP == listen.None:
		return exit.Usagef("", "--no-offer and --tcp none leave neither a near proxy nor a far one")
	case o.timeout <= 0:
		return exit.Usagef("", "--timeout is more than 0")
	case o.drain < 0:
		return exit.Usagef("", "--drain is 0 or more")
	case o.maxConns < 1 || o.maxBuffer < minBuffer:
		return exit.Usagef("", "--max-conns is at least 1, --max-buffer at least 64KiB")
	case o.maxPerPeer < 0:
		return exit.Usage(flags.ErrMaxPerPeer, "")
	}
	return nil
}

// toServers reports whether all upstreams are servers of HTTP that get plain SOAP as it comes.
func (o *proxyOptions) toServers() bool {
	is := func(u *routes.UpstreamOptions) bool {
		return u.NoOffer && u.SOAPRM == "" && (u.URL == "" || strings.HasPrefix(strings.ToLower(u.URL), "http:"))
	}
	for i := range o.Others {
		if !is(&o.Others[i].UpstreamOptions) {
			return false
		}
	}
	return is(&o.UpstreamOptions)
}

// overQueue is a proxy with a queue as its link.
func (o *proxyOptions) overQueue(c *cobra.Command, g *command.Global) error {
	if err := queuelink.CheckFlags(c.Flags(), c.InheritedFlags()); err != nil {
		return err
	}
	p := queuelink.LinkHalf{LinkOptions: &o.link, Server: &o.ServerOptions, Upstream: o.URL, Drain: o.drain,
		TLS: func() (*tls.Config, error) { return o.TLS(g.System) },
		Announce: func(addrs map[string]string, store, to string) error {
			if o.Output == "json" {
				return g.JSON(ProxyReport{Version: 1, Addresses: addrs, Store: store, Upstream: to})
			}
			for what, at := range addrs {
				if _, err := fmt.Fprintf(g.Out, "%-9s %s\n", what, at); err != nil {
					return err
				}
			}
			_, err := fmt.Fprintf(g.Out, "upstream  %s\nstore     %s\n", to, store)
			return err
		}}
	return p.Run(c.Context(), g)
}

// addresses are those of calls.
func (o *proxyOptions) addresses() []string {
	all := []string{o.Listen, o.TCP}
	for _, r := range o.Others {
		all = append(all, r.Listen)
	}
	return all
}

// minBuffer is the least --max-buffer: what is read at once.
const minBuffer = 64 << 10

// status is the proxy in a line.
func (o *proxyOptions) status(addrs map[string]net.Addr) string {
	said := fmt.Sprintf("clients %s://%s", o.Own.Scheme(), addrs["http"])
	if len(o.Others) > 0 {
		said += ", " + printing.Count(len(o.Others), "route")
	}
	if rest := o.Rest(); rest != "" {
		said += ", upstream " + rest
	}
	return said
}

func (o *proxyOptions) announce(g *command.Global, p *proxy.Proxy, s *server.OpenedServer) error {
	addrs := map[string]string{}
	for name, a := range p.Addrs() {
		addrs[name] = a.String()
	}
	metrics := s.Seen.Announce(addrs)
	return o.say(g, addrs, s.StoreName, metrics, false)
}

// ProxyReport is the JSON of proxy, once it listens, or of --check.
type ProxyReport struct {
	Version   int                `json:"version"`            // 1
	Addresses map[string]string  `json:"addresses"`          // host and port, by what listens there
	Store     string             `json:"store"`              // the context store
	Check     string             `json:"check,omitempty"`    // ok: with --check
	Upstream  string             `json:"upstream,omitempty"` // URL of --upstream, without a password
	Routes    []routes.RouteLine `json:"routes,omitempty"`   // those of --config, in the order of their precedence
}

// say prints where a proxy listens, and where calls go; checked: where it would, and that all is
// well.
func (o *proxyOptions) say(g *command.Global, addrs map[string]string, store, metrics string, checked bool) error {
	lines, upstream := o.Lines(addrs), o.Rest()
	if o.Output == "json" {
		said := ProxyReport{Version: 1, Addresses: addrs, Store: store, Upstream: upstream, Routes: lines}
		if checked {
			said.Check = "ok"
		}
		return g.JSON(said)
	}
	text := fmt.Sprintf("clients   %s://%s\nstreams   %s\n", o.Own.Scheme(), addrs["http"], server.StreamsAt(addrs))
	for _, r := range lines {
		text += fmt.Sprintf("route     %s\n", r)
	}
	if upstream != "" {
		text += fmt.Sprintf("upstream  %s\n", upstream)
	}
	if checked {
		text = "check     ok\n" + text
	}
	_, err := fmt.Fprintf(g.Out, "%sstore     %s\n%s", text, store, metrics)
	return err
}

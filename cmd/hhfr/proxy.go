package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/proxy"
)

// proxyGrace is how long calls in progress may take after the first Ctrl-C, as in serve.
const proxyGrace = 5 * time.Second

type proxyOptions struct {
	serverOptions
	schema          schemaSource
	upstreamOptions                // of what no route takes
	others          []routeOptions // routes of the --config file
	timeout, drain  time.Duration
	maxConns        int
	maxPerPeer      int // 0: half of maxConns
	maxBuffer       size
	without         stages
	transport       string
	checks          bool // nothing else
}

func newProxy(env Env, g *global) *cobra.Command {
	o := newProxyOptions()
	c := &cobra.Command{
		Use:     "proxy",
		Short:   "One half of a pair that carries SOAP over a thin link, for systems that nobody can change",
		Long:    proxyHelp,
		Example: proxyExamples,
		Args:    takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return runProxy(c, env, g, o) },
	}
	o.flags(c.Flags(), g)
	outputFlag(c, &o.output, "text", "json")
	return c
}

// newProxyOptions are options whose flags are not declared yet.
func newProxyOptions() *proxyOptions {
	o := &proxyOptions{maxBuffer: proxy.DefaultMaxBuffer}
	o.sync = 1 << 20
	o.tls.prefix = "upstream-"
	return o
}

func (o *proxyOptions) flags(f *pflag.FlagSet, g *global) {
	f.StringVar(&o.listen, "listen", "127.0.0.1:8081", "address for everything; port 0 takes a free one")
	o.upstreamOptions.flags(f)
	f.StringVar(&o.tcp, "tcp", "", "another address for streams, in TLS with --cert; none: be a near proxy only")
	f.StringVar(&o.advertise, "advertise", "",
		"host that answers name for streams, if it is not that of the URL")
	o.store.serverFlags(f)
	o.schema.flags(f, "WSDL or XML Schema of the server, or HHFR Schema of its requests")
	o.schema.annotationFlag(f)
	o.common.flags(f, true)
	f.StringVar(&o.transport, "transport", "tcp",
		"tcp, in TLS for https; or http: ask for no stream, but send plain SOAP with references to --common-store")
	o.record.flags(f, "write what goes over the link to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	withoutFlag(f, &o.without, "; the far proxy of a pair refuses streams of a near one that asks for them")
	f.BoolVar(&o.checks, "check", false,
		"read flags, variables, files and routes, print what the proxy would be, and end: nothing is opened or asked")
	f.DurationVar(&o.timeout, "timeout", proxy.DefaultTimeout, "bound on negotiation, and on opening a connection")
	f.IntVar(&o.maxConns, "max-conns", proxy.DefaultMaxConns,
		"maximum number of connections of clients, and of those to upstreams; what is beyond gets status 503")
	f.IntVar(&o.maxPerPeer, "max-per-peer", 0, maxPerPeerUsage+"; 0: half of --max-conns")
	f.Var(&o.maxBuffer, "max-buffer", "how much of one message is held at most to see it whole")
	f.DurationVar(&o.drain, "drain", proxyGrace, "how long calls in progress may take after SIGTERM or Ctrl-C")
	contextFlag(f, &o.context)
	o.calls.flags(f)
	o.metrics.flags(f)
	o.own.flags(f)
}

func (o *proxyOptions) check() error {
	u, err := o.upstreamOptions.check()
	switch {
	case err != nil && (o.upstream != "" || len(o.others) == 0):
		return err
	case u != nil && u.Host == o.listen:
		return usage(fmt.Errorf("--upstream %s is --listen: all calls would come back", o.upstream),
			"name the far proxy or the server with --upstream, or another port with --listen")
	case checkHost("--advertise", o.advertise) != nil:
		return checkHost("--advertise", o.advertise)
	case o.sync > 1<<20:
		return usage(errors.New("--sync is at most 1MiB"), "")
	case o.transport != "tcp" && o.transport != plainTransport:
		return usage(errors.New("--transport is tcp or http, not "+o.transport), "")
	case o.transport == plainTransport && o.requireHHFR:
		return usage(errors.New("--require-hhfr does not go with --transport http, which asks for no stream"), "")
	case o.common.checkTransport(o.transport) != nil:
		return o.common.checkTransport(o.transport)
	case o.common.store != "" && (o.soapRM != "" || slices.ContainsFunc(o.others,
		func(r routeOptions) bool { return r.soapRM != "" })):
		return usage(errors.New("--soap-rm does not go with --common-store"),
			"a message in a sequence has no references: let another proxy do one of the two")
	case o.flushDelay < 0:
		return usage(errNegativeFlushDelay, "")
	case o.noOffer && o.tcp == noAddress:
		return usage(errors.New("--no-offer and --tcp none leave neither a near proxy nor a far one"), "")
	case o.timeout <= 0:
		return usage(errors.New("--timeout is more than 0"), "")
	case o.drain < 0:
		return usage(errors.New("--drain is 0 or more"), "")
	case o.maxConns < 1 || o.maxBuffer < minBuffer:
		return usage(errors.New("--max-conns is at least 1, --max-buffer at least 64KiB"), "")
	case o.maxPerPeer < 0:
		return usage(errMaxPerPeer, "")
	}
	return nil
}

// addresses are those of calls.
func (o *proxyOptions) addresses() []string {
	all := []string{o.listen, o.tcp}
	for _, r := range o.others {
		all = append(all, r.listen)
	}
	return all
}

// minBuffer is the least --max-buffer: what is read at once.
const minBuffer = 64 << 10

// status is the proxy in a line.
func (o *proxyOptions) status(addrs map[string]net.Addr) string {
	said := fmt.Sprintf("clients %s://%s", o.own.scheme(), addrs["http"])
	if len(o.others) > 0 {
		said += ", " + count(len(o.others), "route")
	}
	if rest := o.rest(); rest != "" {
		said += ", upstream " + rest
	}
	return said
}

func (o *proxyOptions) announce(env Env, p *proxy.Proxy, s *openedServer) error {
	addrs := map[string]string{}
	for name, a := range p.Addrs() {
		addrs[name] = a.String()
	}
	metrics := s.seen.announce(addrs)
	return o.say(env, addrs, s.storeName, metrics, false)
}

// proxyReport is the JSON of proxy, once it listens, or of --check.
type proxyReport struct {
	Version   int               `json:"version"`            // 1
	Addresses map[string]string `json:"addresses"`          // host and port, by what listens there
	Store     string            `json:"store"`              // the context store
	Check     string            `json:"check,omitempty"`    // ok: with --check
	Upstream  string            `json:"upstream,omitempty"` // URL of --upstream, without a password
	Routes    []routeLine       `json:"routes,omitempty"`   // those of --config, in the order of their precedence
}

// say prints where a proxy listens, and where calls go; checked: where it would, and that all is
// well.
func (o *proxyOptions) say(env Env, addrs map[string]string, store, metrics string, checked bool) error {
	routes, upstream := o.lines(addrs), o.rest()
	if o.output == "json" {
		said := proxyReport{Version: 1, Addresses: addrs, Store: store, Upstream: upstream, Routes: routes}
		if checked {
			said.Check = "ok"
		}
		return writeJSON(env.Out, said)
	}
	text := fmt.Sprintf("clients   %s://%s\nstreams   %s\n", o.own.scheme(), addrs["http"], streamsAt(addrs))
	for _, r := range routes {
		text += fmt.Sprintf("route     %s\n", r)
	}
	if upstream != "" {
		text += fmt.Sprintf("upstream  %s\n", upstream)
	}
	if checked {
		text = "check     ok\n" + text
	}
	_, err := fmt.Fprintf(env.Out, "%sstore     %s\n%s", text, store, metrics)
	return err
}

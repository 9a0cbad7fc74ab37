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
	maxBuffer       size
	without         stages
	transport       string
}

func newProxy(env Env, g *global) *cobra.Command {
	o := newProxyOptions()
	c := &cobra.Command{
		Use:   "proxy",
		Short: "One half of a pair that carries SOAP over a thin link, for systems that nobody can change",
		Long: `proxy takes HTTP connections and forwards them to --upstream. Two of them make a pair,
one at each end of the link: the near one, which clients connect to, has the far one as its
--upstream; the far one has the server. They agree on a session, and from then on only what changes
in messages travels between them. Heads and bodies arrive byte for byte as they left, and so does
what is not SOAP or not HTTP.

--mode says how the near one opens a session, always concurrently with the calls:

  first-call  by an OPTIONS request for the path of --upstream, whose connection
              becomes the stream
  met         by the session that --store remembers: nothing is asked
  declared    by the WSDL of --schema, if that declares a stream at --upstream
  explicit    by an offer, a POST to the path of --upstream, whose answer says
              where the stream is opened
  auto        met, if a session is remembered and the far one still knows it;
              otherwise declared, if the WSDL declares a stream; otherwise
              first-call

The far one answers all of them. Any other client that asks it for a stream, by OPTIONS or with a
POST, gets one: what it sends is forwarded as HTTP.

--listen takes everything: clients, offers, and streams of near proxies. What begins like a stream
but is not one that this proxy agreed to is taken for the client's, and forwarded. With --cert and
--key it takes TLS only. With --upstream https://FAR:PORT everything between the near one and the
far one is in TLS, including the stream; --allow-cleartext lets it agree to a stream without
encryption, if the far one has no other. --tcp names another address for streams, or none for a
proxy that is only a near one.

--client-ca asks clients for a certificate, --upstream-cert presents one to the
upstream. --negotiate says who may have a session; others are forwarded. The keys of TLS are written
to the file that the environment variable SSLKEYLOGFILE names, for Wireshark.

With --context the store is served to others at /context, as by hhfr context serve. This is for
connections to --listen; requests for /context that come over a stream are forwarded.

--soap-rm is for the far one, and for a server that wants WS-ReliableMessaging of clients that do not
know it: SOAP messages go to --upstream in sequences, one for each address and principal
(Authorization, Cookie), as hhfr stream --soap-rm sends them; replies come back without. A message
that has WS-ReliableMessaging of its own, wants its reply at another address, is compressed or has
attachments goes as it is, and is in no sequence of this proxy. What the store (--store) has of a
sequence is sent before its next message. A message is at most 4 MiB.

--schema names the description of the server: a WSDL or XML Schema, a file or URL, or an HHFR Schema.
A pair whose halves have the same one sends shapes as what the description does not say. The near
one names it when it asks for its first session: an HHFR Schema in an offer, the others by their
fingerprint. Messages that are not as described are carried all the same, and counted when the proxy
ends.

Without a partner, connections are forwarded as they are; a server that does not know hhfr sees one
OPTIONS request or offer, then none for the time of --remember, and with --no-offer none at
all. Offers are made concurrently with the calls: a connection that arrives while there is no stream
is forwarded as it is, to its end. If there is a partner but no stream can be opened, this is
reported on stderr, once, and so is the next stream that is opened. If the upstream speaks http
where its URL says https, or the reverse, this is reported on stderr, and clients get status 502.

One proxy can have many upstreams: sections [proxy route NAME] of the --config file say by listen
(an address of its own), host (NAME or NAME:PORT, several with commas) and path (/a takes /a and
/a/b) which requests go to their upstream. Of the routes that take a request, one with its host
counts first, then one with the longest path; --upstream takes what no route does, and without it
such a request gets status 404. A route may set what the flags for --upstream set, and has their
values otherwise. SIGHUP reads the file again: calls in progress end where they began, the next
request of each connection goes by the new routes, listeners are opened and closed. If the file is
wrong, everything stays as it is, and stderr says why.

With --client-per-address all connections from an address are one client's, and begin with what the
ones before had on the stream: fewer bytes for devices that open a connection for each call. Not for
addresses of many users, who could then find out, by lengths, what others send.

On a terminal one line shows what was carried so far. A summary is reported at the end and, except
on Windows, on SIGUSR1: calls, their bytes on the HTTP side and on the link, and the ratio of the two.
` + metricsHelp + `
After Ctrl-C (exit code 130) or SIGTERM (0), proxy accepts no further connection, answers further
requests with status 503, waits for the calls in progress, at most for the time of --drain, and
ends. SIGHUP reads certificates, keys, authorities and tokens again, with --config and without, for
connections and requests from then on; open ones stay, also the stream. If the pair
loses its stream, a call that was sent and not yet answered ends in status 502, and is never sent
twice.`,
		Example: `  hhfr proxy --listen 127.0.0.1:8082 --upstream http://127.0.0.1:8080/echo
  hhfr proxy --listen 127.0.0.1:8081 --upstream http://127.0.0.1:8082/echo --record link.pcapng
  hhfr proxy --listen 0.0.0.0:8443 --cert server.pem --key server.key ` +
			`--upstream http://127.0.0.1:8080/echo --store ./store --no-offer
  hhfr proxy --listen 127.0.0.1:8081 --upstream https://far.example:8443/echo --cacert ca.pem
  hhfr proxy --config pair.conf`,
		Args: takes(),
		RunE: func(c *cobra.Command, _ []string) error { return runProxy(c, env, g, o) },
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
	g.writtenStoreFlags(f, &o.store, "mem:", "context store: ")
	o.schema.flags(f, "WSDL or XML Schema of the server, or HHFR Schema of its requests")
	o.schema.annotationFlag(f)
	o.common.flags(f, true)
	f.StringVar(&o.transport, "transport", "tcp",
		"tcp, in TLS for https; or http: ask for no stream, but send plain SOAP with references to --common-store")
	o.record.flags(f, "write what goes over the link to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	withoutFlag(f, &o.without, "; the far proxy of a pair refuses streams of a near one that asks for them")
	f.DurationVar(&o.timeout, "timeout", proxy.DefaultTimeout, "bound on negotiation, and on opening a connection")
	f.IntVar(&o.maxConns, "max-conns", proxy.DefaultMaxConns,
		"maximum number of connections of clients, and of those to upstreams; what is beyond gets status 503")
	f.Var(&o.maxBuffer, "max-buffer", "how much of one message is held at most to see it whole")
	f.DurationVar(&o.drain, "drain", proxyGrace, "how long calls in progress may take after SIGTERM or Ctrl-C")
	contextFlag(f, &o.context)
	metricsFlag(f, &o.metrics)
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
		said += fmt.Sprintf(", %d routes", len(o.others))
	}
	if u, err := o.upstreamOptions.check(); err == nil {
		said += ", upstream " + u.Redacted()
	}
	return said
}

func (o *proxyOptions) announce(env Env, p *proxy.Proxy, seen *metricsCounters) error {
	addrs := map[string]string{}
	for name, a := range p.Addrs() {
		addrs[name] = a.String()
	}
	metrics := seen.announce(addrs)
	routes, upstream := o.lines(addrs), ""
	if u, err := o.upstreamOptions.check(); err == nil {
		upstream = u.Redacted()
	}
	if o.output == "json" {
		said := map[string]any{"version": 1, "addresses": addrs}
		if upstream != "" {
			said["upstream"] = upstream
		}
		if len(routes) > 0 {
			said["routes"] = routes
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
	_, err := fmt.Fprint(env.Out, text+metrics)
	return err
}

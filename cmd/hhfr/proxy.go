package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// proxyGrace is how long calls in progress may take after the first Ctrl-C, as in serve.
const proxyGrace = 5 * time.Second

type proxyOptions struct {
	listen, upstream, mode, tcp, advertise, store, record, output string
	tls                                                           serverTLS
	upstreamTLS                                                   clientTLS
	allowHost                                                     []string
	allowCleartext, noOffer                                       bool
	remember, timeout                                             time.Duration
	sync                                                          size
	without                                                       stages
}

func newProxy(env Env, g *global) *cobra.Command {
	o := proxyOptions{sync: 64 << 10, upstreamTLS: clientTLS{prefix: "upstream-"}}
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
  explicit    by an offer, a POST to the path of --upstream, whose answer says
              where the stream is opened
  auto        met, if a session is remembered and the far one still knows it;
              otherwise first-call

The far one answers all three. Any other client that asks it for a stream, by OPTIONS or with a
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

Without a partner, connections are forwarded as they are; a server that does not know hhfr sees one
OPTIONS request or offer, then none for the time of --remember, and with --no-offer none at
all. Offers are made concurrently with the calls: a connection that arrives while there is no stream
is forwarded as it is, to its end. If there is a partner but no stream can be opened, this is
reported on stderr, once, and so is the next stream that is opened. If the upstream speaks http
where its URL says https, or the reverse, this is reported on stderr, and clients get status 502.

After Ctrl-C (exit code 130) or SIGTERM (0), proxy accepts no further connection, waits up to 5 s
for the calls in progress on the stream, and ends. SIGHUP does not end it. If the pair loses its
stream, a call that was sent and not yet answered ends in status 502, and is never sent twice.`,
		Example: `  hhfr proxy --listen 127.0.0.1:8082 --upstream http://127.0.0.1:8080/echo
  hhfr proxy --listen 127.0.0.1:8081 --upstream http://127.0.0.1:8082/echo --record link.pcapng
  hhfr proxy --listen 0.0.0.0:8443 --cert server.pem --key server.key ` +
			`--upstream http://127.0.0.1:8080/echo --store ./store --no-offer
  hhfr proxy --listen 127.0.0.1:8081 --upstream https://far.example:8443/echo --cacert ca.pem`,
		Args: takes(),
		RunE: func(c *cobra.Command, _ []string) error { return runProxy(c.Context(), env, g, o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8081", "address for everything; port 0 takes a free one")
	f.StringVar(&o.upstream, "upstream", "",
		"http or https URL to forward to; its path is where offers go, the targets of requests stay as they are")
	modeFlag(f, &o.mode, "met if --store remembers a session, otherwise first-call")
	f.StringVar(&o.tcp, "tcp", "", "another address for streams, in TLS with --cert; none: be a near proxy only")
	f.StringVar(&o.advertise, "advertise", "",
		"host that answers name for streams, if it is not that of the URL")
	f.StringVar(&o.store, "store", "mem:", "context store: "+strings.Join(engines.Forms(), " or "))
	f.StringVar(&o.record, "record", "", "write what goes over the link to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 64KiB")
	withoutFlag(f, &o.without, "; the far proxy of a pair refuses streams of a near one that asks for them")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"a host, besides that of --upstream, that the answer may name for the stream")
	f.BoolVar(&o.allowCleartext, "allow-cleartext", false,
		"agree on a stream without encryption for an https upstream, too")
	f.BoolVar(&o.noOffer, "no-offer", false, "never ask --upstream for a stream: be a far proxy only")
	f.DurationVar(&o.remember, "remember", session.DefaultRememberFor,
		"how long an upstream that did not agree gets no further offer")
	f.DurationVar(&o.timeout, "timeout", proxy.DefaultTimeout, "bound on negotiation, and on opening a connection")
	o.tls.flags(f)
	o.upstreamTLS.flags(f, "upstream")
	outputFlag(c, &o.output, "text", "json")
	return c
}

func (o *proxyOptions) check() (*url.URL, error) {
	if o.upstream == "" {
		return nil, usage(errors.New("--upstream is missing"), "hhfr proxy --upstream URL")
	}
	u, err := checkURL("--upstream", o.upstream)
	switch {
	case err != nil:
		return nil, err
	case u.Host == o.listen:
		return nil, usage(fmt.Errorf("--upstream %s is --listen: all calls would come back", o.upstream),
			"name the far proxy or the server with --upstream, or another port with --listen")
	case checkHost("--advertise", o.advertise) != nil:
		return nil, checkHost("--advertise", o.advertise)
	case o.sync > 64<<10:
		return nil, usage(errors.New("--sync is at most 64KiB"), "")
	case o.noOffer && o.tcp == noAddress:
		return nil, usage(errors.New("--no-offer and --tcp none leave neither a near proxy nor a far one"), "")
	case checkMode(o.mode) != nil:
		return nil, checkMode(o.mode)
	case o.remember <= 0 || o.timeout <= 0:
		return nil, usage(errors.New("--remember and --timeout are more than 0"), "")
	}
	return u, nil
}

func runProxy(ctx context.Context, env Env, g *global, o proxyOptions) (err error) {
	defer outliveTerminal(g.logger())()
	upstream, err := o.check()
	if err != nil {
		return err
	}
	secure, err := o.upstreamTLS.open(env.System)
	if err != nil {
		return err
	}
	defer secure.close()
	own, err := o.tls.open(secure.keys)
	if err != nil {
		return err
	}
	admit, err := o.tls.admit()
	if err != nil {
		return err
	}
	store, err := openStore(ctx, o.store, g.logger())
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	rec, err := openRecording(o.record)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	clients, streams, err := o.listeners(ctx, own)
	if err != nil {
		return err
	}
	log := g.logger()
	book := binary.NewBook(ctxstore.Shapes{Store: store})
	book.Log, book.Without = log, uint64(o.without)
	cfg := proxy.Config{
		Listen: clients, ListenTLS: own, Streams: streams, NearOnly: o.tcp == noAddress, Admit: admit,
		Advertise: o.advertise, Upstream: upstream, TLS: secure.config, Store: store, Coders: coders.OfBook(book),
		Mode: negotiate.Mode(o.mode), AllowHost: o.allowHost, AllowCleartext: o.allowCleartext, RememberFor: o.remember,
		Timeout: o.timeout, Stream: streamer.Config{SyncBytes: int64(o.sync)},
		WrapDialed: rec.dialed(), WrapAccepted: rec.accepted(), OnSession: rec.facts, Log: log,
	}
	if o.noOffer {
		cfg.Transports = map[string]streamer.Transport{}
	}
	p, err := proxy.Start(cfg)
	if err != nil {
		return err
	}
	if err := o.announce(env, p, upstream); err != nil {
		return errors.Join(err, p.Close())
	}
	select {
	case <-ctx.Done():
		g.note("shutting down after the calls in progress; a second signal ends at once")
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), proxyGrace)
		p.Drain(last)
		cancel()
	case err = <-p.Failed():
	}
	return errors.Join(err, p.Close())
}

// listeners opens the main listener, and the one of a separate address for streams; nil if there is
// none.
func (o *proxyOptions) listeners(ctx context.Context, own *tls.Config) (all, streams net.Listener, err error) {
	if all, err = listen(ctx, "--listen", o.listen, tcp.Transport{}.Listen); err != nil {
		return nil, nil, err
	}
	if streams, err = listenStreams(ctx, o.tcp, own); err != nil {
		return nil, nil, errors.Join(err, all.Close())
	}
	return all, streams, nil
}

func (o *proxyOptions) announce(env Env, p *proxy.Proxy, upstream *url.URL) error {
	addrs := map[string]string{}
	for name, a := range p.Addrs() {
		addrs[name] = a.String()
	}
	if o.output == "json" {
		return writeJSON(env.Out, map[string]any{"version": 1, "addresses": addrs, "upstream": upstream.Redacted()})
	}
	_, err := fmt.Fprintf(env.Out, "clients   %s://%s\nstreams   %s\nupstream  %s\n", o.tls.scheme(), addrs["http"],
		streamsAt(addrs), upstream.Redacted())
	return err
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

type serveOptions struct {
	serverOptions
	udp, geoip, misbehave, soapRM string
	allowHost                     []string
}

func newServe(env Env, g *global) *cobra.Command {
	o := &serveOptions{}
	o.sync = 1 << 20
	c := &cobra.Command{
		Use:   "serve",
		Short: "A test peer: its services answer plain SOAP and hhfr alike",
		Long: `serve offers test services over plain SOAP in HTTP and over hhfr streams, and prints
the URL of each, and a curl line that calls it.
All of it is at one address, --listen: plain SOAP, negotiation, streams over TCP, and streams over
UDP at the same port number. With --cert and --key the address takes TLS only, https as well as
streams; streams over UDP, which are cleartext, are then accepted only at the address of
--udp. --tcp and --udp name other addresses for streams, or none.
Ctrl-C (exit code 130) or SIGTERM (0) ends it after what is in progress. SIGHUP does not: it reads
--cert, --key, --client-ca and the files of tokens again, for connections and requests from then on.

--client-ca asks clients for a certificate. --negotiate says who may have a session: others get
plain SOAP, as from a server that does not know hhfr. The keys of TLS are written to the file that
the environment variable SSLKEYLOGFILE names, for Wireshark.

A summary is reported at the end and, except on Windows, on SIGUSR1: calls, their bytes on the HTTP
side and on the link, and the ratio of the two.
` + metricsHelp + `
Services (all but the first have a description at URL?wsdl, which declares where there are streams):

  /echo     returns the body it got
  /concat   joins strings
  /sum      adds numbers
  /records  returns records of a string, an int and a boolean
  /geoip    reports whether an IPv4 address is in a list of ranges
  /blob     returns the requested number of random bytes
  /ticker   sends each session a server-initiated message every second; in plain
            SOAP it answers a request with the next one
  /ledger   keeps entries: add appends one, read returns them; under an
            assurance an entry is appended in the transaction of its message

They read SOAP 1.1 and 1.2 in UTF-8, UTF-16 and ISO-8859-1, also in gzip, and answer in UTF-8.

Clients may ask for messages in order, at-least-once, and exactly-once if --store persists: it holds
the server's side of their sequences. A server that was killed and is restarted with the same store
continues them.

With --soap-rm the services also take messages in sequences of WS-ReliableMessaging, over plain SOAP:
1.0 (February 2005), 1.1 and 1.2, which are the same on the wire, or all; with WS-Addressing of 2004
and of 2005. Each message is handled exactly once and in order; the ledger appends entries in the
transaction of the message. The sequences are in --store, too. Replies and acknowledgements go on
the connection of the request, or to the address that the client names for them, or to who asks for
them (WS-MakeConnection, with 1.1). An address is that of the host that the request comes from, or
of one of --allow-host; to others nothing is sent.

With --context the store is served to others at /context, as by hhfr context serve: shapes, sessions,
all that it has.

The ranges of /geoip are, unless --geoip names others, ` + peer.DutchRangesOrigin + `.

--misbehave makes a bad server, to test clients with:

` + misbehaviors(),
		Example: `  hhfr serve
  hhfr serve --listen 127.0.0.1:0 -o json
  hhfr serve --store ./store --record session.pcapng
  hhfr serve --store bolt:store.db --soap-rm all
  hhfr serve --store bolt:store.db --misbehave close-after=10
  hhfr serve --listen 0.0.0.0:8443 --cert server.pem --key server.key --client-ca ca.pem --negotiate certificate
  hhfr serve --store bolt:server.db --tcp 127.0.0.1:9090 --udp none`,
		Args: takes(),
		RunE: func(c *cobra.Command, _ []string) error { return runServe(c.Context(), env, g, o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address for everything; port 0 takes a free one")
	f.StringVar(&o.tcp, "tcp", "", "another address for streams over TCP, in TLS with --cert; none: no such streams")
	f.StringVar(&o.udp, "udp", "", "another address for streams over UDP; none: no such streams")
	o.own.flags(f)
	contextFlag(f, &o.context)
	f.StringVar(&o.soapRM, "soap-rm", "", "take sequences of WS-ReliableMessaging in plain SOAP: 1.0, 1.1, 1.2 or all")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"HOST or HOST:PORT, besides the host of the client, to which --soap-rm may send replies; may be given again")
	f.StringVar(&o.advertise, "advertise", "",
		"host that answers name for streams, if it is not that of the URL")
	g.writtenStoreFlags(f, &o.store, "mem:", "context store: ")
	o.common.flags(f, false)
	o.record.flags(f, "write all traffic to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	metricsFlag(f, &o.metrics)
	f.StringVar(&o.geoip, "geoip", "", "file with the ranges of /geoip: one a line, ADDRESS/LENGTH, "+
		"FIRST-LAST or ADDRESS")
	forms, _ := peer.Misbehaviors()
	f.StringVar(&o.misbehave, "misbehave", "", "do wrong: "+strings.Join(forms, ", "))
	outputFlag(c, &o.output, "text", "json")
	return c
}

// misbehaviors is a table for the help text.
func misbehaviors() string {
	var b strings.Builder
	forms, does := peer.Misbehaviors()
	for i, form := range forms {
		fmt.Fprintf(&b, "  %-15s %s\n", form, does[i])
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func runServe(ctx context.Context, env Env, g *global, o *serveOptions) (err error) {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	ranges, err := o.ranges()
	if err != nil {
		return err
	}
	s, err := openServer(ctx, env, g, &o.serverOptions, serverKind{
		addresses: []string{o.listen, o.tcp},
		bind:      func(ctx context.Context, s *openedServer) error { return o.bind(ctx, s, &cfg) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := o.complete(&cfg, g, s, ranges); err != nil {
		return err
	}
	running, err := peer.Start(cfg)
	if err != nil {
		return err
	}
	defer cfg.CallbackClient.CloseIdleConnections() // while it is recorded
	if err := announce(env, o, running, s.seen, cfg.Services); err != nil {
		return errors.Join(err, running.Close())
	}
	s.hangups.call(s.manager.reloads(s.access.reloads(g)))
	if err := s.manager.ready(fmt.Sprintf("services %s://%s", o.own.scheme(), cfg.HTTP.Addr())); err != nil {
		return errors.Join(err, running.Close())
	}
	select {
	case <-ctx.Done():
		s.seen.ending()
		s.manager.stopping()
		g.note("shutting down")
	case err = <-running.Failed():
	}
	return errors.Join(err, running.Close())
}

// config is what the flags say that needs nothing open.
func (o *serveOptions) config() (cfg peer.Config, err error) {
	switch {
	case o.sync > 1<<20:
		return cfg, usage(errors.New("--sync is at most 1MiB"), "")
	case o.flushDelay < 0:
		return cfg, usage(errNegativeFlushDelay, "")
	case len(o.allowHost) > 0 && o.soapRM == "":
		return cfg, usage(errors.New("--allow-host goes with --soap-rm"), "")
	}
	if err := checkHost("--advertise", o.advertise); err != nil {
		return cfg, err
	}
	cfg = peer.Config{
		PlainOnly: o.tcp != "", Advertise: o.advertise, Callbacks: o.allowHost, Archive: o.common.archive,
		Stream: streamer.Config{SyncBytes: int64(o.sync), FlushDelay: o.flushDelay},
	}
	if cfg.Misbehave, err = peer.ParseMisbehavior(o.misbehave); err != nil {
		return cfg, usage(fmt.Errorf("--misbehave: %w", err), "hhfr serve --help lists them")
	}
	cfg.Reliable, err = reliableVersions(o.soapRM)
	return cfg, err
}

// complete adds to the configuration what is open.
func (o *serveOptions) complete(cfg *peer.Config, g *global, s *openedServer, ranges *peer.Ranges) (err error) {
	if cfg.Services, err = o.services(ranges, s.store, s.contexts); err != nil {
		return err
	}
	if cfg.CallbackClient, err = callbackClient(g.system, s.recording); err != nil {
		return err
	}
	cfg.TLS, cfg.Admit = s.secure, s.access.admitSession
	cfg.Store, cfg.Common, cfg.Meter = s.store, s.common, s.seen.Meter
	cfg.HTTP = s.manager.watched(cfg.HTTP)
	cfg.Log = g.logger()
	checkDescriptors(cfg.Log, 2*peer.DefaultMaxConns) // HTTP, and as many streams
	book := binary.NewBook(ctxstore.Shapes{Store: s.store})
	book.Log = cfg.Log
	cfg.Coders = coders.OfBook(book)
	cfg.WrapConn, cfg.OnSession = s.recording.accepted(), s.recording.facts
	return nil
}

// bind opens the listeners.
func (o *serveOptions) bind(ctx context.Context, s *openedServer, cfg *peer.Config) (err error) {
	cfg.Streams = map[string]net.Listener{}
	var datagrams net.Listener
	if o.udp == "" && s.secure == nil {
		cfg.HTTP, datagrams, err = listenSame(ctx, o.listen)
	} else {
		cfg.HTTP, err = listen(ctx, "--listen", o.listen, tcp.Transport{}.Listen)
	}
	if cfg.HTTP, err = s.listen(cfg.HTTP, err); err != nil {
		return err
	}
	if datagrams == nil && o.udp != "" && o.udp != noAddress {
		if datagrams, err = listen(ctx, "--udp", o.udp, udp.Transport{}.Listen); err != nil {
			return err
		}
	}
	if datagrams != nil {
		cfg.Streams["udp"], _ = s.listen(datagrams, nil)
	}
	l, err := s.listen(listenStreams(ctx, o.tcp, s.secure))
	if err != nil {
		return err
	}
	if l != nil && s.secure != nil {
		cfg.Streams["tls"] = l
	} else if l != nil {
		cfg.Streams["tcp"] = l
	}
	return nil
}

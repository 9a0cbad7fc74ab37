package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

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
	listen, tcp, udp, store, advertise, geoip, misbehave, context, metrics, output string
	soapRM                                                                         string
	allowHost                                                                      []string
	record                                                                         recordOptions
	sync                                                                           size
	flushDelay                                                                     time.Duration
	tls                                                                            serverTLS
	common                                                                         commonOptions
}

func newServe(env Env, g *global) *cobra.Command {
	o := serveOptions{sync: 1 << 20}
	c := &cobra.Command{
		Use:   "serve",
		Short: "A test peer: its services answer plain SOAP and hhfr alike",
		Long: `serve offers test services over plain SOAP in HTTP and over hhfr streams, and prints
the URL of each, and a curl line that calls it.
All of it is at one address, --listen: plain SOAP, negotiation, streams over TCP, and streams over
UDP at the same port number. With --cert and --key the address takes TLS only, https as well as
streams; streams over UDP, which are cleartext, are then accepted only at the address of
--udp. --tcp and --udp name other addresses for streams, or none.
Ctrl-C (exit code 130) or SIGTERM (0) ends it after what is in progress; SIGHUP does not.

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
	o.tls.flags(f)
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

func runServe(ctx context.Context, env Env, g *global, o serveOptions) (err error) {
	manager, err := newBackground(g.logger())
	if err != nil {
		return err
	}
	defer manager.stopping()
	defer onHangup(g.logger(), manager.reloads(nil))()
	if o.sync > 1<<20 {
		return usage(errors.New("--sync is at most 1MiB"), "")
	}
	if o.flushDelay < 0 {
		return usage(errNegativeFlushDelay, "")
	}
	if err := checkHost("--advertise", o.advertise); err != nil {
		return err
	}
	seen, err := countersOf(ctx, env, g, o.metrics, false, o.listen, o.tcp)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, seen.close()) }()
	misbehave, err := peer.ParseMisbehavior(o.misbehave)
	if err != nil {
		return usage(fmt.Errorf("--misbehave: %w", err), "hhfr serve --help lists them")
	}
	ranges, err := o.ranges()
	if err != nil {
		return err
	}
	keys, err := keyLog()
	if err != nil {
		return err
	}
	defer func() { _ = keys.Close() }() // nil is allowed
	cfg := peer.Config{PlainOnly: o.tcp != "", Advertise: o.advertise, Misbehave: misbehave, Meter: seen.Meter}
	if cfg.Reliable, err = reliableVersions(o.soapRM); err != nil {
		return err
	}
	if cfg.Callbacks = o.allowHost; len(o.allowHost) > 0 && o.soapRM == "" {
		return usage(errors.New("--allow-host goes with --soap-rm"), "")
	}
	if cfg.TLS, err = o.tls.open(keys); err != nil {
		return err
	}
	if cfg.Admit, err = o.tls.admit(); err != nil {
		return err
	}
	if cfg.Store, err = g.openStore(ctx, o.store); err != nil {
		return err
	}
	defer func() { _ = cfg.Store.Close() }()
	var closeCommon func()
	if cfg.Common, closeCommon, err = o.common.open(ctx, g); err != nil {
		return err
	}
	defer closeCommon()
	cfg.Archive = o.common.archive
	contexts, err := contextAt(o.context, &o.tls, cfg.Store, g)
	if err != nil {
		return err
	}
	if cfg.Services, err = o.services(ranges, cfg.Store, contexts); err != nil {
		return err
	}
	if err := o.listeners(ctx, &cfg); err != nil {
		return err
	}
	cfg.HTTP = manager.watched(cfg.HTTP)
	// after the ports are bound: a port in use must not cost an older recording
	rec, err := o.record.open(cfg.Store, g.logger())
	if err != nil {
		return errors.Join(err, closeAll(&cfg))
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	if cfg.CallbackClient, err = callbackClient(g.system, rec); err != nil {
		return errors.Join(err, closeAll(&cfg))
	}
	defer cfg.CallbackClient.CloseIdleConnections() // while it is recorded
	server, err := startServer(g, o, rec, cfg)
	if err != nil {
		return err
	}
	if err := announce(env, o, server, seen, cfg.Services); err != nil {
		return errors.Join(err, server.Close())
	}
	if err := manager.ready(fmt.Sprintf("services %s://%s", o.tls.scheme(), cfg.HTTP.Addr())); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case <-ctx.Done():
		seen.ending()
		manager.stopping()
		g.note("shutting down")
	case err = <-server.Failed():
	}
	return errors.Join(err, server.Close())
}

// listeners binds the ports.
func (o *serveOptions) listeners(ctx context.Context, cfg *peer.Config) (err error) {
	cfg.Streams = map[string]net.Listener{}
	var datagrams net.Listener
	if o.udp == "" && cfg.TLS == nil {
		cfg.HTTP, datagrams, err = listenSame(ctx, o.listen)
	} else {
		cfg.HTTP, err = listen(ctx, "--listen", o.listen, tcp.Transport{}.Listen)
	}
	if err != nil {
		return err
	}
	if datagrams == nil && o.udp != "" && o.udp != noAddress {
		if datagrams, err = listen(ctx, "--udp", o.udp, udp.Transport{}.Listen); err != nil {
			return errors.Join(err, closeAll(cfg))
		}
	}
	if datagrams != nil {
		cfg.Streams["udp"] = datagrams
	}
	l, err := listenStreams(ctx, o.tcp, cfg.TLS)
	if err != nil {
		return errors.Join(err, closeAll(cfg))
	}
	if l != nil && cfg.TLS != nil {
		cfg.Streams["tls"] = l
	} else if l != nil {
		cfg.Streams["tcp"] = l
	}
	return nil
}

func closeAll(cfg *peer.Config) error {
	err := cfg.HTTP.Close()
	for _, l := range cfg.Streams {
		err = errors.Join(err, l.Close())
	}
	return err
}

func startServer(g *global, o serveOptions, rec *recording, cfg peer.Config) (*peer.Server, error) {
	cfg.Log = g.logger()
	checkDescriptors(cfg.Log, 2*peer.DefaultMaxConns) // HTTP, and as many streams
	book := binary.NewBook(ctxstore.Shapes{Store: cfg.Store})
	book.Log = cfg.Log
	cfg.Coders = coders.OfBook(book)
	cfg.Stream = streamer.Config{SyncBytes: int64(o.sync), FlushDelay: o.flushDelay}
	cfg.WrapConn, cfg.OnSession = rec.accepted(), rec.facts
	return peer.Start(cfg)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

type serveOptions struct {
	listen, tcp, udp, store, record, advertise, geoip, misbehave, output string
	sync                                                                 size
	tls                                                                  serverTLS
}

func newServe(env Env, g *global) *cobra.Command {
	o := serveOptions{sync: 64 << 10}
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

Services (all but the first have a description at URL?wsdl):

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

The ranges of /geoip are, unless --geoip names others, ` + peer.DutchRangesOrigin + `.

--misbehave makes a bad server, to test clients with:

` + misbehaviors(),
		Example: `  hhfr serve
  hhfr serve --listen 127.0.0.1:0 -o json
  hhfr serve --store ./store --record session.pcapng
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
	f.StringVar(&o.advertise, "advertise", "",
		"host that answers name for streams, if it is not that of the URL")
	f.StringVar(&o.store, "store", "mem:", "context store: "+strings.Join(engines.Forms(), " or "))
	f.StringVar(&o.record, "record", "", "write all traffic to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 64KiB")
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
	defer outliveTerminal(g.logger())()
	if o.sync > 64<<10 {
		return usage(errors.New("--sync is at most 64KiB"), "")
	}
	if err := checkHost("--advertise", o.advertise); err != nil {
		return err
	}
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
	cfg := peer.Config{PlainOnly: o.tcp != "", Advertise: o.advertise, Misbehave: misbehave}
	if cfg.TLS, err = o.tls.open(keys); err != nil {
		return err
	}
	if cfg.Admit, err = o.tls.admit(); err != nil {
		return err
	}
	if cfg.Store, err = openStore(ctx, o.store, g.logger()); err != nil {
		return err
	}
	defer func() { _ = cfg.Store.Close() }()
	if cfg.Services, err = o.services(ranges, cfg.Store); err != nil {
		return err
	}
	if err := o.listeners(ctx, &cfg); err != nil {
		return err
	}
	rec, err := openRecording(o.record) // after the ports are bound: a port in use must not cost an older recording
	if err != nil {
		return errors.Join(err, closeAll(&cfg))
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	server, err := startServer(g, o, rec, cfg)
	if err != nil {
		return err
	}
	if err := announce(env, o, server, cfg.Services); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case <-ctx.Done():
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
	book := binary.NewBook(ctxstore.Shapes{Store: cfg.Store})
	book.Log = cfg.Log
	cfg.Coders, cfg.Stream = coders.OfBook(book), streamer.Config{SyncBytes: int64(o.sync)}
	cfg.WrapConn, cfg.OnSession = rec.accepted(), rec.facts
	return peer.Start(cfg)
}

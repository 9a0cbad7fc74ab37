package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/pkg/codec/binary"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/engines"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/peer"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

type serveOptions struct {
	listen, tcp, udp, store, record, advertise, geoip, misbehave, output string
	sync                                                                 size
}

func newServe(env Env, g *global) *cobra.Command {
	o := serveOptions{sync: 64 << 10}
	c := &cobra.Command{
		Use:   "serve",
		Short: "A test peer: its services answer plain SOAP and hhfr alike",
		Long: `serve offers test services over plain SOAP in HTTP and over hhfr streams, and prints for each its URL and a curl line. Streams are accepted on a
port of their own, which the negotiation's answer names. Ctrl-C (exit code 130) or SIGTERM (0) ends it after what is
under way; SIGHUP does not.

Services, each with its description at URL?wsdl but for the first:

  /echo     gives back the body it got
  /concat   joins strings
  /sum      adds numbers
  /records  gives back records of a string, an int and a boolean
  /geoip    tells whether an IPv4 address lies in a list of ranges
  /blob     gives random octets, as many as asked for
  /ticker   sends a message a second to each session, unasked; in plain SOAP it answers with the next one
  /ledger   keeps entries: add appends one, read gives them; what comes under an assurance is appended in the transaction of its message

They read SOAP 1.1 and 1.2 in UTF-8, UTF-16 and ISO-8859-1, also in gzip, and answer in UTF-8.

Clients may ask for messages in order, at-least-once, and exactly-once if --store persists: it keeps this end of their sequences. A server that was killed and is started again with the same store goes on with them.

The ranges of /geoip are, unless --geoip names others, ` + peer.DutchRangesOrigin + `.

--misbehave makes a bad server, to test clients with:

` + misbehaviors(),
		Example: `  hhfr serve
  hhfr serve --listen 127.0.0.1:0 --tcp 127.0.0.1:0 -o json
  hhfr serve --store ./store --record session.pcapng
  hhfr serve --store bolt:store.db --misbehave close-after=10
  hhfr serve --store bolt:server.db --udp 127.0.0.1:9090`,
		Args: takes(),
		RunE: func(c *cobra.Command, _ []string) error { return runServe(c.Context(), env, g, o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address of plain SOAP and negotiation; port 0 takes a free one")
	f.StringVar(&o.tcp, "tcp", "127.0.0.1:9090", "address of streams; port 0 takes a free one; empty: none")
	f.StringVar(&o.udp, "udp", "", "address of streams over UDP; port 0 takes a free one; empty: none")
	f.StringVar(&o.advertise, "advertise", "", "host that answers name for streams, where it is another than that of the URL")
	f.StringVar(&o.store, "store", "mem:", "context store: "+strings.Join(engines.Forms(), " or "))
	f.StringVar(&o.record, "record", "", "write all traffic to this pcapng file")
	f.Var(&o.sync, "sync", "a sync frame at least every so many octets, up to 64KiB")
	f.StringVar(&o.geoip, "geoip", "", "file with the ranges of /geoip: one a line, ADDRESS/LENGTH, FIRST-LAST or ADDRESS")
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
	store, err := openStore(ctx, o.store, g.logger())
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	services, err := o.services(ranges, store)
	if err != nil {
		return err
	}
	plain, streams, err := o.listeners(ctx)
	if err != nil {
		return err
	}
	rec, err := openRecording(o.record) // behind the ports: one that is in use must not cost an older recording
	if err != nil {
		return errors.Join(err, closeAll(plain, streams))
	}
	defer func() { err = errors.Join(err, rec.close()) }()
	server, err := startServer(g, o, store, rec, plain, streams, services, misbehave)
	if err != nil {
		return err
	}
	if err := announce(env, o, server, services); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case <-ctx.Done():
		g.note("ending")
	case err = <-server.Failed():
	}
	return errors.Join(err, server.Close())
}

// listeners binds the ports.
func (o *serveOptions) listeners(ctx context.Context) (plain net.Listener, streams map[string]net.Listener, err error) {
	plain, err = listen(ctx, "--listen", o.listen, func(ctx context.Context, addr string) (net.Listener, error) {
		var c net.ListenConfig
		return c.Listen(ctx, "tcp", addr)
	})
	if err != nil {
		return nil, nil, err
	}
	streams = map[string]net.Listener{}
	for _, t := range []struct {
		name, addr string
		transport  streamer.Transport
	}{{"tcp", o.tcp, tcp.Transport{}}, {"udp", o.udp, udp.Transport{}}} {
		if t.addr == "" {
			continue
		}
		l, err := listen(ctx, "--"+t.name, t.addr, t.transport.Listen)
		if err != nil {
			return nil, nil, errors.Join(err, closeAll(plain, streams))
		}
		streams[t.name] = l
	}
	return plain, streams, nil
}

func closeAll(plain net.Listener, streams map[string]net.Listener) error {
	err := plain.Close()
	for _, l := range streams {
		err = errors.Join(err, l.Close())
	}
	return err
}

func startServer(g *global, o serveOptions, store ctxstore.Store, rec *recording, plain net.Listener, streams map[string]net.Listener, services *peer.Services, misbehave peer.Misbehavior) (*peer.Server, error) {
	log := g.logger()
	book := binary.NewBook(ctxstore.Shapes{Store: store})
	book.Log = log
	return peer.Start(peer.Config{
		HTTP: rec.listener(plain), Streams: streams, Advertise: o.advertise, Services: services, Store: store, Coders: negotiate.BookCoders(book),
		Stream: streamer.Config{SyncBytes: int64(o.sync)}, WrapConn: rec.accepted(), OnSession: rec.facts, Misbehave: misbehave, Log: log,
	})
}

// listen opens a listener and names the flag when that fails.
func listen(ctx context.Context, flag, addr string, open func(context.Context, string) (net.Listener, error)) (net.Listener, error) {
	l, err := open(ctx, addr)
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &problem{exitFailed, fmt.Errorf("%s %s: the port is in use", flag, addr), "choose another with " + flag + " 127.0.0.1:PORT; port 0 takes a free one"}
	case errors.Is(err, syscall.EACCES):
		return nil, &problem{exitFailed, fmt.Errorf("%s %s: no permission for that port", flag, addr), "ports below 1024 are for root; choose another with " + flag}
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, &problem{exitFailed, fmt.Errorf("%s %s: that address is not one of this machine", flag, addr), "127.0.0.1 is this machine alone, 0.0.0.0 all its networks"}
	}
	return nil, usage(fmt.Errorf("%s %s: %w", flag, addr, err), flag+" takes HOST:PORT")
}

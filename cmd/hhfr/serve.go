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
	maxPerPeer                    int
}

func newServe(env Env, g *global) *cobra.Command {
	o := &serveOptions{}
	o.sync = 1 << 20
	c := &cobra.Command{
		Use:     "serve",
		Short:   "A test peer: its services answer plain SOAP and hhfr alike",
		Long:    serveHelp,
		Example: serveExamples,
		Args:    takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return runServe(c.Context(), env, g, o) },
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
	o.store.serverFlags(f)
	o.common.flags(f, false)
	o.record.flags(f, "write all traffic to this pcapng file")
	f.Var(&o.sync, "sync", "maximum bytes between sync frames, up to 1MiB; from 64KiB on a cheap one is sent")
	flushDelayFlag(f, &o.flushDelay)
	o.calls.flags(f)
	o.metrics.flags(f)
	f.IntVar(&o.maxPerPeer, "max-per-peer", peer.DefaultMaxConns/2, maxPerPeerUsage)
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
		command: "serve", addresses: []string{o.listen, o.tcp},
		bind: func(ctx context.Context, s *openedServer) error { return o.bind(ctx, s, &cfg) },
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
	if err := announce(env, o, running, s, cfg.Services); err != nil {
		return errors.Join(err, running.Close())
	}
	s.hangups.call(s.manager.reloads(s.calls.reloads(s.access.reloads(g))))
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
	case o.maxPerPeer < 1:
		return cfg, usage(errMaxPerPeer, "")
	case len(o.allowHost) > 0 && o.soapRM == "":
		return cfg, usage(errors.New("--allow-host goes with --soap-rm"), "")
	}
	if err := checkHost("--advertise", o.advertise); err != nil {
		return cfg, err
	}
	cfg = peer.Config{
		PlainOnly: o.tcp != "", Advertise: o.advertise, Callbacks: o.allowHost, Archive: o.common.archive,
		Stream: streamer.Config{SyncBytes: int64(o.sync), FlushDelay: o.flushDelay},
		Limits: peer.Limits{MaxPerPeer: o.maxPerPeer},
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

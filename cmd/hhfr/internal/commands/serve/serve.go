// Package serve is hhfr serve.
package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/mocked"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/internal/peer"
)

type serveOptions struct {
	server.ServerOptions
	mock                          mocked.MockOptions
	udp, geoip, misbehave, soapRM string
	allowHost, queues             []string
	maxPerPeer                    int
	exactlyOnce                   bool
	work                          peer.Work
}

// New is the command.
func New(g *command.Global) *cobra.Command {
	o := &serveOptions{}
	c := &cobra.Command{
		Use:     "serve",
		Short:   "A test peer: its services answer plain SOAP and hhfr alike",
		Long:    serveHelp,
		Example: serveExamples,
		Args:    command.Takes(),
		RunE:    func(c *cobra.Command, _ []string) error { return runServe(c.Context(), g, o) },
	}
	f := c.Flags()
	f.StringVar(&o.udp, "udp", "", "another address for streams over UDP; none: no such streams")
	o.Flags(f, "127.0.0.1:8080", false)
	f.StringVar(&o.soapRM, "soap-rm", "", "take sequences of WS-ReliableMessaging in plain SOAP: 1.0, 1.1, 1.2 or all")
	f.StringArrayVar(&o.allowHost, "allow-host", nil,
		"HOST or HOST:PORT, besides the host of the client, to which --soap-rm may send replies; may be given again")
	o.Record.Flags(f, "write all traffic to this pcapng file")
	queues.ServeFlag(f, &o.queues)
	f.BoolVar(&o.exactlyOnce, "exactly-once", false, "handle each request of --queue once, by what --store remembers "+
		"of them, also if other servers at the queue have it")
	flags.MaxPerPeer(f, &o.maxPerPeer, peer.DefaultMaxConns/2, "")
	f.StringVar(&o.geoip, "geoip", "", "file with the ranges of /geoip: one a line, ADDRESS/LENGTH, "+
		"FIRST-LAST or ADDRESS")
	forms, _ := peer.Misbehaviors()
	f.StringVar(&o.misbehave, "misbehave", "", "do wrong: "+strings.Join(forms, ", "))
	f.IntVar(&o.work.Workers, "workers", 0, fmt.Sprintf("requests processed at once; %d more for each wait, others "+
		"are refused (status 503); 0: all", peer.QueuePerWorker))
	f.DurationVar(&o.work.Time, "service-time", 0, "time that each request takes, beside what its service does")
	f.BoolVar(&o.work.Tells, "server-timing", false, "say in each reply how long its service worked, for bench load: "+
		"Server-Timing: app;dur=MS")
	o.mock.Flags(f)
	command.OutputFlag(c, &o.Output)
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

func runServe(ctx context.Context, g *command.Global, o *serveOptions) (err error) {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	ranges, err := o.ranges()
	if err != nil {
		return err
	}
	s, err := server.Open(ctx, g, &o.ServerOptions, server.ServerKind{
		Command: "serve", Addresses: []string{o.Listen, o.TCP}, Conns: 2 * peer.DefaultMaxConns, // HTTP, and streams
		Bind: func(ctx context.Context, s *server.OpenedServer) error { return o.bind(ctx, s, &cfg) },
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := o.complete(ctx, &cfg, g, s, ranges); err != nil {
		return err
	}
	running, err := peer.Start(cfg)
	if err != nil {
		return err
	}
	defer cfg.CallbackClient.CloseIdleConnections() // while it is recorded
	consumers, err := o.consume(ctx, g, s, running)
	if err != nil {
		return errors.Join(err, running.Close())
	}
	defer consumers.Close()
	if err := announce(g, o, running, s, cfg.Services); err != nil {
		return errors.Join(err, running.Close())
	}
	s.Hangups.Call(s.Manager.Reloads(s.Calls.Reloads(s.Access.Reloads(g))))
	if err := s.Manager.Ready(fmt.Sprintf("services %s://%s", o.Own.Scheme(), cfg.HTTP.Addr())); err != nil {
		return errors.Join(err, running.Close())
	}
	select {
	case <-ctx.Done():
		s.Seen.Ending()
		s.Manager.Stopping()
		g.Note("shutting down")
	case err = <-running.Failed():
	}
	consumers.Close() // while what they call is there
	return errors.Join(err, running.Close())
}

// config is what the flags say that needs nothing open.
func (o *serveOptions) config() (cfg peer.Config, err error) {
	switch {
	case o.Sync > 1<<20:
		return cfg, exit.Usagef("", "--sync is at most 1MiB")
	case o.FlushDelay < 0:
		return cfg, exit.Usage(flags.ErrNegativeFlushDelay, "")
	case o.maxPerPeer < 1:
		return cfg, exit.Usage(flags.ErrMaxPerPeer, "")
	case o.work.Workers < 0 || o.work.Time < 0:
		return cfg, exit.Usagef("", "--workers and --service-time cannot be below 0")
	case len(o.allowHost) > 0 && o.soapRM == "":
		return cfg, exit.Usagef("", "--allow-host goes with --soap-rm")
	}
	if err := cmp.Or(o.mock.Check(), queues.CheckOnce(o.exactlyOnce, o.queues, o.Store.Spec),
		command.CheckHost("--advertise", o.Advertise)); err != nil {
		return cfg, err
	}
	cfg = peer.Config{
		PlainOnly: o.TCP != "", Advertise: o.Advertise, Callbacks: o.allowHost, Archive: o.Common.Archive,
		Stream: o.Stream(),
		Limits: peer.Limits{MaxPerPeer: o.maxPerPeer, Work: o.work},
	}
	if cfg.Misbehave, err = peer.ParseMisbehavior(o.misbehave); err != nil {
		return cfg, exit.Usagef("hhfr serve --help lists them", "--misbehave: %w", err)
	}
	cfg.Reliable, err = flags.ReliableVersions(o.soapRM)
	return cfg, err
}

// complete adds to the configuration what is open.
func (o *serveOptions) complete(ctx context.Context, cfg *peer.Config, g *command.Global, s *server.OpenedServer,
	ranges *peer.Ranges) (err error) {
	if cfg.Services, err = o.services(ctx, g, ranges, s); err != nil {
		return err
	}
	cfg.Services = cfg.Services.AtQueues(queues.Names(o.queues))
	if cfg.CallbackClient, err = callbackClient(g.System, s.Recording); err != nil {
		return err
	}
	cfg.TLS, cfg.Admit = s.Secure, s.Access.AdmitSession
	cfg.Store, cfg.Common, cfg.Meter = s.Store, s.Common, s.Seen.Meter
	cfg.HTTP = s.Manager.Watched(cfg.HTTP)
	cfg.Log = g.Logger()
	cfg.Coders, cfg.WrapConn, cfg.OnSession = s.Coders(), s.Recording.Accepted(), s.Recording.Facts
	return nil
}

// bind opens the listeners.
func (o *serveOptions) bind(ctx context.Context, s *server.OpenedServer, cfg *peer.Config) (err error) {
	cfg.Streams = map[string]net.Listener{}
	var datagrams net.Listener
	if o.udp == "" && s.Secure == nil {
		cfg.HTTP, datagrams, err = listen.Same(ctx, o.Listen)
	} else {
		cfg.HTTP, err = listen.At(ctx, "--listen", o.Listen)
	}
	if cfg.HTTP, err = s.Keep(cfg.HTTP, err); err != nil {
		return err
	}
	if datagrams == nil {
		if datagrams, err = listen.Datagrams(ctx, o.udp); err != nil {
			return err
		}
	}
	if datagrams != nil {
		cfg.Streams["udp"], _ = s.Keep(datagrams, nil)
	}
	l, err := s.Keep(listen.Streams(ctx, o.TCP, s.Secure))
	if err != nil {
		return err
	}
	if l != nil && s.Secure != nil {
		cfg.Streams["tls"] = l
	} else if l != nil {
		cfg.Streams["tcp"] = l
	}
	return nil
}

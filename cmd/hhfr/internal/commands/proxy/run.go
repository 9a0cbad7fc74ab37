package proxy

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/routes"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/proxy"
)

func runProxy(c *cobra.Command, g *command.Global, o *proxyOptions) (err error) {
	if err := o.readRoutes(c); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx := c.Context()
	if o.checks {
		return o.checkOnly(ctx, g)
	}
	described, err := description.Read(ctx, g, o.schema)
	if err != nil {
		return err
	}
	var bound proxyListeners
	var known *routes.KnownUpstreams
	var all []proxy.Route
	s, err := server.Open(ctx, g, &o.ServerOptions, server.ServerKind{
		Command: "proxy", Live: true, Addresses: o.addresses(), Frugal: true, Without: uint64(o.without),
		Conns: 3 * o.maxConns, // of clients, of streams, and of upstreams
		Bind: func(ctx context.Context, s *server.OpenedServer) (err error) {
			none := &routes.KnownUpstreams{System: g.System, Keys: s.Keys, Half: half(c.Flags())}
			if all, known, err = o.Open(none); err != nil {
				return err
			}
			return bound.bind(ctx, s, o, all)
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	cfg := o.config(g, s, &bound, described)
	cfg.Routes = all
	hop, dial := o.fastInfoset.Hop(g)
	if cfg.Dial = dial; hop != nil {
		defer func() { err = errors.Join(err, hop.Close()) }()
	}
	p, err := proxy.Start(cfg)
	if err != nil {
		return err
	}
	if err := o.announce(g, p, s); err != nil {
		return errors.Join(err, p.Close())
	}
	reload := &proxyReload{
		proxyOptions: o, c: c, g: g, access: s.Access, proxy: p, known: known, routes: all,
	}
	s.Hangups.Call(s.Manager.Reloads(s.Calls.Reloads(reload.call())))
	if err := s.Manager.Ready(o.status(p.Addrs())); err != nil {
		return errors.Join(err, p.Close())
	}
	err = o.untilDone(ctx, g, s, p)
	if n := s.Book.Drifted(); n > 0 {
		g.Note("%s not as described; hhfr schema check says where", printing.Count(n, "message"))
	}
	return errors.Join(err, p.Close())
}

// half is a flag that says that a proxy is half of a pair; empty: none does.
func half(f *pflag.FlagSet) string {
	for _, name := range []string{"store", "schema", "record"} {
		if flag := f.Lookup(name); flag.Changed && flag.Value.String() != stores.MemoryStore {
			return "--" + name
		}
	}
	return ""
}

// config is the configuration of a proxy with what is open.
func (o *proxyOptions) config(
	g *command.Global, s *server.OpenedServer, bound *proxyListeners, described description.DescribedMessages,
) proxy.Config {
	return proxy.Config{
		Listen: s.Manager.Watched(bound.main), ListenTLS: s.Secure, Streams: bound.streams,
		NearOnly: o.TCP == listen.None, Admit: s.Access.AdmitSession,
		Advertise: o.Advertise, ListenTo: bound.listenTo, Store: s.Store, Coders: s.Coders(),
		Times: proxy.Times{Timeout: o.timeout}, Stream: o.Stream(),
		Bounds:   proxy.Bounds{MaxConns: o.maxConns, MaxPerPeer: o.maxPerPeer, MaxBuffer: int(o.maxBuffer)},
		Contract: described.Contract, Schema: described.HHFR,
		Hooks: proxy.Hooks{WrapDialed: s.Recording.Dialed(), WrapAccepted: s.Recording.Accepted(),
			OnSession: s.Recording.Facts},
		Context: s.Contexts, Common: s.Common, Archive: o.Common.Archive,
		PlainOnly: o.transport == flags.PlainTransport,
		Meter:     s.Seen.Meter, Log: g.Logger(),
	}
}

// untilDone waits for the end of a proxy, and then for the calls in progress.
func (o *proxyOptions) untilDone(ctx context.Context, g *command.Global, s *server.OpenedServer, p *proxy.Proxy) error {
	select {
	case err := <-p.Failed():
		return err
	case <-ctx.Done():
	}
	s.Seen.Ending()
	s.Manager.Stopping()
	g.Note("shutting down after the calls in progress; a second signal ends at once")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.drain)
	defer cancel()
	p.Drain(last)
	return nil
}

// proxyListeners are those of a proxy, also of its routes: all are bound before it starts.
type proxyListeners struct {
	main, streams net.Listener // streams: at an address of their own; nil: at that of main
	mu            sync.Mutex
	routes        map[string]net.Listener // by address; those that the proxy has not taken yet
}

func (b *proxyListeners) bind(ctx context.Context, s *server.OpenedServer, o *proxyOptions,
	routes []proxy.Route) (err error) {
	if b.main, err = s.Keep(listen.At(ctx, "--listen", o.Listen)); err != nil {
		return err
	}
	if b.streams, err = s.Keep(listen.Streams(ctx, o.TCP, s.Secure)); err != nil {
		return err
	}
	b.routes = map[string]net.Listener{}
	for _, r := range routes {
		if r.Listen == "" || b.routes[r.Listen] != nil {
			continue
		}
		if b.routes[r.Listen], err = s.Keep(listenForRoute(ctx, r.Listen)); err != nil {
			return err
		}
	}
	return nil
}

// listenTo returns the listener of routes for the proxy, which closes it: the one that is bound, or
// after a reload another.
func (b *proxyListeners) listenTo(ctx context.Context, addr string) (net.Listener, error) {
	b.mu.Lock()
	l := b.routes[addr]
	delete(b.routes, addr)
	b.mu.Unlock()
	if l != nil {
		return l, nil
	}
	return listenForRoute(ctx, addr)
}

// listenForRoute opens a listener that routes name.
func listenForRoute(ctx context.Context, addr string) (net.Listener, error) {
	return listen.At(ctx, "listen", addr)
}

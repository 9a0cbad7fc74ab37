package main

import (
	"context"
	"errors"
	"net"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

func runProxy(c *cobra.Command, env Env, g *global, o *proxyOptions) (err error) {
	if err := o.readRoutes(c); err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	ctx := c.Context()
	if o.checks {
		return o.checkOnly(ctx, env, g)
	}
	described, err := readDescription(ctx, g, o.schema)
	if err != nil {
		return err
	}
	var bound proxyListeners
	var known *upstreams
	var routes []proxy.Route
	s, err := openServer(ctx, env, g, &o.serverOptions, serverKind{
		command: "proxy", live: true, addresses: o.addresses(),
		bind: func(ctx context.Context, s *openedServer) (err error) {
			none := &upstreams{system: env.System, keys: s.keys, half: half(c.Flags())}
			if routes, known, err = o.routes(none); err != nil {
				return err
			}
			return bound.bind(ctx, s, o, routes)
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer collect()()
	book := binary.NewBook(ctxstore.Shapes{Store: s.store})
	book.Log, book.Without = g.logger(), uint64(o.without)
	checkDescriptors(g.logger(), 3*o.maxConns) // of clients, of streams, and of upstreams
	p, err := proxy.Start(o.config(g, s, &bound, routes, book, described))
	if err != nil {
		return err
	}
	if err := o.announce(env, p, s); err != nil {
		return errors.Join(err, p.Close())
	}
	reload := &proxyReload{
		proxyOptions: o, c: c, g: g, access: s.access, proxy: p, known: known, routes: routes,
	}
	s.hangups.call(s.manager.reloads(s.calls.reloads(reload.call())))
	if err := s.manager.ready(o.status(p.Addrs())); err != nil {
		return errors.Join(err, p.Close())
	}
	err = o.untilDone(ctx, g, s, p)
	if n := book.Drifted(); n > 0 {
		g.note("%s not as described; hhfr schema check says where", count(n, "message"))
	}
	return errors.Join(err, p.Close())
}

// half is a flag that says that a proxy is half of a pair; empty: none does.
func half(f *pflag.FlagSet) string {
	for _, name := range []string{"store", "schema", "record"} {
		if flag := f.Lookup(name); flag.Changed && flag.Value.String() != memoryStore {
			return "--" + name
		}
	}
	return ""
}

// config is the configuration of a proxy with what is open.
func (o *proxyOptions) config(
	g *global, s *openedServer, bound *proxyListeners, routes []proxy.Route, book *binary.Book, described description,
) proxy.Config {
	return proxy.Config{
		Listen: s.manager.watched(bound.main), ListenTLS: s.secure, Streams: bound.streams,
		NearOnly: o.tcp == noAddress, Admit: s.access.admitSession,
		Advertise: o.advertise, Routes: routes, ListenTo: bound.listenTo, Store: s.store, Coders: coders.OfBook(book),
		Timeout: o.timeout, Stream: streamer.Config{SyncBytes: int64(o.sync), FlushDelay: o.flushDelay},
		MaxConns: o.maxConns, MaxPerPeer: o.maxPerPeer, MaxBuffer: int(o.maxBuffer),
		Contract: described.contract, Schema: described.hhfr,
		WrapDialed: s.recording.dialed(), WrapAccepted: s.recording.accepted(), OnSession: s.recording.facts,
		Context: s.contexts, Common: s.common, Archive: o.common.archive, PlainOnly: o.transport == plainTransport,
		Meter: s.seen.Meter, Log: g.logger(),
	}
}

// untilDone waits for the end of a proxy, and then for the calls in progress.
func (o *proxyOptions) untilDone(ctx context.Context, g *global, s *openedServer, p *proxy.Proxy) error {
	select {
	case err := <-p.Failed():
		return err
	case <-ctx.Done():
	}
	s.seen.ending()
	s.manager.stopping()
	g.note("shutting down after the calls in progress; a second signal ends at once")
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

func (b *proxyListeners) bind(ctx context.Context, s *openedServer, o *proxyOptions, routes []proxy.Route) (err error) {
	if b.main, err = s.listen(listen(ctx, "--listen", o.listen, tcp.Transport{}.Listen)); err != nil {
		return err
	}
	if b.streams, err = s.listen(listenStreams(ctx, o.tcp, s.secure)); err != nil {
		return err
	}
	b.routes = map[string]net.Listener{}
	for _, r := range routes {
		if r.Listen == "" || b.routes[r.Listen] != nil {
			continue
		}
		if b.routes[r.Listen], err = s.listen(listenForRoute(ctx, r.Listen)); err != nil {
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
	return listen(ctx, "listen", addr, tcp.Transport{}.Listen)
}

// Package proxy is the drop-in pair: two proxies with a thin link between them, in front of systems
// that nobody can change (docs/proxy.md). The near one takes HTTP connections of clients, agrees on
// a session with the far one at its upstream URL, and splits; the far one joins and forwards to its
// own upstream. Heads, bodies and what is no HTTP at all arrive as they left, byte for byte.
// Without agreement, connections are forwarded plainly.
//
// Every [Proxy] is both: far for a peer that asks it for a stream, near for what it sends upstream.
//
// From the lowest part up: what all share (core); how a message of HTTP travels (control,
// read_message, send_body, copy_message); a server, as connections to it are opened and counted;
// what goes to it plainly (plain_way), in sequences (in_sequence), and as the near end of a stream
// (near_way, link, caller); an upstream, which chooses among these; the far end of a stream, whose
// lanes lead to upstreams (far_stream, lane, relay); a front, by which all comes in; and the proxy.
package proxy

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Proxy runs until it is closed. All methods are safe for concurrent use.
type Proxy struct {
	*core
	contexts *contextServer
	table    atomic.Pointer[routeTable]
	close    sync.Once

	rerouting sync.Mutex
	closed    bool
}

// Start starts a proxy. On an error the listeners are closed. Errors: BadConfig, those of
// [responder.New], those of Config.ListenTo.
func Start(cfg Config) (*Proxy, error) {
	p, err := newProxy(cfg)
	if err != nil {
		for _, l := range []net.Listener{cfg.Listen, cfg.Streams} {
			if l != nil {
				_ = l.Close()
			}
		}
		return nil, err
	}
	return p, nil
}

func newProxy(cfg Config) (*Proxy, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	p := &Proxy{core: newCore(cfg)}
	p.contexts = p.newContexts(cfg.Context)
	main, err := p.newFront(cfg.Listen, cfg.Streams, p.contexts)
	if err == nil {
		p.table.Store(&routeTable{fronts: map[string]*front{"": main}})
		p.routed.Store(len(cfg.Routes) > 1 || cfg.Common != nil)
		err = p.reroute(p.ctx, cfg.Routes)
		main.begin() // clients may be there already: they find the routes
	}
	if err != nil {
		p.stop()
		if main != nil {
			_ = p.Close()
		}
		return nil, err
	}
	if p.contexts != nil {
		p.wait.Go(p.contexts.run)
	}
	return p, nil
}

// Failed delivers the error of each listener that failed while the proxy ran.
func (p *Proxy) Failed() <-chan error { return p.failed }

// Addrs are the addresses that listeners are bound to: "http", and for streams "tcp", or "tls" with
// ListenTLS; and those of routes, by [Route.Listen].
func (p *Proxy) Addrs() map[string]net.Addr {
	addrs := map[string]net.Addr{"http": p.cfg.Listen.Addr()}
	for name, f := range p.table.Load().fronts {
		if name != "" {
			addrs[name] = f.listen.Addr()
		} else if f.responder != nil {
			transport, addr := f.streamAddr()
			addrs[transport] = addr
		}
	}
	return addrs
}

// closeListeners stops accepting.
func (p *Proxy) closeListeners() {
	for _, f := range p.table.Load().fronts {
		f.end()
	}
}

// Linked waits for the offers in progress, if any. Then it returns nil if calls to all upstreams go
// over streams, otherwise why they do not. No call waits for that.
func (p *Proxy) Linked(ctx context.Context) error {
	for _, u := range p.table.Load().upstreams {
		if err := u.streams.links.Await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Drain accepts no further connection, refuses further calls, and waits until none is in progress,
// and none has come for a moment in which clients that are still connected may begin one. Then it
// ends their connections: who has sent something by then has a reply. When ctx has a deadline, and
// that is near, clients whose calls are in progress still are told so, unless they have a part of
// the reply. What is forwarded plainly without routes is not looked at: there a call is in progress
// until something has come back for what the client has sent, and that has paused.
func (p *Proxy) Drain(ctx context.Context) {
	all := ctx
	end, bounded := ctx.Deadline()
	if bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end.Add(-lastWord))
		defer cancel()
	}
	p.draining.Store(true)
	p.closeListeners()
	p.contexts.drain()
	if p.isStill(ctx) {
		p.clients.dismiss()
		p.contexts.dismiss()
	}
	for p.clients.any() && p.cfg.Clock.Sleep(ctx, drainStep) == nil {
	}
	if !bounded || !p.clients.any() {
		return
	}
	for _, u := range p.table.Load().upstreams {
		if l, _ := u.streams.links.Get(); l != nil {
			l.stream.Abort(streamer.CloseGoingAway, "the proxy ends")
		}
	}
	p.clients.abandon()
	p.giveUp()
	for p.clients.any() && p.cfg.Clock.Sleep(all, drainStep) == nil {
	}
}

// isStill waits until no call is in progress or begins; false: ctx was done before.
func (p *Proxy) isStill(ctx context.Context) bool {
	still, refused := p.cfg.Clock.Now(), int64(0)
	for {
		now := p.cfg.Clock.Now()
		// in this order: a call is in progress before what was read of it is taken
		busy := p.clients.ask() || p.calls.Load() > 0 || p.raw.areBusy(now)
		if n := p.refused.Load(); busy || n != refused {
			still, refused = now, n
		}
		if !busy && (now.Sub(still) >= callGap || p.conns.Len() == 0) {
			return true
		}
		if p.cfg.Clock.Sleep(ctx, drainStep) != nil {
			return false
		}
	}
}

// Close accepts nothing more, ends all connections and streams, and waits for all that the proxy
// started. It is idempotent.
func (p *Proxy) Close() error {
	p.close.Do(func() {
		p.rerouting.Lock()
		p.closed = true
		p.rerouting.Unlock()
		p.draining.Store(true)
		p.stop()
		t := p.table.Load()
		for _, f := range t.fronts {
			f.end()
		}
		p.contexts.close()
		for _, u := range t.upstreams {
			u.streams.links.Close()
			u.plain.close()
			u.sequences.close()
		}
		for _, f := range t.fronts {
			f.use.retire()
		}
		p.wait.Wait()
	})
	return nil
}

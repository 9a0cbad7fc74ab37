// Package queuelink is hhfr proxy with a queue as its link: what the near half takes is in the
// queue until the far half has it answered.
package queuelink

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/flags"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/queues"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/server"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
)

// LinkOptions are the flags of a proxy for a queue as its link.
type LinkOptions struct {
	from   []string
	to     queues.QueueOptions
	oneWay bool
}

// Flags declares them.
func (o *LinkOptions) Flags(f *pflag.FlagSet) {
	queues.ServeFlag(f, &o.from)
	o.to.Flag(f)
	flags.OneWay(f, &o.oneWay)
}

// Used reports whether the link is a queue: --upstream names one, or --queue does.
func (o *LinkOptions) Used(upstream string) bool {
	scheme, _, _ := strings.Cut(upstream, ":")
	return len(o.from) > 0 || strings.EqualFold(scheme, "jms")
}

// alike are the flags of a proxy that mean the same where the link is a queue.
var alike = map[string]bool{"listen": true, "cert": true, "key": true, "client-ca": true, "upstream": true,
	"upstream-cacert": true, "upstream-cert": true, "upstream-key": true, "upstream-insecure": true, "drain": true,
	"output": true, "broker": true, "queue": true, "one-way": true}

// CheckFlags refuses flags that have no meaning where the link is a queue; all are those of the
// command, and everywhere those of all commands.
func CheckFlags(all, everywhere *pflag.FlagSet) (err error) {
	all.Visit(func(f *pflag.Flag) {
		if !alike[f.Name] && !strings.HasPrefix(f.Name, "store") && everywhere.Lookup(f.Name) == nil && err == nil {
			err = exit.Usagef("hhfr proxy --help says which do", "--%s does not go with a queue as the link", f.Name)
		}
	})
	return err
}

// LinkHalf is what half of a pair is made of.
type LinkHalf struct {
	*LinkOptions
	Server   *server.ServerOptions
	Upstream string                      // --upstream
	TLS      func() (*tls.Config, error) // of connections to the upstream, or the broker
	Drain    time.Duration
	// Announce prints where calls come from and go to.
	Announce func(addrs map[string]string, store, to string) error
}

// Run runs half of a pair until the context is done.
func (p *LinkHalf) Run(ctx context.Context, g *command.Global) (err error) {
	half, near := p.far, len(p.from) == 0
	if near {
		half = p.near
		_, err = p.to.Parse(p.Upstream)
	} else {
		_, err = command.CheckURL("--upstream", p.Upstream)
	}
	if err != nil {
		return err
	}
	secure, err := p.TLS()
	if err != nil {
		return err
	}
	at := p.Server.Listen
	if !near {
		at = "127.0.0.1:0" // it listens nowhere, and has no store by that
	}
	p.Server.Listen = at
	var l net.Listener
	s, err := server.Open(ctx, g, p.Server, server.ServerKind{
		Command: "proxy", Addresses: []string{at}, Conns: 1024,
		Bind: func(ctx context.Context, s *server.OpenedServer) (err error) {
			if near {
				l, err = s.Keep(listen.At(ctx, "--listen", at))
			}
			return err
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	by := queues.QueueShapes{Named: p.Server.Store.Spec, Store: s.Store, Book: s.Book}
	return half(ctx, g, s, l, secure, by)
}

// near takes requests of HTTP, and puts them into the queue.
func (p *LinkHalf) near(ctx context.Context, g *command.Global, s *server.OpenedServer, l net.Listener,
	secure *tls.Config, by queues.QueueShapes) error {
	p.to.Paths = true
	to, err := p.to.Client(g, p.oneWay, secure, nil, by)
	if err != nil {
		return err
	}
	defer func() {
		_ = to.Close()
		queues.TellSaved(g, to.Saved())
	}()
	addr := l.Addr().String()
	if s.Secure != nil {
		l = tls.NewListener(l, s.Secure)
	}
	half := &nearHalf{to, g.Logger(), make(chan struct{}, mostLong)}
	clients := &http.Server{Handler: half, ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout: 10 * time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	failed := make(chan error, 1)
	go func() { failed <- clients.Serve(l) }()
	if err := p.ready(s, map[string]string{"http": addr}, p.Upstream); err != nil {
		return errors.Join(err, clients.Close())
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	s.Manager.Stopping()
	g.Note("shutting down after the calls in progress")
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.Drain)
	defer cancel()
	if clients.Shutdown(last) != nil {
		_ = clients.Close()
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// originIdle is how long a connection to an origin is open without a request: a request that an
// origin closes its connection under may have been handled, for all that the far half knows.
const originIdle = time.Second

func originTransport(secure *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig: secure, DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout: 30 * time.Second, DisableCompression: true, MaxIdleConnsPerHost: 64,
		IdleConnTimeout: originIdle,
	}
}

// far sends the requests of the queue to the upstream.
func (p *LinkHalf) far(ctx context.Context, g *command.Global, s *server.OpenedServer, _ net.Listener,
	secure *tls.Config, by queues.QueueShapes) error {
	origin, err := command.CheckURL("--upstream", p.Upstream)
	if err != nil {
		return err
	}
	roots, err := trust.TermuxRoots(g.System)
	if err != nil {
		return err
	}
	client := originTransport(secure)
	defer client.CloseIdleConnections()
	drained, cut := endsAfter(ctx, p.Drain)
	defer cut()
	half := &farHalf{origin: origin, client: client, log: g.Logger(), ends: ctx, cut: drained}
	consumers, err := queues.Consume(ctx, g, p.from, &tls.Config{RootCAs: roots},
		queues.Answering{Handler: half, Service: cmp.Or(origin.Path, "/"), Shapes: by})
	if err != nil {
		return err
	}
	defer consumers.Close()
	at := map[string]string{}
	for _, from := range p.from {
		if u, err := url.Parse(from); err == nil {
			at["queue "+strings.TrimPrefix(u.Path, "/")] = u.Host
		}
	}
	if err := p.ready(s, at, origin.Redacted()); err != nil {
		cut()
		return err
	}
	<-ctx.Done()
	s.Manager.Stopping()
	g.Note("shutting down after the calls in progress")
	return nil
}

// endsAfter is a context that ends so long after another one, and when end is called.
func endsAfter(ctx context.Context, drain time.Duration) (later context.Context, end context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(drain, cancel) })
	return later, func() {
		stop()
		cancel()
	}
}

func (p *LinkHalf) ready(s *server.OpenedServer, addrs map[string]string, to string) error {
	if err := p.Announce(addrs, s.StoreName, to); err != nil {
		return err
	}
	return s.Manager.Ready("upstream " + to)
}

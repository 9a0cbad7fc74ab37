package demo

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// ends are a server, and the store of the client that streams over the link to it.
type ends struct {
	server *site
	store  ctxstore.Store
}

// opener opens a path over the link.
type opener struct {
	tour  *tour
	line  *link.Link
	clock clock.Clock
	rec   *pcapng.Recorder

	ends    *ends
	session *session.Session
	// roundTrips is the number of round trips beside those of the messages.
	roundTrips int
	closers    []func() error // the last first
}

// patience bounds what takes time on a thin link, by its clock: the thinnest takes seconds for an
// offer.
const patience = time.Hour

func (o *opener) open(ctx context.Context, name string) (err error) {
	if o.ends, err = o.meet(ctx, name); err != nil {
		return err
	}
	url := o.ends.server.url(peer.EchoPath)
	switch name {
	case SOAP:
		o.roundTrips = 1 // the connection
		return o.plain(ctx, url, o.line.DialContext((&net.Dialer{}).DialContext))
	case Pair:
		o.roundTrips = 2 // connection, OPTIONS request
		if url, err = o.pair(ctx, url); err != nil {
			return err
		}
		return o.plain(ctx, url, (&net.Dialer{}).DialContext)
	case Again:
		o.roundTrips = 1
		return o.stream(ctx, url, negotiate.Met)
	default:
		o.roundTrips = 1
		return o.stream(ctx, url, negotiate.FirstCall)
	}
}

// meet returns the endpoints of a path: new ones, unless they should have met.
func (o *opener) meet(ctx context.Context, name string) (*ends, error) {
	if name == Again {
		return o.tour.met, nil
	}
	server, err := o.tour.newSite(ctx)
	if err != nil {
		return nil, err
	}
	e := &ends{server, newStore()}
	if name != Stream {
		o.closers = append(o.closers, server.stop)
		return e, nil
	}
	err = o.tour.part()
	o.tour.met = e
	return e, err
}

// part ends the server of the peers that met.
func (t *tour) part() error {
	if t.met == nil {
		return nil
	}
	return t.met.server.stop()
}

// close ends what was opened, the last first.
func (o *opener) close() (err error) {
	for _, c := range slices.Backward(o.closers) {
		err = errors.Join(err, c())
	}
	return err
}

func (o *opener) client(dial pcapng.DialFunc) *http.Client {
	transport := &http.Transport{DialContext: dial, DisableCompression: true}
	o.closers = append(o.closers, func() error { transport.CloseIdleConnections(); return nil })
	return &http.Client{Transport: transport}
}

func (o *opener) dial(ctx context.Context, url string, cfg session.Config) (err error) {
	cfg.Clock, cfg.Timeout = o.clock, patience
	if o.session, err = session.Dial(ctx, url, cfg); err == nil {
		o.closers = append(o.closers, o.session.Close)
	}
	return err
}

// plain opens a session in plain SOAP.
func (o *opener) plain(ctx context.Context, url string, dial pcapng.DialFunc) error {
	return o.dial(ctx, url, session.Config{HTTPClient: o.client(dial), Transports: map[string]streamer.Transport{}})
}

// stream opens a session with a stream, and records it.
func (o *opener) stream(ctx context.Context, url string, mode negotiate.Mode) error {
	dial := o.line.DialContext((&net.Dialer{}).DialContext)
	recorded := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return o.record(conn), nil
	}
	return o.dial(ctx, url, session.Config{
		Mode: mode, HTTPClient: o.client(recorded), Transports: o.transports(), Store: o.ends.store,
		Coders:   codersOf(o.ends.store),
		WrapConn: o.record, OnSession: facts,
	})
}

func (o *opener) transports() map[string]streamer.Transport {
	return map[string]streamer.Transport{"tcp": o.line.Over(tcp.Transport{})}
}

func (o *opener) record(c net.Conn) net.Conn { return o.rec.Conn(c) }

// facts notes what was agreed on a session next to its hello.
func facts(f negotiate.Facts, c net.Conn) {
	if conn, ok := netconn.As[*pcapng.RecordedConn](c); ok {
		if b, err := json.Marshal(f); err == nil {
			_ = conn.Comment(string(b)) // a comment that is too long is left out
		}
	}
}

// pair starts two proxies, one at each end of the link, and returns the URL of the near one. The
// far one has a store of its own.
func (o *opener) pair(ctx context.Context, server string) (string, error) {
	far, err := o.proxy(ctx, server, newStore(), nil)
	if err != nil {
		return "", err
	}
	entry, err := listen(ctx)
	if err != nil {
		return "", err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = o.line.Forward(entry, func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", far.Addrs()["http"].String())
		})
	}()
	o.closers = append(o.closers, func() error {
		defer func() { <-ended }()
		return entry.Close()
	})
	near, err := o.proxy(ctx, "http://"+entry.Addr().String()+peer.EchoPath, o.ends.store, o.transports())
	if err != nil {
		return "", err
	}
	if err := near.Linked(ctx); err != nil { // calls would be plain until then
		return "", err
	}
	return "http://" + near.Addrs()["http"].String() + peer.EchoPath, nil
}

// proxy starts a proxy: the near one if it has transports, which is recorded, otherwise the far
// one.
func (o *opener) proxy(ctx context.Context, upstream string, store ctxstore.Store,
	transports map[string]streamer.Transport) (*proxy.Proxy, error) {
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, err
	}
	cfg := proxy.Config{Routes: proxy.To(&proxy.Upstream{URL: u}), Store: store,
		Coders: codersOf(store), Transports: transports, Clock: o.clock,
		Times: proxy.Times{Timeout: patience, Silence: patience, Pause: patience, Gather: patience, Idle: patience}}
	if cfg.Listen, err = listen(ctx); err != nil {
		return nil, err
	}
	if transports == nil {
		cfg.Transports = map[string]streamer.Transport{}
		if cfg.Streams, err = (tcp.Transport{}).Listen(ctx, "127.0.0.1:0"); err != nil {
			return nil, errors.Join(err, cfg.Listen.Close())
		}
	} else {
		cfg.WrapDialed, cfg.OnSession = o.record, facts
	}
	p, err := proxy.Start(cfg)
	if err == nil {
		o.closers = append(o.closers, p.Close)
	}
	return p, err
}

package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/typed"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// Config configures a [Proxy]. It is copied; what it points to is shared and stays the caller's.
type Config struct {
	// Listen accepts the connections of clients, OPTIONS requests and offers, and streams of near
	// proxies and other peers. Required. The proxy closes it.
	Listen net.Listener
	// ListenTLS, if given, makes Listen take TLS only.
	ListenTLS *tls.Config
	// Streams accepts streams at another address, which answers name then; with ListenTLS it must
	// take TLS as well. nil: that of Listen. The proxy closes it.
	Streams net.Listener
	// NearOnly: requests for a stream, and streams of others, are forwarded like everything else.
	NearOnly bool
	// Admit is as in [responder.Config].
	Admit func(*http.Request) error
	// Advertise is the host that answers name for streams; empty: that of the URL, as the peer
	// names it.
	Advertise string
	// Routes are where requests go; [To] makes one for all of them. Required. With several routes,
	// and after [Proxy.Reroute], what goes plainly is forwarded call by call.
	Routes []Route
	// ListenTo opens the listeners of Routes; nil means TCP.
	ListenTo func(ctx context.Context, addr string) (net.Listener, error)
	// Store and Coders are as in [session.Config]. Required.
	Store  ctxstore.Store
	Coders coders.Func
	// Contract describes the messages of both directions; nil: none does. The partner learns of it
	// by an offer.
	Contract *typed.Contract
	// Common is a context store that near and far proxies share; nil: none. What goes plainly then
	// refers to header blocks in it, and is forwarded call by call.
	Common *unchanging.CommonStore
	// Archive is as in [session.Config] and [responder.Config].
	Archive bool
	// PlainOnly: no upstream is asked for a stream. What goes there may have references.
	PlainOnly bool
	// Schema describes the requests of one kind; nil: nothing does.
	Schema *schema.Schema
	// Transports are offered to upstreams; nil means tls, with the TLS of each, and tcp. An empty
	// map (not nil) means that the proxy is never near, and makes no offers.
	Transports map[string]streamer.Transport
	Times
	Bounds
	// Stream has limits, sizes and hooks of streams. Messages may exceed its MaxMessage: none is
	// held whole.
	Stream streamer.Config
	Hooks
	// Meter counts what passes; nil means one that nobody looks at.
	Meter *meter.Meter
	// Context, if given, answers clients' connections that begin with a request for [ContextPath].
	// If it has a method Drain, [Proxy.Drain] calls that: requests that wait for something end.
	Context http.Handler
	// Clock is the clock; nil means the real one.
	Clock clock.Clock
	// Log receives sessions and problems; nil: nothing is logged.
	Log *slog.Logger

	// Dial opens connections to upstreams, other than those of Transports; nil means TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Times are how long a proxy waits; 0 means the Default constants of these names.
type Times struct {
	// Timeout bounds negotiation, and the opening of a connection.
	Timeout                                       time.Duration
	Pause, Gather, Silence, HeadTime, Idle, Stall time.Duration
}

// Bounds are what a proxy holds at most; 0 means the Default constants of these names.
type Bounds struct {
	MaxConns int
	// MaxPerPeer is how many of MaxConns one IP address may have, or one IPv6 network of 64 bits; 0
	// means half of them.
	MaxPerPeer int
	MaxBuffer  int
}

// Hooks hear of what passes.
type Hooks struct {
	// WrapDialed and WrapAccepted wrap connections before anything is read or written (a recorder):
	// those that carry messages over the link, each message once. nil: none.
	WrapDialed, WrapAccepted func(net.Conn) net.Conn
	// OnSession is called for each session, as in [session.Config]; nil: not called.
	OnSession func(negotiate.Facts, net.Conn)
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.Listen == nil || c.Store == nil || c.Coders == nil || len(c.Routes) == 0:
		return c, badConfig("Listen, Routes, Store and Coders are required")
	case c.MaxConns < 0 || c.MaxPerPeer < 0 || c.MaxBuffer < 0 || c.Pause < 0 || c.Gather < 0 ||
		c.Silence < 0 || c.Idle < 0 ||
		c.HeadTime < 0 || c.Stall < 0 || c.Timeout < 0:
		return c, badConfig("negative bound")
	}
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Pause, c.Gather = cmp.Or(c.Pause, DefaultPause), cmp.Or(c.Gather, DefaultGather)
	c.Silence, c.HeadTime = cmp.Or(c.Silence, DefaultSilence), cmp.Or(c.HeadTime, DefaultHeadTime)
	c.Idle, c.Stall = cmp.Or(c.Idle, DefaultIdle), cmp.Or(c.Stall, DefaultStall)
	c.MaxConns, c.MaxBuffer = cmp.Or(c.MaxConns, DefaultMaxConns), cmp.Or(c.MaxBuffer, DefaultMaxBuffer)
	c.MaxPerPeer = cmp.Or(c.MaxPerPeer, max(c.MaxConns/2, 1))
	c.Stream = StreamConfig(c.Stream)
	c.Clock = cmp.Or(c.Clock, clock.Real())
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Meter == nil {
		c.Meter = meter.New(c.Clock.Now())
	}
	if c.ListenTo == nil {
		c.ListenTo = tcp.Transport{}.Listen
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	return c, nil
}

// Route says which requests go to an upstream. Of the routes that take a request, that with the
// host counts before one without, and then that with the longest path.
type Route struct {
	// Listen is the address of a listener of its own, to whose requests alone the route applies;
	// empty: it applies to those of Config.Listen. Routes with the same address share a listener.
	Listen string
	// Host is that of the request, without regard to case: HOST, or HOST:PORT if the port counts,
	// too. Empty: any.
	Host string
	// Path is how the path of the request begins, by whole segments: /a takes /a and /a/b, but not
	// /ab. Empty: any.
	Path string
	// Upstream is where they go. Required.
	Upstream *Upstream
}

// To is a route for all that comes to Config.Listen.
func To(u *Upstream) []Route { return []Route{{Upstream: u}} }

// Upstream is where routes lead: a server, or a far proxy. Routes to the same Upstream share its
// stream. It is not changed once it is in use.
type Upstream struct {
	// Name is how logs call it; empty: the host of URL.
	Name string
	// URL is an http or https URL. Offers go to its path; clients' targets stay as they are.
	// Required.
	URL *url.URL
	// TLS configures connections to an https URL; nil means the system's roots.
	TLS *tls.Config
	// CurrentTLS, if given, returns the configuration instead of TLS for each connection, so that
	// certificates can be renewed: what it returned is not changed, but another one returned.
	// Connections that are open stay. It is called concurrently.
	CurrentTLS func() *tls.Config
	// Clients is whose lanes go on with what they remember of earlier connections.
	Clients principal.Mode
	// FarOnly: it is never asked for a stream.
	FarOnly bool
	// RequireStream: what cannot go over a stream is refused, with status 503, and not sent.
	RequireStream bool
	// Paired is what says that there is to be a partner, for the log, which is told if there never
	// was one; empty: nothing does.
	Paired string
	// AllowHost and AllowCleartext are as in [session.Config].
	AllowHost      []string
	AllowCleartext bool
	// Mode is how sessions with it are opened; empty means [negotiate.Auto].
	Mode negotiate.Mode
	// RememberFor is how long it gets no further offer if it did not agree; 0 means
	// session.DefaultRememberFor.
	RememberFor time.Duration
	// Reliable has SOAP messages of clients that are in no sequence of their own sent to it in
	// sequences of WS-ReliableMessaging of this version, from the store; empty: none is. It is
	// never asked for a stream then.
	Reliable soaprm.Protocol
}

func (c Upstream) withDefaults() (Upstream, error) {
	switch {
	case c.URL == nil:
		return c, badConfig("an upstream without URL")
	case (c.URL.Scheme != "http" && c.URL.Scheme != "https") || c.URL.Hostname() == "":
		return c, badConfig("upstream %q is no http or https URL", c.URL.Redacted())
	}
	u := *c.URL
	u.Fragment = ""
	c.URL = &u
	c.Name = cmp.Or(c.Name, u.Host)
	c.RememberFor = cmp.Or(c.RememberFor, session.DefaultRememberFor)
	c.Mode = cmp.Or(c.Mode, negotiate.Auto)
	return c, nil
}

// currentTLS configures a connection that is opened now.
func (c *Upstream) currentTLS() *tls.Config {
	if c.CurrentTLS != nil {
		return c.CurrentTLS()
	}
	return c.TLS
}

package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/sequenced"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

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

// renewedTLS is the transport over TLS with the configuration of the moment. Each configuration has
// tickets of its own: a session that is resumed has the certificates of the one before.
type renewedTLS struct {
	current func() *tls.Config

	mu        sync.Mutex
	of        *tls.Config          // of transport
	transport *streamtls.Transport // nil: none was needed yet
}

func (r *renewedTLS) now() *streamtls.Transport {
	cfg := r.current()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.transport == nil || cfg != r.of {
		r.of, r.transport = cfg, streamtls.New(cfg, nil)
	}
	return r.transport
}

func (r *renewedTLS) Dial(ctx context.Context, addr string) (net.Conn, error) {
	return r.now().Dial(ctx, addr)
}

func (r *renewedTLS) Listen(ctx context.Context, addr string) (net.Listener, error) {
	return r.now().Listen(ctx, addr)
}

// upstream is an [Upstream] in use, with the session that the proxy has with it as the near end.
type upstream struct {
	p          *Proxy
	cfg        Upstream
	transports map[string]streamer.Transport
	links      Keeper[*link]
	unanswered uint // how often a question was not answered; of quiet
	teller     teller
	alone      alone
	reach      reach
	plain      plainSession
	principals principals
	forwarder  *sequenced.Forwarder // nil: messages go as they are
	near, far  *meter.Upstream      // what goes to it, from clients and from streams; set by begin
	use        useCount
	ctx        context.Context // ends when it is released
	stop       context.CancelFunc
}

// newUpstream creates one, which makes no offers before begin.
func (p *Proxy) newUpstream(cfg Upstream) (*upstream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	u := &upstream{p: p, cfg: cfg, transports: p.cfg.Transports, principals: newPrincipals(cfg.Clients)}
	if u.transports == nil {
		u.transports = map[string]streamer.Transport{
			"tls": &renewedTLS{current: u.cfg.currentTLS}, "tcp": tcp.Transport{},
		}
	}
	u.links = Keeper[*link]{
		Open: u.negotiate, Quiet: u.quiet, FirstBackOff: firstBackOff, MaxBackOff: maxBackOff, Clock: p.cfg.Clock,
		Told: u.told,
	}
	u.teller = teller{log: p.cfg.Log, upstream: cfg.Name, nearOnly: p.cfg.NearOnly}
	u.alone = alone{log: p.cfg.Log, upstream: cfg.Name, paired: cfg.Paired, since: p.cfg.Clock.Now()}
	u.reach = reach{log: p.cfg.Log, upstream: cfg.Name}
	u.links.Init(errNever)
	u.forwarder = u.newForwarder()
	u.ctx, u.stop = context.WithCancel(p.ctx)
	u.use.release = func() {
		u.stop()
		u.links.Close()
		u.plain.close()
		u.endSequences()
		if u.near != nil {
			u.near.Leave()
		}
	}
	return u, nil
}

// left is called by who used u, unless that is nil.
func (u *upstream) left() {
	if u != nil {
		u.use.leave()
	}
}

// begin makes offers from now on, if there are to be any. Only now it has counters: routes that are
// refused leave none behind. An upstream that had this URL before had the same ones.
func (u *upstream) begin() {
	name := meterName(u.cfg.URL)
	u.near, u.far = u.p.cfg.Meter.Near.Upstream(name), u.p.cfg.Meter.Far.Upstream(name)
	u.near.Use()
	if len(u.transports) > 0 && !u.cfg.FarOnly && !u.p.cfg.PlainOnly && u.forwarder == nil {
		u.links.Begin()
		u.p.wait.Go(func() { u.links.Run(u.ctx) })
	}
}

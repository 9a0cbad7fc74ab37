package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/sequenced"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

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
	p          *core
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
func (p *core) newUpstream(cfg Upstream) (*upstream, error) {
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

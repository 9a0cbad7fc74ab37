package proxy

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/hhfr/hhfr/internal/meter"
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

// upstream is where requests go: over a stream if the server has a partner there, in sequences if
// it is to have them so, plainly otherwise.
type upstream struct {
	*server
	streams   *nearWay
	plain     *plainWay
	sequences *sequencer // nil: messages go as they are
}

// newUpstream creates one, which makes no offers before begin.
func (p *core) newUpstream(cfg Upstream) (*upstream, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	u := &upstream{server: p.newServer(cfg)}
	transports := p.cfg.Transports
	if transports == nil {
		transports = map[string]streamer.Transport{
			"tls": &renewedTLS{current: u.cfg.currentTLS}, "tcp": tcp.Transport{},
		}
	}
	u.plain = &plainWay{server: u.server, mayRefer: len(transports) > 0 && !cfg.FarOnly}
	u.sequences = newSequencer(u.plain)
	u.streams = newNearWay(u.plain, transports)
	u.use.release = func() {
		u.stop() // no further offer
		u.streams.links.Close()
		u.plain.close()
		u.sequences.close()
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

// begin makes offers from now on, if there are to be any.
func (u *upstream) begin() {
	u.server.begin()
	if len(u.streams.transports) > 0 && !u.cfg.FarOnly && !u.p.cfg.PlainOnly && u.sequences == nil {
		u.streams.begin()
	}
}

// farMeter is where what streams bring for an upstream counts; nil: no route leads anywhere.
func (p *core) farMeter(u *upstream) *meter.Upstream {
	if u == nil {
		return p.cfg.Meter.Far.Upstream(meter.Other)
	}
	return u.far
}

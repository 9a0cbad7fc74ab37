package proxy

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/sock"
)

// server is an [Upstream] in use: how connections to it are opened, counted and logged. It begins
// to count with begin.
type server struct {
	p         *core
	cfg       Upstream
	alone     alone
	reach     reach
	near, far *meter.Upstream // what goes to it, from clients and from streams; set by begin
	use       useCount
	ctx       context.Context // ends when it is released
	stop      context.CancelFunc
}

func (p *core) newServer(cfg Upstream) *server {
	u := &server{p: p, cfg: cfg}
	u.alone = alone{log: p.cfg.Log, upstream: cfg.Name, paired: cfg.Paired, since: p.cfg.Clock.Now()}
	u.reach = reach{log: p.cfg.Log, upstream: cfg.Name}
	u.ctx, u.stop = context.WithCancel(p.ctx)
	return u
}

// begin has it counted. Only now it has counters: routes that are refused leave none behind. An
// upstream that had this URL before had the same ones.
func (u *server) begin() {
	name := meterName(u.cfg.URL)
	u.near, u.far = u.p.cfg.Meter.Near.Upstream(name), u.p.cfg.Meter.Far.Upstream(name)
	u.near.Use()
}

// meterName is the name of an upstream for counters: its URL without what may be secret.
func meterName(u *url.URL) string {
	c := Canonical(u)
	return (&url.URL{Scheme: c.Scheme, Host: c.Host, Path: c.Path}).String()
}

// Canonical returns an http or https URL as all have it that lead to the same place: the host in
// lower case, without the usual port, and with a path (RFC 9110, section 4.2.3).
func Canonical(u *url.URL) *url.URL {
	c := *u
	c.Host = strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	c.Path = cmp.Or(u.Path, "/")
	return &c
}

// refuse reports to a client that speaks HTTP why nothing can be forwarded. why is the reason for
// which its call has no stream, for the meter.
func (u *server) refuse(in *sock.Source, first []byte, why string, err error) {
	p := u.p
	if len(first) == 0 {
		first, _ = in.Wait(p.ctx, 0, p.cfg.Silence)
	}
	if http1.LooksLikeStart(first) {
		reply := unreachable(err)
		p.countRefused(u.near, why, in, first, reply)
		_, _ = in.Conn.Write(reply)
	}
	sock.Finish(p.ctx, in)
}

// hasNoPartner is called for each call that has no stream, with the reason in a word. A proxy to
// which streams come is the far half.
func (u *server) hasNoPartner(why string, now time.Time) {
	if !u.p.isFar.Load() {
		u.alone.called(why, now)
	}
}

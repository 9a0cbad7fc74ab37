package proxy

import (
	"cmp"
	"context"
	"net"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/routes"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
)

// checkOnly reads what a proxy would begin with, and prints what it would be. It opens no store and
// no listener, writes nothing, and asks nobody.
func (o *proxyOptions) checkOnly(ctx context.Context, g *command.Global) error {
	if strings.Contains(o.schema.Name, "://") || o.schema.Fetch {
		g.Note("--schema %s is not read: that takes the network", o.schema.Name)
	} else if _, err := description.Read(ctx, g, o.schema); err != nil {
		return err
	}
	if _, err := trust.OpenAccess(trust.AccessFlags{TLS: &o.Own, ContextFlag: "--context",
		Contexts: o.Context}); err != nil {
		return err
	}
	if _, _, err := o.Open(&routes.KnownUpstreams{System: g.System}); err != nil {
		return err
	}
	addrs, metrics, err := o.wouldListen()
	if err != nil {
		return err
	}
	store, err := o.CheckFiles(g, "proxy")
	if err != nil {
		return err
	}
	return o.say(g, addrs, store, metrics, true)
}

// wouldListen are the addresses at which a proxy would listen, as they are announced.
func (o *proxyOptions) wouldListen() (addrs map[string]string, at string, err error) {
	streams := "tcp"
	if o.Own.Cert != "" {
		streams = "tls"
	}
	addrs = map[string]string{"http": o.Listen}
	if o.TCP != listen.None {
		addrs[streams] = cmp.Or(o.TCP, o.Listen)
	}
	for _, r := range o.Others {
		if r.Listen != "" && r.Listen != o.Listen {
			addrs[r.Listen] = r.Listen
		}
	}
	for _, addr := range addrs {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return nil, "", exit.Usagef("write HOST:PORT", "%s is no address to listen at", addr)
		}
	}
	if o.Metrics.Address != "" {
		if addrs["metrics"], err = metrics.Addr(o.Metrics.Address, o.addresses()); err != nil {
			return nil, "", err
		}
		at = metrics.Line(addrs["metrics"])
	}
	return addrs, at, nil
}

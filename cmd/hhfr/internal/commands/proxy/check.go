package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/metrics"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/engines"
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
	if _, _, err := o.routes(&upstreams{system: g.System}); err != nil {
		return err
	}
	if err := errors.Join(o.Record.Check(), o.Calls.Check()); err != nil {
		return err
	}
	addrs, metrics, err := o.wouldListen()
	if err != nil {
		return err
	}
	store := cmp.Or(o.Store.Spec, stores.DefaultStore("proxy", o.Listen), stores.MemoryStore)
	if err := o.checkStores(g, store); err != nil {
		return err
	}
	return o.say(g, addrs, store, metrics, true)
}

// checkStores checks the names of stores and of files that are written, and reads what stores are
// opened with.
func (o *proxyOptions) checkStores(g *command.Global, store string) error {
	if _, _, err := o.Store.Access(g.System); err != nil {
		return err
	}
	if err := engines.Check(store); err != nil {
		return err
	}
	if common, err := o.Common.Read(); err != nil {
		return err
	} else if common != nil {
		if err := engines.Check(common.URL); err != nil {
			return fmt.Errorf("--common-store: %w", err)
		}
	}
	for flag, file := range map[string]string{"--record": o.Record.Name, "--access-log": o.Calls.File} {
		if file == "" || file == "-" {
			continue
		}
		if info, err := os.Stat(filepath.Dir(file)); err != nil {
			return fmt.Errorf("%s: %w", flag, err)
		} else if !info.IsDir() {
			return fmt.Errorf("%s: %s is no folder", flag, filepath.Dir(file))
		}
	}
	return nil
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
	for _, r := range o.others {
		if r.listen != "" && r.listen != o.Listen {
			addrs[r.listen] = r.listen
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

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/hhfr/hhfr/internal/engines"
)

// checkOnly reads what a proxy would begin with, and prints what it would be. It opens no store and
// no listener, writes nothing, and asks nobody.
func (o *proxyOptions) checkOnly(ctx context.Context, env Env, g *global) error {
	if strings.Contains(o.schema.name, "://") || o.schema.fetch {
		g.note("--schema %s is not read: that takes the network", o.schema.name)
	} else if _, err := readDescription(ctx, g, o.schema); err != nil {
		return err
	}
	if _, err := openAccess(accessFlags{tls: &o.own, contextFlag: "--context", contexts: o.context}); err != nil {
		return err
	}
	if _, _, err := o.routes(&upstreams{system: env.System}); err != nil {
		return err
	}
	if err := errors.Join(o.record.check(), o.calls.check()); err != nil {
		return err
	}
	addrs, metrics, err := o.wouldListen()
	if err != nil {
		return err
	}
	store := cmp.Or(o.store.spec, defaultStore("proxy", o.listen), memoryStore)
	if err := o.checkStores(g, store); err != nil {
		return err
	}
	return o.say(env, addrs, store, metrics, true)
}

// checkStores checks the names of stores and of files that are written, and reads what stores are
// opened with.
func (o *proxyOptions) checkStores(g *global, store string) error {
	if _, _, err := o.store.access(g.system); err != nil {
		return err
	}
	if err := engines.Check(store); err != nil {
		return err
	}
	if common, err := o.common.read(); err != nil {
		return err
	} else if common != nil {
		if err := engines.Check(common.URL); err != nil {
			return fmt.Errorf("--common-store: %w", err)
		}
	}
	for flag, file := range map[string]string{"--record": o.record.name, "--access-log": o.calls.file} {
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
func (o *proxyOptions) wouldListen() (addrs map[string]string, metrics string, err error) {
	streams := "tcp"
	if o.own.cert != "" {
		streams = "tls"
	}
	addrs = map[string]string{"http": o.listen}
	if o.tcp != noAddress {
		addrs[streams] = cmp.Or(o.tcp, o.listen)
	}
	for _, r := range o.others {
		if r.listen != "" && r.listen != o.listen {
			addrs[r.listen] = r.listen
		}
	}
	for _, addr := range addrs {
		if _, port, err := net.SplitHostPort(addr); err != nil || port == "" {
			return nil, "", usage(fmt.Errorf("%s is no address to listen at", addr), "write HOST:PORT")
		}
	}
	if o.metrics.addr != "" {
		if addrs["metrics"], err = metricsAddr(o.metrics.addr, o.addresses()); err != nil {
			return nil, "", err
		}
		metrics = metricsLine(addrs["metrics"])
	}
	return addrs, metrics, nil
}

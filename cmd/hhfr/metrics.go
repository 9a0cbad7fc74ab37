package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// metricsOptions are where a server shows its counters, and by which names.
type metricsOptions struct {
	addr  string
	hosts []string
}

// flags adds --metrics and --metrics-host.
func (o *metricsOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.hosts, "metrics-host", nil,
		"a name by which requests to --metrics may come, besides that of its address; may be given again")
	f.StringVar(&o.addr, "metrics", "",
		"address for /metrics, /status, /healthz and, for this machine only, /debug/pprof/; without a host 127.0.0.1")
}

// metricsHelp is the part of help texts about it.
const metricsHelp = `--access-log FILE writes a line for each call when it is over: time, client, operation, status,
SOAP fault, bytes as HTTP has them and on the link, time taken and added (docs/metrics.md).
--metrics ADDR answers at an address of its own, without authentication: /status is a page
for people, and JSON for programs; /metrics is for Prometheus (docs/metrics.md lists the series);
/healthz is 200, and 503 while this process ends; /debug/pprof/ has profiles, for this machine only.
Requests name the address by an IP address, localhost, or the host of ADDR; --metrics-host NAME
allows other names. Any other name could be one that a hostile page has a browser use.
`

// syncHelp is the part of help texts about syncs on demand.
const syncHelp = `
Except on Windows SIGUSR2 has a sync go out on every stream, and asks the peers for theirs: what
tcpdump records from then on is decoded without a store. So does a POST of /status at --metrics, from
this machine only, once in 10 s.

`

// metricsCounters are those of a server, and who shows them: on a terminal a live line, at
// --metrics a listener, and lines on stderr on SIGUSR1 and at the end.
type metricsCounters struct {
	*meter.Meter
	g       *global
	monitor *monitor.Monitor // nil: --metrics is not given
	addr    string           // of the monitor
	stop    func()           // of what is shown while the server runs
}

// countersOf begins to count. It listens at --metrics, if that is not empty; others are addresses
// of the same command, whose ports it must not share.
func countersOf(
	ctx context.Context,
	env Env,
	g *global,
	o metricsOptions,
	live bool,
	others ...string,
) (*metricsCounters, error) {
	c := &metricsCounters{Meter: meter.New(time.Now()), g: g}
	if o.addr != "" {
		if err := c.listen(ctx, o, others); err != nil {
			return nil, err
		}
	}
	c.stop = c.watch(env, live)
	return c, nil
}

func (c *metricsCounters) listen(ctx context.Context, o metricsOptions, others []string) error {
	addr, err := metricsAddr(o.addr, others)
	if err != nil {
		return err
	}
	l, err := listen(ctx, "--metrics", addr, tcp.Transport{}.Listen)
	if err != nil {
		return err
	}
	c.addr = l.Addr().String()
	host, _, _ := net.SplitHostPort(addr) // metricsAddr made it
	c.monitor = monitor.Start(l, c.Meter, append(o.hosts, host), c.g.logger())
	return nil
}

// metricsAddr completes an address without a host, and checks that nothing else of the command has
// its port.
func metricsAddr(addr string, others []string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil && !strings.Contains(addr, ":") {
		host, port, err = "", addr, nil
	}
	if err != nil || port == "" {
		return "", usage(fmt.Errorf("--metrics %s is no address", addr), "--metrics takes PORT, :PORT or HOST:PORT")
	}
	for _, other := range others {
		if _, taken, err := net.SplitHostPort(other); err == nil && taken == port && port != "0" {
			return "", usage(errors.New("--metrics "+addr+" has the port of "+other+", where calls come in"),
				"choose another port with --metrics; port 0 takes a free one")
		}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func (c *metricsCounters) now() *meter.Snapshot { return c.Snapshot(time.Now()) }

// ending tells who asks that the server is about to end.
func (c *metricsCounters) ending() {
	if c.monitor != nil {
		c.monitor.Ending()
	}
}

// close shows the last counts.
func (c *metricsCounters) close() error {
	c.stop()
	c.summarize()
	if c.monitor == nil {
		return nil
	}
	return c.monitor.Close()
}

// announce adds the listener to what a server prints about itself.
func (c *metricsCounters) announce(addrs map[string]string) (line string) {
	if c.monitor == nil {
		return ""
	}
	addrs["metrics"] = c.addr
	return metricsLine(c.addr)
}

func metricsLine(addr string) string { return "metrics   http://" + addr + "/status\n" }

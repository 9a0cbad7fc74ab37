// Package metrics shows the counters of a server: at --metrics, on a terminal, and at its end.
package metrics

import (
	"context"
	"net"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/listen"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// MetricsOptions are where a server shows its counters, and by which names.
type MetricsOptions struct {
	Address string
	hosts   []string
	packets bool // show what passes, too
}

// Flags adds --metrics, --metrics-host and --packets.
func (o *MetricsOptions) Flags(f *pflag.FlagSet) {
	f.StringArrayVar(&o.hosts, "metrics-host", nil,
		"a name by which requests to --metrics may come, besides that of its address; may be given again")
	f.StringVar(&o.Address, "metrics", "",
		"address for /metrics, /status, /healthz and, for this machine only, /debug/pprof/; without a host 127.0.0.1")
	f.BoolVar(&o.packets, "packets", false, "let every program of this machine see at --metrics what passes, inside "+
		"TLS, too: hhfr inspect --attach")
}

// Help is the part of help texts about it.
const Help = `--access-log FILE writes a line for each call when it is over: time, client, operation, status,
SOAP fault, bytes as HTTP has them and on the link, time taken and added (docs/metrics.md).
--metrics ADDR answers at an address of its own, without authentication: /status is a page
for people, and JSON for programs; /metrics is for Prometheus (docs/metrics.md lists the series);
/healthz is 200, and 503 while this process ends; /debug/pprof/ has profiles, for this machine only.
With --packets, /packets has what passes from now on, for this machine only: hhfr inspect --attach
ADDR shows it.
Requests name the address by an IP address, localhost, or the host of ADDR; --metrics-host NAME
allows other names. Any other name could be one that a hostile page has a browser use.
`

// SyncHelp is the part of help texts about syncs on demand.
const SyncHelp = `
Except on Windows SIGUSR2 has a sync go out on every stream, and asks the peers for theirs: what
tcpdump records from then on is decoded without a store. So does a POST of /status at --metrics, from
this machine only, once in 10 s.

`

// ServerCounters are those of a server, and who shows them: on a terminal a live line, at
// --metrics a listener, and lines on stderr on SIGUSR1 and at the end.
type ServerCounters struct {
	*meter.Meter
	g       *command.Global
	monitor *monitor.Monitor // nil: --metrics is not given
	tap     *pcapng.Tap      // nil: --packets is not given
	addr    string           // of the monitor
	stop    func()           // of what is shown while the server runs
}

// Open begins to count. It listens at --metrics, if that is not empty; others are addresses
// of the same command, whose ports it must not share.
func Open(
	ctx context.Context,
	g *command.Global,
	o MetricsOptions,
	live bool,
	others ...string,
) (*ServerCounters, error) {
	c := &ServerCounters{Meter: meter.New(time.Now()), g: g}
	if o.packets && o.Address == "" {
		return nil, exit.Usagef("", "--packets goes with --metrics, where they are shown")
	}
	if o.Address != "" {
		if err := c.listen(ctx, o, others); err != nil {
			return nil, err
		}
	}
	c.stop = c.watch(g, live)
	return c, nil
}

func (c *ServerCounters) listen(ctx context.Context, o MetricsOptions, others []string) error {
	addr, err := Addr(o.Address, others)
	if err != nil {
		return err
	}
	l, err := listen.At(ctx, "--metrics", addr)
	if err != nil {
		return err
	}
	if c.addr = l.Addr().String(); o.packets {
		c.tap = new(pcapng.Tap)
	}
	host, _, _ := net.SplitHostPort(addr) // metricsAddr made it
	c.monitor = monitor.Start(l, c.Meter, c.tap, append(o.hosts, host), c.g.Logger())
	return nil
}

// Addr completes an address without a host, and checks that nothing else of the command has
// its port.
func Addr(addr string, others []string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil && !strings.Contains(addr, ":") {
		host, port, err = "", addr, nil
	}
	if err != nil || port == "" {
		return "", exit.Usagef("--metrics takes PORT, :PORT or HOST:PORT", "--metrics %s is no address", addr)
	}
	for _, other := range others {
		if _, taken, err := net.SplitHostPort(other); err == nil && taken == port && port != "0" {
			return "", exit.Usagef("choose another port with --metrics; port 0 takes a free one",
				"--metrics %s has the port of %s, where calls come in", addr, other)
		}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

func (c *ServerCounters) now() *meter.Snapshot { return c.Snapshot(time.Now()) }

// Tap is where connections are recorded while somebody asks at --metrics; nil: nobody can.
func (c *ServerCounters) Tap() *pcapng.Tap { return c.tap }

// Ending tells who asks that the server is about to end.
func (c *ServerCounters) Ending() {
	if c.monitor != nil {
		c.monitor.Ending()
	}
}

// Close shows the last counts.
func (c *ServerCounters) Close() error {
	c.stop()
	c.summarize()
	if c.monitor == nil {
		return nil
	}
	return c.monitor.Close()
}

// Announce adds the listener to what a server prints about itself.
func (c *ServerCounters) Announce(addrs map[string]string) (line string) {
	if c.monitor == nil {
		return ""
	}
	addrs["metrics"] = c.addr
	return Line(c.addr)
}

// Line is what a server prints of --metrics at this address.
func Line(addr string) string { return "metrics   http://" + addr + "/status\n" }

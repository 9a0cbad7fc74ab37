// Package network lies between a command that sends and its service, and counts what is on it.
package network

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/printing"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
	"github.com/hhfr/hhfr/pkg/streamer/udp"
)

// Network lies between the command and the service, and counts their traffic. Its link, in real
// time, is that of --link.
type Network struct {
	Transport string // of streams
	profile   link.Profile
	relay     *link.Link // of connections; nil without a link
	Plain     TrafficReport
	Datagrams paths
}

// LinkFlag declares --link.
func LinkFlag(f *pflag.FlagSet, to *string, value string) {
	f.StringVar(to, "link", value, "the emulated link: "+strings.Join(link.Names(), ", ")+
		", with changes after it: gprs,rtt=1s,rate=64k,queue=12000; for datagrams also loss=5%, burst=3, "+
		"reorder=1%, dup=1%, jitter=20ms, mtu=1228, outage=5s/60s, seed=7, without spaces")
}

// ClockedLinkFlags declares --link, and --speed of its clock.
func ClockedLinkFlags(f *pflag.FlagSet, to *string, value string, speed *float64) {
	LinkFlag(f, to, value)
	f.Float64Var(speed, "speed", 0,
		"how many times faster than the link the clock runs, below 1: slower; 0: what fits the link, 20 at most")
}

// Open creates the link of a name, empty for none. Datagrams may be lost on it, connections
// may not.
func Open(name, transport string) (*Network, error) {
	n := &Network{Transport: transport}
	if name == "" {
		return n, nil
	}
	var err error
	if n.profile, err = link.ParseProfile(name); err != nil {
		return nil, exit.Usage(err, "")
	}
	profile := n.profile
	if transport == "udp" {
		if err := profile.Carries(udp.DefaultDatagram); err != nil {
			return nil, exit.Usage(err, "")
		}
		profile = profile.Reliable() // of the negotiation
	}
	if n.relay, err = link.Relay(nil, profile); err != nil {
		return nil, exit.Usage(err, "--transport udp carries streams by datagrams")
	}
	return n, nil
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

// DialContext is next over the link, if there is one.
func (n *Network) DialContext(next dialFunc) dialFunc {
	if n.relay == nil {
		return next
	}
	return n.relay.DialContext(next)
}

// Transports are those of streams: UDP alone, or TCP, in TLS for https URLs.
func (n *Network) Transports(secure *tls.Config) map[string]streamer.Transport {
	switch {
	case n.Transport == "udp" && n.relay != nil:
		return map[string]streamer.Transport{"udp": udp.Transport{Through: func(socket net.PacketConn,
			remote net.Addr) (net.PacketConn, error) {
			return link.Through(nil, n.profile, socket, remote)
		}}}
	case n.Transport == "udp":
		return map[string]streamer.Transport{"udp": udp.Transport{}}
	}
	var below streamer.Transport = tcp.Transport{}
	if n.relay != nil {
		below = n.relay.Over(below)
	}
	return map[string]streamer.Transport{"tcp": below, "tls": streamtls.New(secure, below)}
}

// Close ends the link.
func (n *Network) Close() error {
	if n.relay == nil {
		return nil
	}
	return n.relay.Close()
}

// DatagramStats counts what the sequences of streams over UDP did (docs/wire-format.md, section
// 12).
type DatagramStats struct {
	Sent     int64   `json:"sent"`            // datagrams sent
	Received int64   `json:"received"`        // datagrams received
	Refused  int64   `json:"refused"`         // received datagrams that broke a rule
	Resent   int64   `json:"resent"`          // units of messages that were sent again
	Again    int64   `json:"duplicates"`      // units that arrived again
	AcksOut  int64   `json:"acks_sent"`       // acknowledgements sent, alone or beside units
	AcksIn   int64   `json:"acks_received"`   // acknowledgements received
	Timeouts int64   `json:"timeouts"`        // expirations of the retransmission timer
	Wrong    int64   `json:"timeouts_undone"` // spurious ones among them
	Probes   int64   `json:"probes"`          // tail loss probes: the last datagram was sent again before the timer
	RTT      float64 `json:"rtt_ms"`          // smoothed round trip at the end, in milliseconds; 0: never measured
	RTO      float64 `json:"rto_ms"`          // retransmission timer at the end
	Window   int     `json:"window_octets"`   // congestion window at the end, with headers
}

// paths remembers the connections of streams that have statistics of their datagrams.
type paths struct {
	mu    sync.Mutex
	conns []interface{ Stats() udp.Stats }
}

// Wrap is a WrapConn that notes connections, and then calls next.
func (p *paths) Wrap(next func(net.Conn) net.Conn) func(net.Conn) net.Conn {
	return func(c net.Conn) net.Conn {
		if s, ok := netconn.As[interface{ Stats() udp.Stats }](c); ok {
			p.mu.Lock()
			p.conns = append(p.conns, s)
			p.mu.Unlock()
		}
		if next != nil {
			c = next(c)
		}
		return c
	}
}

// Stats adds up the counters of all connections; values of the path are those of the last one. nil:
// there were none.
func (p *paths) Stats() *DatagramStats {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.conns) == 0 {
		return nil
	}
	d := &DatagramStats{}
	for _, c := range p.conns {
		s := c.Stats()
		d.Sent += s.Sent
		d.Received += s.Received
		d.Refused += s.Refused
		d.Resent += s.Resent
		d.Again += s.Duplicates
		d.AcksOut += s.AcksSent
		d.AcksIn += s.AcksReceived
		d.Timeouts += s.Timeouts
		d.Wrong += s.Undone
		d.Probes += s.Probes
		d.RTT, d.RTO, d.Window = printing.Millis(s.RTT), printing.Millis(s.RTO), s.Window
	}
	return d
}

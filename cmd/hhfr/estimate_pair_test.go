//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/estimate"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	estimates "github.com/hhfr/hhfr/internal/estimate"
	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/shared"
)

// recordedConn is a connection of a recording: what its ends said, in order.
type recordedConn struct {
	flow   *flow.Flow
	said   []recordedPiece
	client int // the direction of its client
}

// recordedPiece is what one end said at once, so long after the piece before.
type recordedPiece struct {
	dir    int
	octets []byte
	at     time.Time
	after  time.Duration
}

// apart is what lies between things that are not at the same time, even on a machine that is busy.
// Longer pauses of a recording are made that short.
const apart = 20 * time.Millisecond

// Octets implements [flow.Receiver].
func (c *recordedConn) Octets(dir int, _ int64, b []byte, m flow.Mark) error {
	p := recordedPiece{dir: dir, octets: bytes.Clone(b), at: m.Time}
	if n := len(c.said); n > 0 {
		p.after = min(max(m.Time.Sub(c.said[n-1].at), 0), apart)
		if last := &c.said[n-1]; last.dir == dir {
			if p.after < apart/4 {
				last.octets = append(last.octets, b...) // who reads has both at once
				return nil
			}
			p.after = apart
		}
	}
	c.said = append(c.said, p)
	return nil
}

// Closed implements [flow.Receiver].
func (c *recordedConn) Closed() error { return nil }

// recordedConns are the connections of a recording that have SOAP, most of them at most, and of
// each as many calls.
func recordedConns(t *testing.T, octets []byte, most int) (all []*recordedConn) {
	t.Helper()
	f, err := flow.Open(bytes.NewReader(octets))
	require.NoError(t, err)
	var found []*recordedConn
	_, err = flow.Read(flow.Config{Flow: func(f *flow.Flow) flow.Receiver {
		found = append(found, &recordedConn{flow: f})
		return found[len(found)-1]
	}}, f)
	require.NoError(t, err)
	for _, c := range found {
		if c.keepSOAP(most); len(c.said) > 0 && len(all) < most {
			all = append(all, c)
		}
	}
	return all
}

// keepSOAP drops the calls without SOAP.
func (c *recordedConn) keepSOAP(most int) {
	if len(c.said) == 0 {
		return
	}
	c.client = c.said[0].dir
	var calls [][]recordedPiece
	answered := true
	for _, p := range c.said {
		if p.dir == c.client && answered {
			p.after = apart
			calls = append(calls, nil)
		}
		last := len(calls) - 1
		calls[last] = append(calls[last], p)
		answered = p.dir != c.client && !bytes.HasPrefix(p.octets, []byte("HTTP/1.1 100"))
	}
	c.said = nil
	for _, call := range calls {
		var text []byte
		for _, p := range call {
			text = append(text, p.octets...)
		}
		if bytes.HasPrefix(text, []byte("POST")) && bytes.Contains(text, []byte("Envelope")) && most > 0 {
			most--
			c.said = append(c.said, call...)
		}
	}
}

// player plays recordings between clients and a server of its own.
type player struct {
	t      *testing.T
	server net.Listener
	wait   sync.WaitGroup

	mu      sync.Mutex
	waiting []*recordedConn // that no connection of the server is yet
}

func newPlayer(t *testing.T) *player {
	p := &player{t: t, server: listenLoopback(t)}
	p.wait.Go(func() {
		for {
			c, err := p.server.Accept()
			if err != nil {
				return
			}
			p.wait.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = p.server.Close()
		p.wait.Wait()
	})
	return p
}

func listenLoopback(t *testing.T) net.Listener {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return l
}

// serve is the server's end of a connection.
func (p *player) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	first := make([]byte, 1)
	if _, err := io.ReadFull(c, first); err != nil {
		return // one that is opened for nothing
	}
	p.mu.Lock()
	if len(p.waiting) == 0 {
		p.mu.Unlock()
		return
	}
	r := p.waiting[0]
	p.waiting = p.waiting[1:]
	p.mu.Unlock()
	p.play(c, r, 1-r.client, 1)
}

// client is the client's end.
func (p *player) client(c net.Conn, r *recordedConn) {
	p.mu.Lock()
	p.waiting = append(p.waiting, r)
	p.mu.Unlock()
	p.play(c, r, r.client, 0)
	_ = c.Close()
}

// play says what one end said, each piece after what that had heard before, of which so many bytes
// are here already. Who ended the connection does so.
func (p *player) play(c net.Conn, r *recordedConn, own, heard int) {
	for _, piece := range r.said {
		if piece.dir == own {
			time.Sleep(piece.after)
			if _, err := c.Write(piece.octets); !assert.NoError(p.t, err) {
				return
			}
			continue
		}
		got := make([]byte, len(piece.octets))
		copy(got, piece.octets[:heard])
		if _, err := io.ReadFull(c, got[heard:]); !assert.NoError(p.t, err) ||
			!assert.Equal(p.t, string(piece.octets), string(got)) {
			return
		}
		heard = 0
	}
	if r.flow.EndedBy != own {
		_, _ = io.Copy(io.Discard, c)
	}
}

// run plays connections one after the other at an address; wrap, if given, sees those of clients.
func (p *player) run(conns []*recordedConn, to string, wrap func(net.Conn) net.Conn) {
	for _, r := range conns {
		c, err := new(net.Dialer).DialContext(p.t.Context(), "tcp", to)
		require.NoError(p.t, err)
		if wrap != nil {
			c = wrap(c)
		}
		p.client(c, r)
	}
}

// meteredLink forwards connections, and counts what goes over them.
type meteredLink struct {
	listen net.Listener

	mu              sync.Mutex
	octets, packets int64
	last            time.Time
}

func newMeteredLink(t *testing.T, to string) *meteredLink {
	l := &meteredLink{listen: listenLoopback(t)}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			in, err := l.listen.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to) //nolint:noctx // it lasts as long as the test
			if err != nil {
				_ = in.Close()
				continue
			}
			wait.Go(func() { l.copy(out, in) })
			wait.Go(func() { l.copy(in, out) })
		}
	})
	t.Cleanup(func() {
		_ = l.listen.Close()
		wait.Wait()
	})
	return l
}

func (l *meteredLink) copy(to, from net.Conn) {
	defer func() { _ = to.Close() }()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 {
			l.mu.Lock()
			l.octets, l.packets, l.last = l.octets+int64(n), l.packets+int64(n+1459)/1460, time.Now()
			l.mu.Unlock()
			_, _ = to.Write(b[:n])
		}
		if err != nil {
			return
		}
	}
}

// total is what went over the link, once nothing did for a while, with 40 for the headers of each
// packet.
func (l *meteredLink) total(quietFor time.Duration) (octets, packets int64) {
	for {
		l.mu.Lock()
		octets, packets = l.octets+40*l.packets, l.packets
		quiet := time.Since(l.last)
		l.mu.Unlock()
		if quiet > quietFor {
			return octets, packets
		}
		time.Sleep(quietFor - quiet + time.Millisecond)
	}
}

// throughPair plays connections through two proxies.
func (p *player) throughPair(conns []*recordedConn, args ...string) (octets, packets int64) {
	far := startProxyProcess(p.t, "127.0.0.1:0", "http://"+p.server.Addr().String()+"/service", "--no-offer")
	defer far.end()
	link := newMeteredLink(p.t, far.listen)
	near := startProxyProcess(p.t, "127.0.0.1:0", "http://"+link.listen.Addr().String()+"/service",
		append(args, "-v", "--tcp", "none")...)
	near.linked(1)
	p.run(conns, near.listen, nil)
	octets, packets = link.total(1200 * time.Millisecond) // the ends of connections are told within a second
	near.end()
	return octets, packets
}

// estimated is what estimate says of a capture.
func estimated(t *testing.T, octets []byte, args ...string) (r estimates.Report) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "plain.pcapng")
	require.NoError(t, os.WriteFile(name, octets, 0o600))
	var out, errs bytes.Buffer
	code := execute(t.Context(), command.Env{Out: &out, Err: &errs},
		append([]string{"estimate", name, "--link", "lte", "-o", "json", "-q"}, args...))
	require.Equal(t, exit.Done, code, "%s", &errs)
	var all struct{ Report estimates.Report }
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	return all.Report
}

// agrees plays a recording as it is, up to so many calls of connections, and so many of them,
// estimates what of that was captured, and plays it through pairs and tunnels that are there, all
// at once. So many packets may be more or less, whatever their number: what goes at one moment is
// in one packet or in two, as it happens, and more often in two with processes that the race
// detector makes slow.
func agrees(t *testing.T, recording []byte, most int, slack int64) {
	if shared.Raced {
		slack += 8
	}
	conns := recordedConns(t, recording, most)
	var captured bytes.Buffer
	rec := pcapng.NewRecorder(&captured, time.Now)
	p := newPlayer(t)
	p.run(conns, p.server.Addr().String(), func(c net.Conn) net.Conn { return rec.Conn(c) })
	require.NoError(t, rec.Close())
	var wait sync.WaitGroup
	measure := func(name string, is estimates.WayTraffic, took *int64, run func(*player) (octets, packets int64)) {
		is.Bytes, is.Packets = is.Bytes-40*2, is.Packets-2 // what opens a connection does not show on the link
		p := newPlayer(t)
		wait.Go(func() {
			for range 3 { // on a machine that is busy something may come late
				octets, packets := run(p)
				t.Logf("%s: %d bytes, estimated %d (%+.1f %%); %d packets, estimated %d", name, octets, is.Bytes,
					100*(float64(is.Bytes)/float64(octets)-1), packets, is.Packets)
				if abs(octets-is.Bytes) <= octets*3/100+40*slack && abs(packets-is.Packets) <= packets*5/100+slack {
					*took = octets
					return
				}
			}
			assert.Fail(t, "the estimate is wrong", name)
		})
	}
	var pair, byAddress, zlib, zstd int64
	r := estimated(t, captured.Bytes())
	measure("pair", estimate.TrafficOf(r.Total, estimates.FirstContact), &pair, func(p *player) (int64, int64) {
		return p.throughPair(conns)
	})
	for w, took := range map[estimates.Way]*int64{estimates.Zlib: &zlib, estimates.Zstd: &zstd} {
		measure(string(w), estimate.TrafficOf(r.Total, w), took, func(p *player) (int64, int64) {
			return p.throughTunnel(conns, w)
		})
	}
	addresses := estimated(t, captured.Bytes(), "--client-per-address")
	measure("pair, client per address", estimate.TrafficOf(addresses.Total, estimates.FirstContact), &byAddress,
		func(p *player) (int64, int64) { return p.throughPair(conns, "--client-per-address") })
	wait.Wait()
	tunnel := min(zlib, zstd)
	for _, c := range []struct {
		took  int64
		first estimates.Way
	}{{pair, r.Smallest.First}, {byAddress, addresses.Smallest.First}} {
		if 10*abs(c.took-tunnel) > tunnel { // else either may be, as exact as estimates are
			assert.Equal(t, c.took < tunnel, c.first == estimates.FirstContact, "hhfr or tunnel")
		}
	}
}

func abs(n int64) int64 { return max(n, -n) }

// TestEstimateAgreesWithProcesses: what estimate says of a recording of real clients is what two
// proxies, each a process, and tunnels take of the same traffic.
func TestEstimateAgreesWithProcesses(t *testing.T) {
	t.Parallel()
	agrees(t, shared.Read(t, shared.Testdata(t, "pcap", "pump.pcap")), 16, 0)
}

// So it is for all captures of the corpus that have SOAP.
func TestEstimateAgreesWithProcessesOnTheCorpus(t *testing.T) {
	dir := shared.Dir(t, "corpus", "pcap", "soap")
	for _, name := range []string{"corelight-omi-wsman", "dist_sys-soap-zeep-spyne",
		"suricata-output-eve-ftp-data-upnp"} { // another one lacks packets of its connections
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agrees(t, shared.Read(t, filepath.Join(dir, name+".pcap")), 1000, 2)
		})
	}
}

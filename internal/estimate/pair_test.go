package estimate

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// played is a call of a capture, and what has to happen before it.
type played struct {
	capturedCall
	conn  *playedConn
	at    time.Duration
	after *played // the call whose reply its client had last
	done  chan struct{}
}

// playedConn is a connection of a capture.
type playedConn struct {
	calls    []*played
	ends     bool
	byClient bool
	end      time.Duration // after the last reply, or at this time
}

// played returns the calls of a capture, in their order.
func playedCalls(t *testing.T, octets []byte) (calls []*played) {
	t.Helper()
	f, err := flow.Open(bytes.NewReader(octets))
	require.NoError(t, err)
	conns, clients := map[*connection]*playedConn{}, map[callerHost]*lastReplies{}
	var r *callReader
	r = &callReader{call: func(c *capturedCall) error {
		if conns[c.conn] == nil {
			conns[c.conn] = new(playedConn)
		}
		who := callerHost{c.conn.client.Addr(), c.conn.server}
		if clients[who] == nil {
			clients[who] = new(lastReplies)
		}
		p := &played{capturedCall: *c, conn: conns[c.conn], at: c.request.first.Sub(r.begun), done: make(chan struct{})}
		if n := clients[who].before(c.request.first); n > 0 {
			p.after = calls[n-1]
		}
		calls = append(calls, p)
		clients[who].add(c.reply.last, len(calls))
		p.conn.calls = append(p.conn.calls, p)
		return nil
	}, ended: func(c *connection, at time.Time, byClient bool) error {
		conns[c].ends, conns[c].byClient, conns[c].end = true, byClient, at.Sub(r.begun)
		return nil
	}}
	_, err = r.read([]*flow.File{f})
	require.NoError(t, err)
	return calls
}

// stage is where calls are played: clients, a link, and the server of the capture.
type stage struct {
	t       *testing.T
	place   *place
	line    *link.Link
	origin  *door
	entry   string
	through func(ctx context.Context, entry string, from net.Addr) (net.Conn, error) // how clients connect
	running sync.WaitGroup

	mu     sync.Mutex
	expect map[string][]*played
	open   []net.Conn // of clients
}

// settle is long enough for all ends of connections to be told.
const settle = 20 * time.Second

func newStage(t *testing.T, profile link.Profile, server netip.AddrPort) *stage {
	line, err := link.Relay(nil, profile)
	require.NoError(t, err)
	s := &stage{t: t, place: &place{places: map[string]*door{}}, line: line, expect: map[string][]*played{}}
	s.origin, s.entry = s.place.listen(server), server.String()
	s.through = func(ctx context.Context, entry string, _ net.Addr) (net.Conn, error) {
		return line.DialContext(s.place.dial)(ctx, "tcp", entry)
	}
	s.running.Go(func() {
		for {
			c, err := s.origin.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() { s.serve(c) })
		}
	})
	return s
}

func (s *stage) close() {
	_ = s.line.Close()
	_ = s.origin.Close()
	s.running.Wait()
}

// heard reads one message; onHead, if given, is called with its head first.
func heard(c io.Reader, buf *[]byte, method string, onHead func([]byte)) []byte {
	p := make([]byte, 4096)
	for {
		if h, n, err := http1.ParseHead(*buf, 0); err == nil {
			if onHead != nil {
				onHead((*buf)[:n])
				onHead = nil
			}
			f, err := http1.RequestFraming(&h)
			if h.IsReply() {
				f, err = http1.ReplyFraming(&h, method)
			}
			if err != nil {
				return nil
			}
			b := http1.NewBody(f)
			for n < len(*buf) && !b.Done() {
				_, k, _ := b.Write((*buf)[n:])
				n += k
			}
			if b.Done() {
				m := (*buf)[:n]
				*buf = (*buf)[n:]
				return m
			}
		}
		n, err := c.Read(p)
		if *buf = append(*buf, p[:n]...); err != nil {
			m := *buf
			*buf = nil
			return m
		}
	}
}

// serve replies as in the capture.
func (s *stage) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	var buf []byte
	for {
		request := heard(c, &buf, "", func(head []byte) { s.interim(c, head) })
		if len(request) == 0 {
			return
		}
		s.mu.Lock()
		waiting := s.expect[string(request)]
		if !assert.NotEmpty(s.t, waiting, "not a request of the capture: %.80q", request) {
			s.mu.Unlock()
			return
		}
		one := waiting[0]
		s.expect[string(request)] = waiting[1:]
		s.mu.Unlock()
		time.Sleep(one.server)
		say(c, &one.reply, 0, len(one.reply.octets))
		if k := one.conn; k.ends && !k.byClient && one == k.calls[len(k.calls)-1] {
			time.Sleep(max(k.end-one.at-one.reply.last.Sub(one.request.first), time.Microsecond))
			return
		}
	}
}

// interim sends what the client waits for before the body of its request.
func (s *stage) interim(c net.Conn, head []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, waiting := range s.expect {
		for _, one := range waiting {
			if bytes.HasPrefix(one.request.octets, head) {
				for _, m := range one.interim {
					_, _ = c.Write(m.octets)
				}
				return
			}
		}
	}
}

// say says a part of a message as it came; full packets go with what follows at once.
func say(c net.Conn, m *message, from, to int) {
	began, at := time.Now(), time.Duration(-1)
	for i, a := range m.came {
		switch {
		case a.Octets <= from, from == to:
			continue
		case i+1 < len(m.came) && m.came[i+1].At-a.At < together && link.PacketsOf(int64(a.Octets-from)+1) > 1:
			continue
		}
		if at < 0 {
			at = a.At
		}
		time.Sleep(time.Until(began.Add(a.At - at)))
		end := min(a.Octets, to)
		_, _ = c.Write(m.octets[from:end])
		from = end
	}
}

// beforeInterim is how much of a request a client sends before it waits.
func (p *played) beforeInterim() (n int) {
	if len(p.interim) == 0 {
		return len(p.request.octets)
	}
	for _, a := range p.request.came {
		if a.At < p.interim[0].first.Sub(p.request.first) {
			n = a.Octets
		}
	}
	return n
}

// play plays the calls, and returns the time that clients waited.
func (s *stage) play(calls []*played) (waited time.Duration) {
	began := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, p := range calls {
		p.done = make(chan struct{})
	}
	conns := map[*playedConn]bool{}
	for _, p := range calls {
		if conns[p.conn] {
			continue
		}
		conns[p.conn] = true
		all.Go(func() {
			took := s.client(p.conn, began)
			mu.Lock()
			defer mu.Unlock()
			waited += took
		})
	}
	all.Wait()
	return waited
}

// client is one connection of a client.
func (s *stage) client(k *playedConn, began time.Time) (waited time.Duration) {
	var c net.Conn
	var buf []byte
	for i, p := range k.calls {
		time.Sleep(time.Until(began.Add(p.at)))
		if p.after != nil {
			<-p.after.done
		}
		from := time.Now()
		if i == 0 {
			var err error
			c, err = s.through(s.t.Context(), s.entry, net.TCPAddrFromAddrPort(p.capturedCall.conn.client))
			require.NoError(s.t, err)
			if !p.connects {
				from = time.Now()
			}
		}
		s.mu.Lock()
		s.expect[string(p.request.octets)] = append(s.expect[string(p.request.octets)], p)
		s.mu.Unlock()
		first := p.beforeInterim()
		say(c, &p.request, 0, first)
		for _, m := range p.interim {
			assert.Equal(s.t, string(m.octets), string(heard(c, &buf, p.reply.method, nil)))
		}
		say(c, &p.request, first, len(p.request.octets))
		got := heard(c, &buf, p.reply.method, nil)
		assert.Equal(s.t, string(p.reply.octets), string(got))
		waited += time.Since(from)
		close(p.done)
	}
	if k.ends && k.byClient {
		time.Sleep(time.Until(began.Add(k.end)))
		_ = c.(interface{ CloseWrite() error }).CloseWrite()
	}
	if k.ends {
		_, _ = io.Copy(io.Discard, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, c)
	return waited
}

// figures are what was measured: bytes with the headers of packets, these, and time.
type figures struct {
	octets, packets int64
	waited          time.Duration
}

// counted measures what is done on the link.
func (s *stage) counted(do func() time.Duration) figures {
	before := s.line.Stats()
	waited := do()
	time.Sleep(settle)
	after := s.line.Stats()
	for _, c := range s.open {
		_ = c.Close()
	}
	s.open = nil
	time.Sleep(settle)
	return figures{after.Up.Wire + after.Down.Wire - before.Up.Wire - before.Down.Wire,
		after.Up.Packets + after.Down.Packets - before.Up.Packets - before.Down.Packets, waited}
}

// pair starts two proxies around the link.
func (s *stage) pair(server netip.AddrPort, near, far ctxstore.Store, mode principal.Mode) (end func()) {
	start := func(listen, upstream netip.AddrPort, store ctxstore.Store, mode principal.Mode,
		change func(*proxy.Config)) *proxy.Proxy {
		cfg := proxy.Config{Listen: s.place.listen(listen), Store: store, Coders: codersOf(store), Dial: s.place.dial,
			// the first bytes over the thinnest link take longer than the default
			Times: proxy.Times{Silence: time.Minute},
			Routes: proxy.To(&proxy.Upstream{Clients: mode,
				URL: &url.URL{Scheme: "http", Host: upstream.String(), Path: "/echo"}})}
		change(&cfg)
		p, err := proxy.Start(cfg)
		require.NoError(s.t, err)
		return p
	}
	between := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.200"), server.Port())
	entry := netip.MustParseAddrPort("192.0.2.201:1")
	f := start(between, server, far, mode, func(c *proxy.Config) { c.Transports = map[string]streamer.Transport{} })
	n := start(entry, between, near, mode, func(c *proxy.Config) {
		c.Transports = map[string]streamer.Transport{"tcp": s.line.Over(s.place)}
		c.Dial = s.line.DialContext(s.place.dial)
		c.Timeout = time.Minute
	})
	require.NoError(s.t, n.Linked(s.t.Context()))
	s.entry, s.through = entry.String(), s.place.dialFrom
	return func() {
		_ = n.Close()
		_ = f.Close()
	}
}

// live plays the calls of a capture over a link, by each way that can be.
func live(t *testing.T, calls []*played, profile link.Profile, mode principal.Mode) map[Way]figures {
	server := calls[0].capturedCall.conn.server
	got := map[Way]figures{}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, profile, server)
		defer s.close()
		got[Plain] = s.counted(func() time.Duration { return s.play(calls) })
	})
	first, met := FirstContact, MetBefore
	if mode == principal.ByConnection {
		first, met = ByConnection, ByConnectionMet
	}
	synctest.Test(t, func(t *testing.T) {
		near, far := memory.New(memory.Config{}), memory.New(memory.Config{})
		for _, way := range []Way{first, met} {
			s := newStage(t, profile, server)
			var end func()
			got[way] = s.counted(func() time.Duration {
				end = s.pair(server, near, far, mode)
				return s.play(calls)
			})
			end()
			s.close()
		}
		_, _ = near.Close(), far.Close()
	})
	return got
}

// agree compares an estimate with what a real pair does with the same calls.
func agree(t *testing.T, octets []byte, links ...string) {
	t.Helper()
	agreeFor(t, principal.ByProof, octets, links...)
}

// agreeFor compares an estimate for a kind of pair.
func agreeFor(t *testing.T, mode principal.Mode, octets []byte, links ...string) {
	t.Helper()
	cfg := Config{PerAddress: mode == principal.ByAddress}
	calls := playedCalls(t, octets)
	for _, name := range links {
		p, err := link.ParseProfile(name)
		require.NoError(t, err)
		cfg.Links = append(cfg.Links, p)
	}
	r, _, err := Run(t.Context(), cfg, Capture{Name: "capture", Octets: bytes.NewReader(octets)})
	require.NoError(t, err)
	// Those that open and end connections do not show where the test counts.
	estimated := func(way Way) (octets, packets int64, bare traffic) {
		bare = traffic{2 * packetHeaders, 2}
		if way == Plain {
			bare = traffic{r.Between[plain].Bytes, r.Between[plain].Packets}
		}
		is := r.Total[slices.Index(Ways(), way)]
		return is.Bytes - bare.Bytes, is.Packets - bare.Packets, bare
	}
	for i, p := range cfg.Links {
		// What happens at one moment is in another order each time, so that acknowledgements and
		// credit go together or apart, and a connection begins before or after the end of another.
		// So the least counts.
		least := live(t, calls, p, mode)
		if shared.Raced {
			continue // which looks at what goroutines share, and changes who comes first
		}
		for again := 0; again < 4 && slices.ContainsFunc(slices.Collect(maps.Keys(least)), func(way Way) bool {
			octets, packets, _ := estimated(way)
			return float64(least[way].octets) > 1.02*float64(octets) || least[way].packets > packets+1
		}); again++ {
			for way, f := range live(t, calls, p, mode) {
				if f.octets < least[way].octets {
					least[way] = f
				}
			}
		}
		for way, f := range least {
			at := slices.Index(Ways(), way)
			octets, packets, bare := estimated(way)
			t.Logf("%s %s: %d bytes, estimated %d (%+.1f %%); %d packets, estimated %d", p.Name, way, f.octets, octets,
				100*(float64(octets)/float64(f.octets)-1), f.packets, packets)
			assert.InEpsilon(t, f.octets, octets, 0.03, "bytes, %s %s", p.Name, way)
			assert.InDelta(t, f.packets, packets, max(1, 0.05*float64(f.packets)), "packets, %s %s", p.Name, way)
			if at >= anew {
				continue
			}
			on := r.Links[i].Ways[at]
			assert.InEpsilon(t, f.waited.Seconds(), on.Seconds, 0.05, "seconds, %s %s", p.Name, way)
			assert.InEpsilon(t, f.octets, on.Bytes-bare.Bytes, 0.03, "bytes on the link, %s %s", p.Name, way)
		}
	}
}

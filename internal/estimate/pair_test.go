package estimate

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/flow"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/proxy"
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
	through func(context.Context, string, string) (net.Conn, error) // how clients connect
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
	s.origin, s.entry, s.through = s.place.listen(server), server.String(), line.DialContext(s.place.dial)
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

// heard reads one message.
func heard(c io.Reader, buf *[]byte, method string) []byte {
	p := make([]byte, 4096)
	for {
		if h, n, err := http1.ParseHead(*buf, 0); err == nil {
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
		request := heard(c, &buf, "")
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
		_, _ = c.Write(one.reply.octets)
		if k := one.conn; k.ends && !k.byClient && one == k.calls[len(k.calls)-1] {
			time.Sleep(max(k.end-one.at-one.reply.last.Sub(one.request.first), time.Microsecond))
			return
		}
	}
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
			c, err = s.through(s.t.Context(), "tcp", s.entry)
			require.NoError(s.t, err)
			if !p.connects {
				from = time.Now()
			}
		}
		s.mu.Lock()
		s.expect[string(p.request.octets)] = append(s.expect[string(p.request.octets)], p)
		s.mu.Unlock()
		_, _ = c.Write(p.request.octets)
		got := heard(c, &buf, p.request.method)
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

// figures are what was measured: bytes with and without the headers of packets, and time.
type figures struct {
	octets, content int64
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
		after.Up.Octets + after.Down.Octets - before.Up.Octets - before.Down.Octets, waited}
}

// pair starts two proxies around the link.
func (s *stage) pair(server netip.AddrPort, near, far ctxstore.Store, perAddress bool) (end func()) {
	start := func(listen, upstream netip.AddrPort, store ctxstore.Store, perAddress bool,
		change func(*proxy.Config)) *proxy.Proxy {
		cfg := proxy.Config{Listen: s.place.listen(listen), Store: store, Coders: codersOf(store), Dial: s.place.dial,
			Silence: time.Minute, // the first bytes over the thinnest link take longer than the default
			Routes: proxy.To(&proxy.Upstream{PerAddress: perAddress,
				URL: &url.URL{Scheme: "http", Host: upstream.String(), Path: "/echo"}})}
		change(&cfg)
		p, err := proxy.Start(cfg)
		require.NoError(s.t, err)
		return p
	}
	between := netip.AddrPortFrom(netip.MustParseAddr("192.0.2.200"), server.Port())
	entry := netip.MustParseAddrPort("192.0.2.201:1")
	f := start(between, server, far, false, func(c *proxy.Config) { c.Transports = map[string]streamer.Transport{} })
	n := start(entry, between, near, perAddress, func(c *proxy.Config) {
		c.Transports = map[string]streamer.Transport{"tcp": s.line.Over(s.place)}
		c.Dial = s.through
		c.Timeout = time.Minute
	})
	require.NoError(s.t, n.Linked(s.t.Context()))
	s.entry, s.through = entry.String(), s.place.dial
	return func() {
		_ = n.Close()
		_ = f.Close()
	}
}

// live plays the calls of a capture over a link, by each way that can be.
func live(t *testing.T, calls []*played, profile link.Profile, perAddress bool) map[Way]figures {
	server := calls[0].capturedCall.conn.server
	got := map[Way]figures{}
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, profile, server)
		defer s.close()
		got[Plain] = s.counted(func() time.Duration { return s.play(calls) })
	})
	for _, then := range []Way{Steady, MetBefore} {
		synctest.Test(t, func(t *testing.T) {
			near, far := memory.New(memory.Config{}), memory.New(memory.Config{})
			s := newStage(t, profile, server)
			var end func()
			begin := func() time.Duration {
				end = s.pair(server, near, far, perAddress)
				return s.play(calls)
			}
			got[FirstContact] = s.counted(begin)
			if then == Steady {
				got[Steady] = s.counted(func() time.Duration { return s.play(calls) })
			} else {
				end()
				s.close()
				s = newStage(t, profile, server)
				got[MetBefore] = s.counted(begin)
			}
			end()
			s.close()
			_, _ = near.Close(), far.Close()
		})
	}
	return got
}

// packetHeader is what a packet takes beside its content, in bytes.
const packetHeader = 40

// agree compares an estimate with what a real pair does with the same calls.
func agree(t *testing.T, octets []byte, links ...string) {
	t.Helper()
	agreeFor(t, Config{}, octets, links...)
}

// agreeFor compares an estimate for a kind of pair.
func agreeFor(t *testing.T, cfg Config, octets []byte, links ...string) {
	t.Helper()
	calls := playedCalls(t, octets)
	ended := 0
	for _, c := range calls {
		if c.conn.ends && c == c.conn.calls[0] {
			ended++
		}
	}
	for _, name := range links {
		p, err := link.ParseProfile(name)
		require.NoError(t, err)
		cfg.Links = append(cfg.Links, p)
	}
	r, _, err := Run(t.Context(), cfg, Capture{Name: "capture", Octets: bytes.NewReader(octets)})
	require.NoError(t, err)
	for i, p := range cfg.Links {
		for way, f := range live(t, calls, p, cfg.PerAddress) {
			is := r.Links[i].Ways[way.index()]
			t.Logf("%s %s: %d bytes, estimated %d (%+.1f %%); %.3f s, estimated %.3f (%+.1f %%)", p.Name, way, f.octets,
				is.Bytes, 100*(float64(is.Bytes)/float64(f.octets)-1), f.waited.Seconds(), is.Seconds,
				100*(is.Seconds/f.waited.Seconds()-1))
			// a frame more or less, by who comes first, and at the end of each connection
			frames := float64(32 + 16*ended)
			assert.InDelta(t, f.content, is.Bytes-packetHeader*is.Packets, 0.02*float64(f.content)+frames,
				"content, %s %s", p.Name, way)
			// What an end says at one moment is in one packet or in two, as it happens: twice at
			// the end of a connection, and where the stream is opened.
			either := packetHeader * float64(2+2*ended)
			assert.InDelta(t, f.octets, is.Bytes, 0.02*float64(f.octets)+frames+either, "bytes, %s %s", p.Name, way)
			assert.InEpsilon(t, f.waited.Seconds(), is.Seconds, 0.05, "seconds, %s %s", p.Name, way)
		}
	}
}

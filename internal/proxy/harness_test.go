package proxy_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds a test's wait for what must come; it is no measurement.
const patience = 2 * time.Minute

// origin is a server on raw sockets: it records what each connection sends and replies by a
// function.
type origin struct {
	l    net.Listener
	wait sync.WaitGroup

	mu    sync.Mutex
	conns []*originConn
	open  map[net.Conn]bool
}

type originConn struct {
	net.Conn
	mu  sync.Mutex
	got bytes.Buffer
}

func (c *originConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got.Write(p[:n])
	return n, err
}

func startOrigin(t testing.TB, addr string, serve func(c net.Conn)) *origin {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	o := &origin{l: l, open: map[net.Conn]bool{}}
	o.wait.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			c := &originConn{Conn: conn}
			o.mu.Lock()
			o.conns = append(o.conns, c)
			o.open[conn] = true
			o.mu.Unlock()
			o.wait.Go(func() {
				serve(c)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(o.close)
	return o
}

func (o *origin) close() {
	_ = o.l.Close()
	o.mu.Lock()
	for c := range o.open {
		_ = c.Close()
	}
	o.mu.Unlock()
	o.wait.Wait()
}

func (o *origin) url() *url.URL {
	return &url.URL{Scheme: "http", Host: o.l.Addr().String(), Path: "/service"}
}

// question is how an offer of a proxy begins.
const question = "OPTIONS /service HTTP/1.1\r\nHost: "

// inEachWay runs a test for each mode in which proxies agree.
func inEachWay(t *testing.T, test func(t *testing.T, mode negotiate.Mode)) {
	for _, mode := range []negotiate.Mode{negotiate.Auto, negotiate.Explicit} {
		t.Run(string(mode), func(t *testing.T) { test(t, mode) })
	}
}

// isOffer reports whether a request is an offer of a proxy: an OPTIONS request, or, in the explicit
// mode, one in SOAP.
func isOffer(h *http1.Head) bool {
	return string(h.Method()) == http.MethodOptions || bytes.Contains(h.Octets, []byte(negotiate.OfferAction))
}

// received is what connections sent, except offers and silent ones, in the order of their first
// bytes as far as tests need it.
func (o *origin) received() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.conns {
		c.mu.Lock()
		if s := c.got.String(); s != "" && !strings.Contains(s, "urn:hhfr:negotiation:1") &&
			!strings.HasPrefix(s, question) {
			all = append(all, s)
		}
		c.mu.Unlock()
	}
	return all
}

func (o *origin) offers() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.conns {
		c.mu.Lock()
		n += strings.Count(c.got.String(), question)
		c.mu.Unlock()
	}
	return n
}

// requests reads HTTP requests of a connection, one after another, head and raw body.
type requests struct {
	conn net.Conn
	buf  []byte
}

func (r *requests) more() error {
	p := make([]byte, 4096)
	n, err := r.conn.Read(p)
	r.buf = append(r.buf, p[:n]...)
	if n > 0 {
		return nil
	}
	return err
}

func (r *requests) head() (http1.Head, error) {
	for {
		h, n, err := http1.ParseHead(r.buf, 0)
		if err == nil {
			h, _, _ = http1.ParseHead(bytes.Clone(r.buf[:n]), 0)
			r.buf = r.buf[n:]
			return h, nil
		}
		if !errors.Is(err, http1.ErrIncomplete) {
			return h, err
		}
		if err := r.more(); err != nil {
			return h, err
		}
	}
}

// body reads the body after h; entity is without its framing.
func (r *requests) body(h *http1.Head) (raw, entity []byte, err error) {
	f, err := http1.RequestFraming(h)
	if err != nil {
		return nil, nil, err
	}
	b := http1.NewBody(f)
	for !b.Done() {
		if len(r.buf) == 0 {
			if err := r.more(); err != nil {
				return raw, entity, err
			}
		}
		e, n, err := b.Write(r.buf)
		raw, entity = append(raw, r.buf[:n]...), append(entity, e...)
		r.buf = r.buf[n:]
		if err != nil {
			return raw, entity, err
		}
	}
	return raw, entity, nil
}

// server is an origin that replies to each request as reply says; nil closes the connection.
func server(reply func(h *http1.Head, entity []byte) []byte) func(net.Conn) {
	return func(c net.Conn) {
		r := &requests{conn: c}
		for {
			h, err := r.head()
			if err != nil {
				return
			}
			_, entity, err := r.body(&h)
			if err != nil {
				return
			}
			out := reply(&h, entity)
			if out == nil {
				return
			}
			if _, err := c.Write(out); err != nil {
				return
			}
		}
	}
}

// end is a proxy of a test, closed when that ends.
type end struct {
	*proxy.Proxy
	store ctxstore.Store
}

func (e end) url() *url.URL {
	return &url.URL{Scheme: "http", Host: e.Addrs()["http"].String(), Path: "/service"}
}

// startProxy starts one, and waits for the end of its first offer: calls would be plain meanwhile.
func startProxy(t testing.TB, addr string, upstream *url.URL, change func(*settings)) end {
	t.Helper()
	p := startOffering(t, addr, upstream, change)
	_ = p.Linked(t.Context())
	return p
}

// linked waits until calls go over a stream.
func (e end) linked(t testing.TB) {
	t.Helper()
	require.Eventually(t, func() bool { return e.Linked(t.Context()) == nil }, patience, 10*time.Millisecond)
}

// settings are those of a proxy, and of its upstream behind its routes.
type settings struct {
	proxy.Config
	proxy.Upstream
}

// startOffering starts one whose first offer may be in progress still.
func startOffering(t testing.TB, addr string, upstream *url.URL, change func(*settings)) end {
	t.Helper()
	store := memory.New(memory.Config{})
	listen := func(addr string) net.Listener {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
		require.NoError(t, err)
		return l
	}
	cfg := settings{proxy.Config{Listen: listen(addr), Store: store,
		Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))}, proxy.Upstream{URL: upstream}}
	cfg.Silence, cfg.Timeout = patience, patience // a busy machine may be late
	if os.Getenv("HHFR_TEST_LOG") != "" {
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if change != nil {
		change(&cfg)
	}
	if cfg.URL != nil {
		cfg.Routes = append(cfg.Routes, proxy.Route{Upstream: &cfg.Upstream})
	}
	p, err := proxy.Start(cfg.Config)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = p.Close()
		_ = store.Close()
	})
	return end{p, store}
}

// pair starts two proxies in front of an upstream.
func pair(t testing.TB, upstream *url.URL, change func(*settings)) (near, far end) {
	t.Helper()
	far = startProxy(t, "127.0.0.1:0", upstream, change)
	return startProxy(t, "127.0.0.1:0", far.url(), change), far
}

// forwardings start a proxy before an origin that forwards in one of the ways there are, and wait
// until it does. Both ends of the pair have change.
var forwardings = map[string]func(t testing.TB, o *origin, change func(*settings)) end{
	"pair": func(t testing.TB, o *origin, change func(*settings)) end {
		near, _ := pair(t, o.url(), change)
		near.linked(t)
		return near
	},
	"plain": func(t testing.TB, o *origin, change func(*settings)) end {
		return startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
			change(c)
			c.PlainOnly = true
		})
	},
	"plain by routes": func(t testing.TB, o *origin, change func(*settings)) end {
		return startProxy(t, "127.0.0.1:0", nil, func(c *settings) {
			change(c)
			u := &proxy.Upstream{URL: o.url()}
			c.PlainOnly, c.Routes = true, []proxy.Route{{Path: "/", Upstream: u}, {Path: "/service", Upstream: u}}
		})
	},
}

// client is a raw connection.
type client struct {
	t testing.TB
	*net.TCPConn
	got []byte
}

func connect(t testing.TB, to *url.URL) *client {
	t.Helper()
	return connectFrom(t, netip.MustParseAddr("127.0.0.1"), to)
}

// connectFrom connects from an address of this machine.
func connectFrom(t testing.TB, from netip.Addr, to *url.URL) *client {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0))}
	c, err := d.DialContext(t.Context(), "tcp", to.Host)
	if errors.Is(err, syscall.EADDRNOTAVAIL) && from != netip.MustParseAddr("127.0.0.1") {
		t.Skipf("this machine has no address %s", from)
	}
	require.NoError(t, err)
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	t.Cleanup(func() { _ = c.Close() })
	return &client{t: t, TCPConn: c.(*net.TCPConn)}
}

func (c *client) say(s string) {
	c.t.Helper()
	_, err := io.WriteString(c.TCPConn, s)
	require.NoError(c.t, err)
}

// hear reads until everything read since the last call ends with end.
func (c *client) hear(end string) string {
	c.t.Helper()
	p := make([]byte, 4096)
	for !bytes.HasSuffix(c.got, []byte(end)) {
		n, err := c.Read(p)
		c.got = append(c.got, p[:n]...)
		if err != nil {
			require.NoError(c.t, err, "so far: %q", c.got)
		}
	}
	s := string(c.got)
	c.got = nil
	return s
}

// ends waits until the connection has ended, in order or not; nothing comes before that.
func (c *client) ends() {
	c.t.Helper()
	b, _ := io.ReadAll(c.TCPConn)
	assert.Empty(c.t, append(c.got, b...))
}

// rest reads to the end.
func (c *client) rest() string {
	c.t.Helper()
	b, err := io.ReadAll(c.TCPConn)
	require.NoError(c.t, err, "so far: %q", b)
	b = append(c.got, b...)
	c.got = nil
	return string(b)
}

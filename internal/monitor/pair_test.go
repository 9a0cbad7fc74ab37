package monitor_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/monitor"
	"github.com/hhfr/hhfr/internal/monitor/prometheus"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/streamer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = time.Minute

// watched is a proxy that counts, and its monitor.
type watched struct {
	*proxy.Proxy
	meter   *meter.Meter
	monitor string // URL
}

func startWatched(t *testing.T, upstream string, change func(*proxy.Config, *proxy.Upstream)) *watched {
	t.Helper()
	u, err := url.Parse(upstream)
	require.NoError(t, err)
	listen := func() net.Listener {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		require.NoError(t, err)
		return l
	}
	store := memory.New(memory.Config{})
	up := &proxy.Upstream{URL: u}
	w := &watched{meter: meter.New(time.Now())}
	cfg := proxy.Config{Listen: listen(), Routes: proxy.To(up), Store: store, Meter: w.meter,
		Coders: coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))}
	if change != nil {
		change(&cfg, up)
	}
	w.Proxy, err = proxy.Start(cfg)
	require.NoError(t, err)
	l := listen()
	m := monitor.Start(l, w.meter, new(pcapng.Tap), nil, slog.New(slog.DiscardHandler))
	w.monitor = "http://" + l.Addr().String()
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, w.Close())
	})
	return w
}

func (w *watched) url() string { return "http://" + w.Addrs()["http"].String() + "/service" }

// get asks a monitor, on a connection of its own.
func get(t *testing.T, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(body)
}

func (w *watched) metrics(t *testing.T) *exposition {
	t.Helper()
	_, text := get(t, w.monitor+"/metrics")
	return parseExposition(t, text)
}

// await waits until something holds that a test has no other sign of. It is asked in the goroutine
// of the test, which may fail meanwhile.
func await(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "waited in vain")
	}
}

// after waits until so many calls have ended, which clients see a moment before they are counted.
func (w *watched) after(t *testing.T, role string, calls int) (e *exposition) {
	t.Helper()
	await(t, func() bool {
		e = w.metrics(t)
		return e.sum("hhfr_calls_total", "role", role) == float64(calls)
	})
	return e
}

// rawClient sends requests on one connection, byte by byte as they are given, and counts.
type rawClient struct {
	t              *testing.T
	conn           net.Conn
	in             *bufio.Reader
	sent, received int
}

func dialRaw(t *testing.T, to string) *rawClient {
	t.Helper()
	u, err := url.Parse(to)
	require.NoError(t, err)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := &rawClient{t: t, conn: conn}
	c.in = bufio.NewReader(countingReader{conn, &c.received})
	return c
}

type countingReader struct {
	io.Reader
	n *int
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	*r.n += n
	return n, err
}

// call sends a request in these parts, with a pause in which the first one is read alone, and reads
// its reply.
func (c *rawClient) call(parts ...string) {
	c.t.Helper()
	for i, part := range parts {
		if i > 0 {
			time.Sleep(20 * time.Millisecond)
		}
		n, err := io.WriteString(c.conn, part)
		require.NoError(c.t, err)
		c.sent += n
	}
	resp, err := http.ReadResponse(c.in, nil)
	require.NoError(c.t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, resp.StatusCode)
}

func envelope(operation string, n int) string {
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body>`+
		`<o:%s xmlns:o="urn:o"><o:n>%d</o:n><o:text>as long as a message of a small service</o:text></o:%s>`+
		`</s:Body></s:Envelope>`, operation, n, operation)
}

func post(body string, fields ...string) string {
	return fmt.Sprintf("POST /service HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\n"+
		"Content-Length: %d\r\n%s\r\n%s", len(body), strings.Join(fields, ""), body)
}

// echo answers with what it got, and knows nothing of hhfr.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/xml")
	_, _ = io.Copy(w, r.Body)
})

// startPair starts a far and a near proxy before a server, and waits for their stream.
func startPair(t *testing.T) (near, far *watched) {
	t.Helper()
	origin := httptest.NewServer(echo)
	t.Cleanup(origin.Close)
	far = startWatched(t, origin.URL+"/service", func(c *proxy.Config, _ *proxy.Upstream) {
		c.Transports = map[string]streamer.Transport{}
	})
	near = startWatched(t, far.url(), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, near.Linked(ctx))
	return near, far
}

// TestCountsOfAPair: what a pair counts is what was sent, byte for byte, at both ends, and by
// operation: of messages that come whole, in two parts, and chunked.
func TestCountsOfAPair(t *testing.T) {
	near, far := startPair(t)
	c := dialRaw(t, near.url())
	for i := range 10 {
		c.call(post(envelope("poll", i)))
	}
	body := envelope("setValue", 1)
	head, rest, _ := strings.Cut(post(body, "SOAPAction: \"urn:o/another\"\r\n"), "\r\n\r\n")
	c.call(head+"\r\n\r\n", rest)
	c.call("POST /service HTTP/1.1\r\nHost: x\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body))
	c.call(post("", "SOAPAction: \"urn:o/we\\\"ird\\\"\r\n"))
	c.call("GET /service HTTP/1.1\r\nHost: x\r\n\r\n")

	n, f := near.after(t, "near", 14), far.after(t, "far", 14)
	for role, e := range map[string]*exposition{"near": n, "far": f} {
		for metric, labels := range map[string][2]string{
			"hhfr_http_bytes_total": {"request", "reply"}, "hhfr_operation_http_bytes_total": {"request", "reply"},
		} {
			request, reply := e.sum(metric, "role", role, "direction", labels[0]), e.sum(metric, "direction", labels[1])
			assert.EqualValues(t, c.sent, request, "%s %s", role, metric)
			assert.EqualValues(t, c.received, reply, "%s %s", role, metric)
		}
		for operation, calls := range map[string]float64{"poll": 10, "setValue": 2, `we\"ird\`: 1, "-": 1} {
			assert.Equal(t, calls, e.sum("hhfr_operation_calls_total", "role", role, "operation", operation), operation)
		}
		assert.EqualValues(t, 14, e.sum("hhfr_operation_call_seconds_count", "role", role, "way", "stream"))
		assert.EqualValues(t, 14, e.sum("hhfr_operation_call_seconds_bucket", "role", role, "le", "+Inf"))
		assert.InDelta(t, e.sum("hhfr_call_seconds_total", "role", role),
			e.sum("hhfr_operation_call_seconds_sum", "role", role), 1e-6)
		assert.Zero(t, e.sum("hhfr_calls_failed_total"))
		assert.Zero(t, e.sum("hhfr_calls_in_progress"))
		assert.Positive(t, e.sum("hhfr_call_seconds_total"))
		assert.Positive(t, e.sum("hhfr_added_seconds_total"))
		assert.Less(t, e.sum("hhfr_added_seconds_total"), e.sum("hhfr_call_seconds_total"))
	}
	assert.Positive(t, n.sum("hhfr_link_bytes_total"))
	for sent, received := range map[string]string{"sent": "received", "received": "sent"} {
		for _, metric := range []string{"hhfr_link_bytes_total", "hhfr_shapes_total"} {
			assert.Equal(t, n.sum(metric, "direction", sent), f.sum(metric, "direction", received), metric)
		}
		for _, operation := range []string{"poll", "setValue", "-"} {
			metric := "hhfr_operation_link_bytes_total"
			assert.Equal(t, n.sum(metric, "operation", operation, "direction", sent),
				f.sum(metric, "operation", operation, "direction", received), operation)
			assert.Positive(t, n.sum(metric, "operation", operation, "direction", sent), operation)
		}
	}
	assert.Less(t, n.sum("hhfr_operation_link_bytes_total"), n.sum("hhfr_link_bytes_total"),
		"hello and shapes are in one")
	assert.Equal(t, n.sum("hhfr_link_bytes_total")/n.sum("hhfr_http_bytes_total"), n.sum("hhfr_ratio"))
	assert.InDelta(t, n.sum("hhfr_ratio"), f.sum("hhfr_ratio"), 1e-12)
	assert.EqualValues(t, 1, n.sum("hhfr_streams", "role", "near"))
	assert.EqualValues(t, 1, f.sum("hhfr_streams", "role", "far"))
}

// TestReconnectsAreCounted: counters outlive the streams that they are of.
func TestReconnectsAreCounted(t *testing.T) {
	origin := httptest.NewServer(echo)
	t.Cleanup(origin.Close)
	far := startWatched(t, origin.URL+"/service", nil)
	addr := far.Addrs()["http"].String()
	near := startWatched(t, far.url(), func(_ *proxy.Config, to *proxy.Upstream) { to.RememberFor = time.Millisecond })
	require.NoError(t, near.Linked(t.Context()))
	dialRaw(t, near.url()).call(post(envelope("poll", 1)))
	before := near.after(t, "near", 1)
	require.NoError(t, far.Close())
	await(t, func() bool { return near.metrics(t).sum("hhfr_streams") == 0 })
	again := startWatched(t, origin.URL+"/service", func(c *proxy.Config, _ *proxy.Upstream) {
		_ = c.Listen.Close()
		var err error
		c.Listen, err = new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
		require.NoError(t, err)
	})
	var e *exposition
	await(t, func() bool {
		e = near.metrics(t)
		return e.sum("hhfr_streams") == 1
	})
	assert.EqualValues(t, 1, e.sum("hhfr_reconnects_total"))
	assert.EqualValues(t, 2, e.sum("hhfr_streams_opened_total"))
	dialRaw(t, near.url()).call(post(envelope("poll", 2)))
	e = near.after(t, "near", 2)
	assert.Greater(t, e.sum("hhfr_link_bytes_total"), before.sum("hhfr_link_bytes_total"))
	again.after(t, "far", 1)
}

// TestPlainIsCounted: what goes without a stream is counted with its reason and its bytes, and the
// attempts that failed are.
func TestPlainIsCounted(t *testing.T) {
	origin := httptest.NewServer(echo)
	t.Cleanup(origin.Close)
	near := startWatched(t, origin.URL+"/service", nil)
	require.Error(t, near.Linked(t.Context()))
	c := dialRaw(t, near.url())
	c.call(post(envelope("poll", 1)))
	var e *exposition
	await(t, func() bool { // bytes are counted as they pass, the call when it is over
		e = near.metrics(t)
		return e.sum("hhfr_plain_bytes_total", "reason", "no_partner", "direction", "reply") == float64(c.received) &&
			e.sum("hhfr_operation_call_seconds_count") > 0 && e.sum("hhfr_calls_total") > 0 &&
			e.sum("hhfr_plain_calls_total") > 0 && e.sum("hhfr_fall_backs_total") > 0
	})
	for _, metric := range []string{"hhfr_plain_calls_total", "hhfr_plain_connections_total", "hhfr_fall_backs_total"} {
		assert.EqualValues(t, 1, e.sum(metric, "reason", "no_partner"), metric)
	}
	assert.EqualValues(t, 1, e.sum("hhfr_calls_total", "way", "plain"))
	assert.EqualValues(t, 1, e.sum("hhfr_operation_call_seconds_count", "operation", "poll", "way", "plain"))
	assert.EqualValues(t, c.sent, e.sum("hhfr_plain_bytes_total", "reason", "no_partner", "direction", "request"))
	assert.EqualValues(t, 1, e.sum("hhfr_stream_failures_total", "reason", "no_partner"))
	assert.Zero(t, e.sum("hhfr_streams"))
	assert.Zero(t, e.sum("hhfr_stream_blocked"))
	assert.NotContains(t, e.families(), "hhfr_ratio", "a ratio of nothing")
}

// absent are metrics of what a pair did not do, or of what not every system knows.
var absent = regexp.MustCompile("_plain_|_fall_backs_|_failures_|round_trip")

var metricRow = regexp.MustCompile("(?m)^\\| `(hhfr_\\w+)` \\| (\\w+) \\| (.*?) \\|")

// TestMetricsPage: docs/metrics.md has a row for each metric that a pair exports, with its type and
// its labels, and no other.
func TestMetricsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "metrics.md"))
	require.NoError(t, err)
	kinds, labels := map[string]string{}, map[string]string{}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		kinds[row[1]], labels[row[1]] = row[2], row[3]
	}
	want := map[string]string{}
	for _, d := range prometheus.Describe() {
		want[d[0]] = d[1]
	}
	require.Equal(t, want, kinds)

	near, far := startPair(t)
	dialRaw(t, near.url()).call(post(envelope("poll", 1)))
	seen := map[string]bool{}
	for role, w := range map[string]*watched{"near": near, "far": far} {
		e := w.after(t, role, 1)
		for name, kind := range e.families() {
			seen[name] = true
			assert.Equal(t, kinds[name], kind, name)
		}
		for series := range e.values {
			name, _, _ := strings.Cut(series, "{")
			if base := histogramPart.ReplaceAllString(name, ""); kinds[base] == "histogram" {
				name = base
			}
			for label := range e.labels[series] {
				if strings.HasPrefix(name, "hhfr_") {
					assert.Contains(t, labels[name], "`"+label+"`", series)
				}
			}
		}
	}
	for name := range kinds {
		if !absent.MatchString(name) {
			assert.True(t, seen[name], "%s is on the page, and a pair does not export it", name)
		}
	}
}

// TestStatus: a browser gets the page, which names no other host, all others JSON with the counts.
func TestStatus(t *testing.T) {
	near, _ := startPair(t)
	dialRaw(t, near.url()).call(post(envelope("poll", 1)))
	near.after(t, "near", 1)
	resp, page := get(t, near.monitor+"/", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	assert.Equal(t, "text/html; charset=utf-8", resp.Header.Get("Content-Type"))
	assert.Contains(t, resp.Header.Get("Content-Security-Policy"), "default-src 'none'")
	assert.NotRegexp(t, `(?i)https?://|src=|innerHTML`, page)
	for _, header := range [][]string{nil, {"Accept", "application/json"}, {"Accept", "*/*"}} {
		resp, text := get(t, near.monitor+"/status", header...)
		assert.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		var s meter.Snapshot
		require.NoError(t, json.Unmarshal([]byte(text), &s))
		assert.Equal(t, 1, s.Version)
		require.Len(t, s.Upstreams, 1)
		assert.EqualValues(t, 1, s.Upstreams[0].Calls)
		require.Len(t, s.Operations, 1)
		assert.Equal(t, "poll", s.Operations[0].Operation)
	}
	resp, _ = get(t, near.monitor+"/nothing")
	assert.Equal(t, http.StatusNotFound, resp.StatusCode)
	resp, text := get(t, near.monitor+"/healthz")
	assert.Equal(t, http.StatusOK, resp.StatusCode)
	assert.Equal(t, "ok\n", text)
}

// TestProfilesAreForThisMachine: by its address, and by a name that no page in a browser can make
// up.
func TestProfilesAreForThisMachine(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	m := monitor.Start(l, meter.New(time.Now()), new(pcapng.Tap), nil, slog.New(slog.DiscardHandler))
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	for _, c := range []struct {
		from, host string
		code       int
	}{
		{"127.0.0.1:5", "127.0.0.1:9101", http.StatusOK},
		{"[::1]:5", "localhost:9101", http.StatusOK},
		{"[::ffff:127.0.0.1]:5", "[::1]:9101", http.StatusOK},
		{"192.0.2.1:5", "127.0.0.1:9101", http.StatusForbidden},
		{"127.0.0.1:5", "evil.example:9101", http.StatusForbidden},
		{"127.0.0.1:5", "192.0.2.1", http.StatusForbidden},
	} {
		for _, name := range []string{"", "heap", "goroutine?debug=1", "profile?seconds=0.01", "trace?seconds=0.01"} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/pprof/"+name, nil)
			r.RemoteAddr, r.Host = c.from, c.host
			w := httptest.NewRecorder()
			m.ServeHTTP(w, r)
			assert.Equal(t, c.code, w.Code, "%s from %s by %s", name, c.from, c.host)
			assert.NotEmpty(t, w.Body.Bytes())
		}
	}
	for name, code := range map[string]int{
		"none": 404, "profile?seconds=-1": 400, "profile?seconds=x": 400, "trace?seconds=1e9": 400,
	} {
		resp, _ := get(t, "http://"+l.Addr().String()+"/debug/pprof/"+name)
		assert.Equal(t, code, resp.StatusCode, name)
	}
	m.Ending()
	resp, _ := get(t, "http://"+l.Addr().String()+"/healthz")
	assert.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
}

// TestOperationInASecondPart: the operation of a request whose body comes long after its head is
// known to both ends, and has all bytes of the call on the link, those of the head included.
func TestOperationInASecondPart(t *testing.T) {
	near, far := startPair(t)
	c := dialRaw(t, near.url())
	body := envelope("setValue", 1)
	head, _, _ := strings.Cut(post(body), "\r\n\r\n")
	_, err := io.WriteString(c.conn, head+"\r\n\r\n")
	require.NoError(t, err)
	await(t, func() bool { // the server has the head
		return far.metrics(t).sum("hhfr_http_bytes_total", "role", "far", "direction", "request") > 0
	})
	c.call(body)
	n, f := near.after(t, "near", 1), far.after(t, "far", 1)
	for sent, received := range map[string]string{"sent": "received", "received": "sent"} {
		on := n.sum("hhfr_operation_link_bytes_total", "operation", "setValue", "direction", sent)
		assert.Positive(t, on)
		assert.Equal(t, on, f.sum("hhfr_operation_link_bytes_total", "direction", received))
		assert.Equal(t, on, n.sum("hhfr_operation_link_bytes_total", "direction", sent))
	}
}

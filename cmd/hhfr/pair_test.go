package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// proxyProcess is a `hhfr proxy` of its own process.
type proxyProcess struct {
	t      testing.TB
	cmd    *exec.Cmd
	listen string
	errs   said
	out    *bufio.Reader // what it prints after its addresses

	addresses map[string]string // by what listens there
	store     string
}

func startProxyProcess(t testing.TB, listen, upstream string, args ...string) *proxyProcess {
	t.Helper()
	return startCommand(t, exec.CommandContext(t.Context(), "hhfr",
		append([]string{"proxy", "--listen", listen, "--upstream", upstream, "--store", "mem:", "-o", "json", "-q"},
			args...)...))
}

// startCommand is startProxyProcess for a command that becomes such a process.
func startCommand(t testing.TB, cmd *exec.Cmd) *proxyProcess {
	t.Helper()
	p := &proxyProcess{t: t, cmd: cmd}
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	p.out = bufio.NewReader(out)
	line, err := p.out.ReadBytes('\n')
	require.NoError(t, err, "%s", &p.errs)
	var said struct {
		Addresses map[string]string
		Store     string
	}
	require.NoError(t, json.Unmarshal(line, &said))
	p.listen, p.addresses, p.store = said.Addresses["http"], said.Addresses, said.Store
	return p
}

// linked waits until the process, started with -v, has had that many streams: before that, calls
// are plain.
func (p *proxyProcess) linked(streams int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		return strings.Count(p.errs.String(), "msg=session ") >= streams
	}, time.Minute, 10*time.Millisecond)
}

// told waits until the process has written this to stderr.
func (p *proxyProcess) told(what string) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		return strings.Contains(p.errs.String(), what)
	}, time.Minute, 10*time.Millisecond)
}

// kill sends SIGKILL, and waits until the process is gone.
func (p *proxyProcess) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// end ends the process as Ctrl-C does; it must end in order.
func (p *proxyProcess) end() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(os.Interrupt))
	require.NoError(p.t, p.cmd.Wait(), "%s", &p.errs)
}

func (p *proxyProcess) url(path string) string { return "http://" + p.listen + path }

// numbered is an origin that notes the requests it got, and echoes each.
type numbered struct {
	mu   sync.Mutex
	seen map[string]int
}

var requestNumber = regexp.MustCompile(`<n>(\d+)</n>`)

func (o *numbered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	n := requestNumber.FindSubmatch(body)
	if n == nil {
		http.NotFound(w, r) // an offer
		return
	}
	o.mu.Lock()
	o.seen[string(n[1])]++
	o.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	_, _ = w.Write(body)
}

// callers are clients that send numbered requests until stop, and check the outcome of each.
type callers struct {
	t                       *testing.T
	to                      string
	next                    atomic.Int64
	through, excused, ended atomic.Int64
	stop                    atomic.Bool
	wait                    sync.WaitGroup

	mu      sync.Mutex
	unsent  []string // requests that the client was told were not sent
	answers map[string]bool
}

func (c *callers) start(clients int) {
	c.answers = map[string]bool{}
	for range clients {
		c.wait.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for !c.stop.Load() {
				c.call(client, int(c.next.Add(1)))
			}
		})
	}
}

func (c *callers) call(client *http.Client, number int) {
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.to, strings.NewReader(envelope(number)))
	if !assert.NoError(c.t, err) {
		return
	}
	r.Header.Set("Content-Type", "text/xml; charset=utf-8")
	resp, err := client.Do(r)
	if err != nil {
		c.ended.Add(1)
		return
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		c.ended.Add(1)
	case resp.StatusCode == http.StatusOK:
		assert.Equal(c.t, envelope(number), string(body), "the reply to another request")
		c.mu.Lock()
		c.answers[fmt.Sprint(number)] = true
		c.mu.Unlock()
		c.through.Add(1)
	default:
		assert.Contains(c.t, []int{http.StatusBadGateway, http.StatusServiceUnavailable}, resp.StatusCode, string(body))
		assert.Contains(c.t, string(body), "hhfr: ")
		if strings.Contains(string(body), "was not") {
			c.mu.Lock()
			c.unsent = append(c.unsent, fmt.Sprint(number))
			c.mu.Unlock()
		}
		c.excused.Add(1)
	}
}

// more waits until that many more calls are complete.
func (c *callers) more(calls int64) {
	for from := c.through.Load(); c.through.Load() < from+calls; {
		if c.t.Context().Err() != nil {
			return
		}
		time.Sleep(5 * time.Millisecond) // the clients determine how long this takes
	}
}

// farEnd is the near proxy's upstream: three kinds take turns at one address.
type farEnd struct {
	t      *testing.T
	addr   string
	origin *httptest.Server
	end    func()
}

func (f *farEnd) proxy() {
	p := startProxyProcess(f.t, f.addr, f.origin.URL+"/service")
	f.addr, f.end = p.listen, p.kill
}

// plain replaces it with a server that knows nothing of hhfr.
func (f *farEnd) plain() {
	l, err := net.Listen("tcp", f.addr)
	require.NoError(f.t, err)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: f.origin.Config.Handler}}
	s.Start()
	f.end = s.Close
	f.t.Cleanup(s.Close)
}

// TestFarProxyKilledRestartedReplaced: the far process gets SIGKILL while clients call, comes back,
// is replaced by a plain server, and comes back again. Calls continue; each reply matches its
// request, and no request is sent twice.
func TestFarProxyKilledRestartedReplaced(t *testing.T) {
	o := &numbered{seen: map[string]int{}}
	f := &farEnd{t: t, addr: shared.Addr(t), origin: httptest.NewServer(o)}
	t.Cleanup(f.origin.Close)
	f.proxy()
	link := filepath.Join(t.TempDir(), "link.pcapng")
	near := startProxyProcess(t, "127.0.0.1:0", "http://"+f.addr+"/service", "--remember", "1ms", "--record", link,
		"-v")
	c := &callers{t: t, to: near.url("/service")}
	c.start(8)
	// A connection that was opened without a partner stays plain; the path of a new one is known.
	byStream, plainly := map[string]bool{}, map[string]bool{}
	streams := 0
	settled := func(partner bool) {
		c.more(200)
		to := plainly
		if partner {
			to = byStream
			streams++
			near.linked(streams)
		}
		client := &http.Client{Transport: &http.Transport{}}
		defer client.CloseIdleConnections()
		number := int(c.next.Add(1))
		c.call(client, number)
		to[fmt.Sprint(number)] = true
	}
	settled(true)
	for _, next := range []struct {
		start   func()
		partner bool
	}{{f.proxy, true}, {f.plain, false}, {f.proxy, true}, {f.proxy, true}} {
		f.end()
		next.start()
		settled(next.partner)
	}
	c.stop.Store(true)
	c.wait.Wait()
	near.end()
	o.check(t, c)

	code, out, stderr := do(t, "decode", link, "-o", "jsonl", "--lenient")
	require.Zero(t, code, stderr)
	sessions := map[string]bool{}
	for line := range strings.Lines(out) {
		var m struct {
			Session, Kind string
			Body          []byte `json:"body_base64"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		n := requestNumber.FindSubmatch(m.Body)
		if n == nil || m.Kind != "reply" {
			continue
		}
		hhfr := m.Session != "-"
		if hhfr {
			sessions[m.Session] = true
		}
		if byStream[string(n[1])] {
			assert.True(t, hhfr, "request %s has a partner", n[1])
			delete(byStream, string(n[1]))
		}
		if plainly[string(n[1])] {
			assert.False(t, hhfr, "request %s has no partner", n[1])
			delete(plainly, string(n[1]))
		}
	}
	assert.Len(t, sessions, 4, "hhfr again after each start")
	assert.Empty(t, byStream, "not in the recording")
	assert.Empty(t, plainly, "not in the recording")
	t.Logf("%d calls through, %d in 502 or 503, %d ended", c.through.Load(), c.excused.Load(), c.ended.Load())
}

// check compares what the origin got with what the clients were told.
func (o *numbered) check(t *testing.T, c *callers) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for n, times := range o.seen {
		assert.Equal(t, 1, times, "request %s", n)
	}
	for n := range c.answers {
		assert.Equal(t, 1, o.seen[n], "request %s has a reply", n)
	}
	for _, n := range c.unsent {
		assert.Zero(t, o.seen[n], "request %s was said not to be sent", n)
	}
	assert.EqualValues(t, c.next.Load(), c.through.Load()+c.excused.Load()+c.ended.Load())
}

// TestPairBehindTLS: both proxies present certificates, the far one also to the server, and
// recordings have the cleartext.
func TestPairBehindTLS(t *testing.T) {
	o := httptest.NewUnstartedServer(&numbered{seen: map[string]int{}})
	o.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	o.StartTLS()
	t.Cleanup(o.Close)
	dir := t.TempDir()
	cert, key := certificate(t, dir, o.TLS.Certificates[0])
	link, keys := filepath.Join(dir, "link.pcapng"), filepath.Join(dir, "keys")
	t.Setenv("SSLKEYLOGFILE", keys)
	far := startProxyProcess(t, "127.0.0.1:0", o.URL+"/service", "--cacert", cert, "--upstream-cert", cert,
		"--upstream-key", key, "--cert", cert, "--key", key)
	near := startProxyProcess(t, "127.0.0.1:0", "https://"+far.listen+"/service", "--cacert", cert, "--cert", cert,
		"--key", key, "--record", link, "-v")
	near.linked(1)
	client := o.Client()
	c := &callers{t: t, to: "https://" + near.listen + "/service", answers: map[string]bool{}}
	for number := range 3 {
		c.call(client, number+1)
	}
	client.CloseIdleConnections()
	assert.EqualValues(t, 3, c.through.Load())
	near.end()
	far.end()
	code, out, stderr := do(t, "decode", link, "-o", "jsonl")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"operation":"op"`)
	assert.NotRegexp(t, `"session":"-".*"operation":"op"`, out, "an envelope outside of the stream")
	lines, err := os.ReadFile(keys)
	require.NoError(t, err)
	assert.Contains(t, string(lines), "CLIENT_TRAFFIC_SECRET_0 ")
}

// TestProxyInterrupted: the first Ctrl-C lets the call in progress end, the second ends at once.
func TestProxyInterrupted(t *testing.T) {
	// A shell makes its background processes ignore SIGINT, and so would what this test starts,
	// once the test no longer listens for it.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	defer signal.Stop(caught)
	for _, times := range []int{1, 2} {
		arrived, release := make(chan struct{}), make(chan struct{})
		origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || !requestNumber.Match(body) {
				http.NotFound(w, r)
				return
			}
			arrived <- struct{}{}
			<-release
			_, _ = w.Write(body)
		}))
		far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer")
		near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "-v")
		near.linked(1)
		c := &callers{t: t, to: near.url("/service"), answers: map[string]bool{}}
		done := make(chan struct{})
		go func() {
			defer close(done)
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			c.call(client, 1)
		}()
		<-arrived
		require.NoError(t, near.cmd.Process.Signal(os.Interrupt))
		// Until its listener is gone, the process has not seen the signal.
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", near.listen)
			if err == nil {
				_ = conn.Close()
			}
			return err != nil
		}, time.Minute, 10*time.Millisecond)
		if times == 2 {
			require.NoError(t, near.cmd.Process.Signal(os.Interrupt))
			require.ErrorContains(t, near.cmd.Wait(), "signal: interrupt")
			close(release)
			<-done
			assert.EqualValues(t, 1, c.ended.Load())
		} else {
			close(release)
			require.NoError(t, near.cmd.Wait(), "%s", &near.errs)
			<-done
			assert.EqualValues(t, 1, c.through.Load())
		}
		far.end()
		origin.Close()
	}
}

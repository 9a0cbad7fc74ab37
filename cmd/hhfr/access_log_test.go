//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// readCalls reads an access log in JSON.
func readCalls(t *testing.T, file string) (all []accessLine) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	keepText(t, bytes.TrimPrefix(text, []byte("{}\n")), "accesses") // without what a test put there
	for line := range bytes.Lines(text) {
		var one accessLine
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&one), "%s", line)
		all = append(all, one)
	}
	return all
}

// faulty answers with a fault to a poll of /fault, and echoes all else.
var faulty = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/xml")
	if r.URL.Path == "/fault" {
		w.WriteHeader(http.StatusInternalServerError)
		body = []byte(`<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><e:Fault><faultcode>` +
			`e:Server</faultcode><faultstring>secret</faultstring></e:Fault></e:Body></e:Envelope>`)
	}
	_, _ = w.Write(body)
})

// TestAccessLog: each call has one line at both halves, also of many clients at once and of plain
// ones, with what it cost on either side; the halves agree. Nothing of a message, a head or a query
// is in it.
func TestAccessLog(t *testing.T) {
	origin := httptest.NewServer(faulty)
	defer origin.Close()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	start := func(name, upstream string, more ...string) *proxyProcess {
		return startProxyProcess(t, "127.0.0.1:0", upstream, append(more, "--access-log", file(name),
			"--access-log-format", "json", "--metrics", "127.0.0.1:0")...)
	}
	far := start("far", origin.URL, "--no-offer")
	near := start("near", far.url("/"), "-v")
	near.linked(1)
	plain := start("plain", origin.URL, "--no-offer")
	call := func(to *proxyProcess, client *http.Client, path string) {
		r, err := http.NewRequest(http.MethodPost, to.url(path+"?token=secret"), strings.NewReader(envelope(1)))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "text/xml")
		r.Header.Set("Authorization", "Bearer secret")
		resp, err := client.Do(r)
		if assert.NoError(t, err) {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	for _, to := range []*proxyProcess{near, plain} {
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				for range 24 {
					call(to, client, "/ok")
				}
				call(to, client, "/fault")
			})
		}
		clients.Wait()
	}
	sums := map[string]float64{}
	for name, p := range map[string]*proxyProcess{"near": near, "far": far, "plain": plain} {
		require.Eventually(t, func() bool { // it is written while the proxy runs
			text, err := os.ReadFile(file(name))
			return err == nil && bytes.Count(text, []byte("\n")) == 200
		}, time.Minute, 10*time.Millisecond, name)
		if name != "plain" {
			sums[name] = metricOf(t, p.addresses["metrics"], "hhfr_operation_link_bytes_total")
		}
	}
	near.end()
	far.end()
	plain.end()
	links := map[string][2]int64{}
	for _, name := range []string{"near", "far", "plain"} {
		info, err := os.Stat(file(name))
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
		text, err := os.ReadFile(file(name))
		require.NoError(t, err)
		assert.NotContains(t, string(text), "secret")
		calls := readCalls(t, file(name))
		require.Len(t, calls, 200, name)
		faults, link := 0, [2]int64{}
		for _, c := range calls {
			assert.Equal(t, "op", c.Operation)
			assert.True(t, c.OK)
			assert.WithinDuration(t, time.Now(), c.Time, time.Hour)
			assert.Contains(t, c.Client, "127.0.0.1:")
			assert.Positive(t, c.RequestBytes)
			assert.Positive(t, c.ReplyBytes)
			assert.Positive(t, c.Seconds)
			link[0] += c.SentBytes
			link[1] += c.ReceivedBytes
			if c.Status == http.StatusInternalServerError {
				faults++
				assert.Equal(t, "Server", c.Fault)
			} else {
				assert.Equal(t, http.StatusOK, c.Status)
				assert.Empty(t, c.Fault)
			}
			if name == "plain" {
				assert.Equal(t, [3]string{"plain", "no_offer", "near"}, [3]string{c.Way, c.Reason, c.Role})
				continue
			}
			assert.Equal(t, [3]string{"stream", "", name}, [3]string{c.Way, c.Reason, c.Role})
			assert.Positive(t, c.SentBytes)
			assert.Positive(t, c.ReceivedBytes)
			assert.Positive(t, c.AddedSeconds)
		}
		assert.Equal(t, 8, faults, name)
		links[name] = link
	}
	assert.Equal(t, links["near"][0], links["far"][1])
	assert.Equal(t, links["near"][1], links["far"][0])
	for _, name := range []string{"near", "far"} {
		assert.EqualValues(t, sums[name], links[name][0]+links[name][1], "as the metrics have it")
	}
}

// TestAccessLogLines: text on stdout, and what an operation or a failed call looks like there.
func TestAccessLogLines(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	var out said
	p := startProxyProcess(t, "127.0.0.1:0", gone.URL, "--no-offer", "--access-log", "-", "--access-log-format", "text")
	go func() { _, _ = io.Copy(&out, p.out) }()
	hidden := strings.ReplaceAll(envelope(1), "m:op", "m:o\u202ep")
	resp, err := http.Post(p.url("/?token=secret"), "text/xml", strings.NewReader(hidden))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "\n") }, time.Minute, 10*time.Millisecond)
	assert.Regexp(t, `^time=\S+Z client=127\.0\.0\.1:\d+ role=near upstream=http://\S+ operation=o\?p way=plain `+
		`status=502 ok=false request_bytes=\d+ reply_bytes=0 reason=no_offer seconds=\S+\n$`, out.String())
	p.end()
}

// TestAccessLogIsRotated: on SIGHUP the file is opened anew; no line is lost, and none is in both.
func TestAccessLogIsRotated(t *testing.T) {
	origin := httptest.NewServer(faulty)
	defer origin.Close()
	file := filepath.Join(t.TempDir(), "calls")
	require.NoError(t, os.WriteFile(file, []byte("{}\n"), 0o600))
	p := startProxyProcess(t, "127.0.0.1:0", origin.URL, "--no-offer", "--access-log", file,
		"--access-log-format", "json")
	for range 5 {
		post(t, p.url("/ok"))
	}
	require.Eventually(t, func() bool { // a line follows its reply
		return len(readCalls(t, file)) == 6
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, os.Rename(file, file+".1"))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool {
		_, err := os.Stat(file)
		return err == nil
	}, time.Minute, 10*time.Millisecond)
	for range 3 {
		post(t, p.url("/fault"))
	}
	p.end()
	before, after := readCalls(t, file+".1"), readCalls(t, file)
	assert.Len(t, before, 6, "with the line that was there")
	assert.Len(t, after, 3)
	for _, c := range after {
		assert.Equal(t, "Server", c.Fault)
	}
}

// TestAccessLogOnAFullDisk: it is told once, and calls go on.
func TestAccessLogOnAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	origin := httptest.NewServer(faulty)
	defer origin.Close()
	p := startProxyProcess(t, "127.0.0.1:0", origin.URL, "--no-offer", "--access-log", "/dev/full", "--quiet=false")
	for range 2 {
		status, _ := post(t, p.url("/ok"))
		assert.Equal(t, http.StatusOK, status)
		p.told("lines of the access log are lost")
	}
	p.end()
	assert.Equal(t, 1, strings.Count(p.errs.String(), "level=WARN"), &p.errs)
	for _, args := range [][]string{{"--access-log-format", "xml"}, {"--access-log", t.TempDir()}} {
		proxy := []string{"proxy", "--listen", "127.0.0.1:0", "--upstream", origin.URL}
		code, _, stderr := do(t, append(proxy, args...)...)
		assert.NotZero(t, code)
		assert.Contains(t, stderr, "--access-log")
	}
}

// TestAccessLogOfServe: plain calls and those over streams have lines there as well.
func TestAccessLogOfServe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "calls")
	message := filepath.Join(t.TempDir(), "message.xml")
	require.NoError(t, os.WriteFile(message, []byte(envelope(1)), 0o600))
	p := startCommand(t, exec.CommandContext(t.Context(), "hhfr", "serve", "--listen", "127.0.0.1:0", "-o", "json",
		"-q", "--access-log", file, "--access-log-format", "json"))
	post(t, p.url("/echo"))
	code, _, stderr := do(t, "stream", p.url("/concat"), message, "--require-hhfr", "-q")
	assert.NotEqual(t, exit.WrongUsage, code, stderr)
	p.end()
	calls := map[string]accessLine{}
	for _, c := range readCalls(t, file) {
		assert.Equal(t, "op", c.Operation)
		assert.Contains(t, c.Client, "127.0.0.1:")
		calls[c.Way] = c
	}
	require.Len(t, calls, 2)
	assert.Equal(t, [3]string{"/echo", "client", ""}, [3]string{calls["plain"].Upstream, calls["plain"].Reason,
		calls["plain"].Fault})
	assert.Equal(t, [2]string{"/concat", "Client"}, [2]string{calls["stream"].Upstream, calls["stream"].Fault})
	assert.Positive(t, calls["stream"].SentBytes)
	assert.Positive(t, calls["stream"].ReceivedBytes)
}

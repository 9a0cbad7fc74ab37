//go:build interop

package main

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// everyTenth is a link to a service on which every tenth request is lost.
func everyTenth(t *testing.T, service string) (at string, lost *atomic.Int64) {
	t.Helper()
	to, err := url.Parse(service)
	require.NoError(t, err)
	var requests atomic.Int64
	lost = &atomic.Int64{}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
		r.Out.Host = r.In.Host
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%10 == 0 {
			lost.Add(1)
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + to.Path, lost
}

// cxf is Apache CXF with its WS-ReliableMessaging, as a program that is a client or a server.
type cxf struct {
	classes, libraries string
}

func newCXF(t *testing.T) cxf {
	t.Helper()
	shared.Program(t, "java")
	dir := shared.Testdata(t, "interop", "cxf")
	c := cxf{classes: t.TempDir(), libraries: t.TempDir()}
	build(t, dir, shared.Program(t, "mvn"), "-q", "-B", "dependency:copy-dependencies",
		"-DoutputDirectory="+c.libraries)
	build(t, dir, shared.Program(t, "javac"), "-cp", filepath.Join(c.libraries, "*"), "-d", c.classes,
		"Reliable.java")
	return c
}

func (c cxf) command(t *testing.T, args ...string) *exec.Cmd {
	path := c.classes + string(os.PathListSeparator) + filepath.Join(c.libraries, "*")
	return exec.CommandContext(t.Context(), "java", append([]string{"-cp", path, "Reliable"}, args...)...)
}

// run runs it to its end, and returns what it printed.
func (c cxf) run(t *testing.T, args ...string) string {
	t.Helper()
	command := c.command(t, args...)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s%s", out, &stderr)
	return string(out)
}

// serve runs the server as long as the test, and returns its URL and a function that ends it and
// returns the entries that it got.
func (c cxf) serve(t *testing.T) (at string, entries func() []string) {
	t.Helper()
	port := freePort(t)
	server := c.command(t, "server", port)
	stdin, err := server.StdinPipe()
	require.NoError(t, err)
	stdout, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	lines := bufio.NewScanner(stdout)
	require.True(t, lines.Scan())
	require.Equal(t, "ready", lines.Text())
	var list []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			list = append(list, strings.TrimPrefix(lines.Text(), "entry "))
		}
	}()
	return "http://127.0.0.1:" + port + "/ledger", func() []string {
		require.NoError(t, stdin.Close())
		<-done
		_ = server.Wait()
		return list
	}
}

// forms are the versions with which WS-Addressing.
var forms = [][2]string{{"1.0", "2004/08"}, {"1.0", "2005/08"}, {"1.1", "2005/08"}}

// TestInteropReliable: Apache CXF sends to hhfr serve, and hhfr stream to Apache CXF, over links
// that lose every tenth request, each message once and in order. That CXF can talk to itself is
// shown first.
func TestInteropReliable(t *testing.T) {
	const messages = 40
	c := newCXF(t)
	own, entries := c.serve(t)
	out := c.run(t, "client", "2", own, "1.0", "2004/08", own, "1.1", "2005/08")
	require.Equal(t, 4, strings.Count(out, "\n"), out)

	link, lost := everyTenth(t, own)
	want := streamed(t, link, messages)
	assert.Positive(t, lost.Load())
	assert.Equal(t, want, entries()[4:])

	args, ledgers := ledgersHere(t, "client", fmt.Sprint(messages))
	c.run(t, args...)
	for _, ledger := range ledgers {
		assert.Equal(t, entryNames(messages), entriesOf(t, ledger))
	}
}

// TestInteropReliableDecoupled: hhfr stream sends to Apache CXF with replies and acknowledgements
// that come to an address of its own, after CXF did so with itself.
func TestInteropReliableDecoupled(t *testing.T) {
	const messages = 11
	c := newCXF(t)
	own, entries := c.serve(t)
	out := c.run(t, "decoupled", "2", freePort(t), own, "1.1", "2005/08")
	require.Equal(t, 2, strings.Count(out, "\n"), out)

	link, lost := everyTenth(t, own)
	want := streamed(t, link, messages, "--callback", "127.0.0.1:0")
	assert.Positive(t, lost.Load())
	assert.Equal(t, want, entries()[2:])
}

// streamed has hhfr stream send messages to a service in each form, and returns the entries that
// they make.
func streamed(t *testing.T, service string, messages int, flags ...string) (want []string) {
	t.Helper()
	for _, f := range forms {
		dir := t.TempDir()
		args := append([]string{"stream", service, "--soap-rm", f[0], "--addressing", f[1], "-o", "json",
			"--action", "urn:hhfr:peer:1/add", "--store", "bolt:" + filepath.Join(dir, "client.db")}, flags...)
		for n := range messages {
			name := filepath.Join(dir, entryName(n)+".xml")
			text := strings.Replace(entryMessage(n), "m-", f[0]+"-"+f[1]+"-", 1)
			require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			args = append(args, name)
			want = append(want, fmt.Sprintf("%s-%s-%d", f[0], f[1], n))
		}
		code, stdout, stderr := do(t, args...)
		require.Zero(t, code, "%s%s", stdout, stderr)
		got := lastSummary(t, stdout)
		assert.Equal(t, messages, got.Messages)
		assert.Positive(t, got.Sequence.Resent)
	}
	return want
}

// ledgersHere are a ledger for each form, and the arguments of a program that sends to each by a
// link that loses requests.
func ledgersHere(t *testing.T, args ...string) (all, ledgers []string) {
	t.Helper()
	for _, f := range forms {
		services, stop := servicesHere(t, "--soap-rm", "all", "--store",
			"bolt:"+filepath.Join(t.TempDir(), "server.db"))
		t.Cleanup(stop)
		ledger := services["ledger"].URL
		link, lost := everyTenth(t, ledger)
		t.Cleanup(func() { assert.Positive(t, lost.Load()) })
		args, ledgers = append(args, link, f[0], f[1]), append(ledgers, ledger)
	}
	return args, ledgers
}

func entryNames(messages int) (list []string) {
	for n := range messages {
		list = append(list, fmt.Sprintf("e%d", n))
	}
	return list
}

// entriesOf reads a ledger.
func entriesOf(t *testing.T, ledger string) (got []string) {
	t.Helper()
	read := filepath.Join(t.TempDir(), "read.xml")
	require.NoError(t, os.WriteFile(read, []byte(strings.NewReplacer("<add", "<read", "</add>", "</read>",
		"<id>m-0</id><amount>0</amount>", "").Replace(entryMessage(0))), 0o600))
	code, stdout, stderr := do(t, "stream", ledger, read, "-o", "xml")
	require.Zero(t, code, stderr)
	for _, m := range regexp.MustCompile("<id>(e[0-9]+)</id>").FindAllStringSubmatch(stdout, -1) {
		got = append(got, m[1])
	}
	return got
}

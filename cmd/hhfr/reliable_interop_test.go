//go:build interop

package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
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

// lossyLink is a link to an HTTP server that loses one of each ten requests, drawn by a seed. It
// does not lose the first one: Apache CXF asks for a sequence once, and answers that once.
type lossyLink struct {
	url  string // of the same path as the server's
	host string
	lost atomic.Int64
}

// newLossyLink makes one. What requests say of addresses can be replaced: old, new and so on.
func newLossyLink(t *testing.T, seed uint64, server string, replace ...string) *lossyLink {
	t.Helper()
	to, err := url.Parse(server)
	require.NoError(t, err)
	var (
		mu       sync.Mutex
		random   = rand.New(rand.NewPCG(seed, 10))
		requests int
		next     = 1 + random.IntN(9)
	)
	loses := func() bool {
		mu.Lock()
		defer mu.Unlock()
		is := requests == next
		if requests++; requests%10 == 0 {
			next = requests + random.IntN(10)
		}
		return is
	}
	l, addresses := &lossyLink{}, strings.NewReplacer(replace...)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: to.Scheme, Host: to.Host})
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // it is gone
	}
	link := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if loses() {
			l.lost.Add(1)
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		text := addresses.Replace(string(body))
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(link.Close)
	l.url, l.host = link.URL+to.Path, link.Listener.Addr().String()
	return l
}

// form is the versions of WS-ReliableMessaging and WS-Addressing, and where replies and
// acknowledgements come.
type form struct{ version, addressing, way string }

// forms are all, anonymous first.
var forms = []form{
	{"1.0", "2004/08", "anonymous"}, {"1.0", "2005/08", "anonymous"}, {"1.1", "2005/08", "anonymous"},
	{"1.0", "2004/08", "decoupled"}, {"1.0", "2005/08", "decoupled"}, {"1.1", "2005/08", "decoupled"},
}

// entry is the name of an entry that is sent in that form.
func (f form) entry(n int) string {
	return fmt.Sprintf("%s-%s-%s-%d", f.way, f.version, f.addressing, n)
}

// entries are those of so many messages.
func (f form) entries(messages int) (list []string) {
	for n := range messages {
		list = append(list, f.entry(n))
	}
	return list
}

// of are those of entries that were sent in that form.
func (f form) of(entries []string) (list []string) {
	for _, e := range entries {
		if strings.HasPrefix(e, strings.TrimSuffix(f.entry(0), "0")) {
			list = append(list, e)
		}
	}
	return list
}

// arrived asserts that a ledger has so many entries in each form, each once and in order, and no
// others.
func arrived(t *testing.T, messages int, list []string, forms ...form) {
	t.Helper()
	for _, f := range forms {
		assert.Equal(t, f.entries(messages), f.of(list))
	}
	assert.Len(t, list, messages*len(forms))
}

// path is the links between a client and a service in one form.
type path struct {
	form
	service string // as the client sees it
	// callback is the port where the client takes what is decoupled.
	callback string
	links    []*lossyLink
}

// newPath makes links that lose requests: to a service, and, if it is decoupled, back. behind says
// what is between a link and its server, given that one's URL; nil: nothing.
func newPath(t *testing.T, seed uint64, f form, service string, behind func(string) string) path {
	t.Helper()
	if behind == nil {
		behind = func(server string) string { return server }
	}
	p := path{form: f}
	var replace []string
	if f.way == "decoupled" {
		p.callback = freePort(t)
		back := newLossyLink(t, seed+1000, behind("http://127.0.0.1:"+p.callback+"/"))
		replace, p.links = []string{"127.0.0.1:" + p.callback, back.host}, append(p.links, back)
	}
	to := newLossyLink(t, seed, behind(service), replace...)
	p.links, p.service = append(p.links, to), to.url
	return p
}

// lost asserts that requests were lost on each link.
func (p path) lost(t *testing.T) {
	t.Helper()
	for _, l := range p.links {
		assert.Positive(t, l.lost.Load(), p.form)
	}
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

// serve runs the server as long as the test, and returns the URLs of so many ledgers and a function
// that ends it and returns the entries that they got.
func (c cxf) serve(t *testing.T, ledgers int) (at []string, entries func() []string) {
	t.Helper()
	port := freePort(t)
	args := []string{"server", port}
	for n := range ledgers {
		args = append(args, fmt.Sprintf("/ledger%d", n))
		at = append(at, "http://127.0.0.1:"+port+args[len(args)-1])
	}
	server := c.command(t, args...)
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
	return at, func() []string {
		require.NoError(t, stdin.Close())
		<-done
		_ = server.Wait()
		return list
	}
}

// send has clients send messages on paths at the same time, each again after a while, and get the
// reply to each.
func (c cxf) send(t *testing.T, messages int, again time.Duration, paths ...path) {
	t.Helper()
	args := []string{"client", fmt.Sprint(messages), fmt.Sprint(again.Milliseconds())}
	want := 0
	for _, p := range paths {
		replies := p.way
		if p.callback != "" {
			replies = "http://127.0.0.1:" + p.callback + "/replies"
		}
		args = append(args, p.service, p.version, p.addressing, replies)
		want += messages
	}
	assert.Equal(t, want, strings.Count(c.run(t, args...), "reply "))
	for _, p := range paths {
		p.lost(t)
	}
}

// streamOver has hhfr stream send messages on paths at the same time, and get the reply to each.
func streamOver(t *testing.T, messages int, paths ...path) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range paths {
		dir := t.TempDir()
		args := []string{"stream", p.service, "--soap-rm", p.version, "--addressing", p.addressing, "-o", "json",
			"--action", "urn:hhfr:peer:1/add", "--store", "bolt:" + filepath.Join(dir, "client.db"),
			"--reconnect", "2m"}
		if p.callback != "" {
			args = append(args, "--callback", "127.0.0.1:"+p.callback)
		}
		for n := range messages {
			name := filepath.Join(dir, fmt.Sprintf("%d.xml", n))
			text := strings.Replace(entryMessage(n), fmt.Sprintf("m-%d", n), p.entry(n), 1)
			require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			args = append(args, name)
		}
		all.Go(func() {
			code, stdout, stderr := do(t, args...)
			if assert.Zero(t, code, "%v %s", p.form, stderr) {
				got := lastSummary(t, stdout)
				assert.Equal(t, messages, got.Messages)
				assert.Positive(t, got.Sequence.Resent)
			}
			assert.NotContains(t, stderr, "the last message is not acknowledged")
		})
	}
	all.Wait()
	for _, p := range paths {
		p.lost(t)
	}
}

// TestInteropReliable: Apache CXF sends to itself, to hhfr serve, and hhfr stream to Apache CXF,
// with replies and acknowledgements on the connections of the messages, and at an address of the
// client, over links that lose one of ten requests in both directions: each message arrives once
// and in order, and each reply comes.
func TestInteropReliable(t *testing.T) {
	c := newCXF(t)
	paths := func(services []string) (list []path) {
		for i, f := range forms {
			list = append(list, newPath(t, uint64(i), f, services[i], nil))
		}
		return list
	}
	t.Run("CXF to CXF", func(t *testing.T) {
		services, entries := c.serve(t, len(forms))
		c.send(t, 30, toCXF, paths(services)...)
		arrived(t, 30, entries(), forms...)
	})
	messages := shared.Some(500) // of each form, in each direction
	t.Run("hhfr to CXF", func(t *testing.T) {
		t.Parallel()
		services, entries := c.serve(t, len(forms))
		streamOver(t, messages, paths(services)...)
		arrived(t, messages, entries(), forms...)
	})
	t.Run("CXF to hhfr", func(t *testing.T) {
		t.Parallel()
		var ledgers []string
		for range forms {
			services, stop := servicesHere(t, "--soap-rm", "all", "--store",
				"bolt:"+filepath.Join(t.TempDir(), "server.db"))
			t.Cleanup(stop)
			ledgers = append(ledgers, services["ledger"].URL)
		}
		c.send(t, messages, 500*time.Millisecond, paths(ledgers)...)
		for i, f := range forms {
			arrived(t, messages, entriesOf(t, ledgers[i]), f)
		}
	})
}

// toCXF is when Apache CXF sends a message again to itself. It is long: a message that comes again
// while it is handled, as the first ones do in a process that has just begun, is answered with an
// acknowledgement, and an anonymous client waits for another answer in vain.
const toCXF = 2 * time.Second

// entriesOf reads a ledger.
func entriesOf(t *testing.T, ledger string) (got []string) {
	t.Helper()
	read := filepath.Join(t.TempDir(), "read.xml")
	require.NoError(t, os.WriteFile(read, []byte(strings.NewReplacer("<add", "<read", "</add>", "</read>",
		"<id>m-0</id><amount>0</amount>", "").Replace(entryMessage(0))), 0o600))
	code, stdout, stderr := do(t, "stream", ledger, read, "-o", "xml")
	require.Zero(t, code, stderr)
	for _, m := range regexp.MustCompile("<id>([^<]*)</id>").FindAllStringSubmatch(stdout, -1) {
		got = append(got, m[1])
	}
	return got
}

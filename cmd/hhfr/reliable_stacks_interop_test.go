//go:build interop

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// ledgerProgram is a stack with WS-ReliableMessaging as one process of Java: ledgers, and clients
// for each line of its input.
type ledgerProgram struct {
	dir   string // with its libraries in lib, and modules in modules
	class string
	in    io.WriteCloser
	lines *bufio.Scanner
	errs  bytes.Buffer
}

// newLedgerProgram gets the libraries of a folder of testdata/interop, and compiles its program.
func newLedgerProgram(t *testing.T, folder, class string) *ledgerProgram {
	t.Helper()
	sources := shared.Testdata(t, "interop", folder)
	p := &ledgerProgram{dir: t.TempDir(), class: class}
	shared.Program(t, "java")
	for kind, to := range map[string]string{"jar": "lib", "mar": "modules"} {
		build(t, sources, shared.Program(t, "mvn"), "-q", "-B", "dependency:copy-dependencies", "-DincludeTypes="+kind,
			"-DoutputDirectory="+filepath.Join(p.dir, to))
	}
	build(t, sources, shared.Program(t, "javac"), "-cp", filepath.Join(p.dir, "lib", "*"), "-d", p.dir, class+".java")
	return p
}

// start starts it, until the end of the test.
func (p *ledgerProgram) start(t *testing.T, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
		p.dir + string(os.PathListSeparator) + filepath.Join(p.dir, "lib", "*"), p.class}, args...)...)
	c.Stderr = &p.errs
	var err error
	p.in, err = c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = p.in.Close()
		_ = c.Wait()
		if t.Failed() {
			t.Logf("%s", &p.errs)
		}
	})
	p.lines = bufio.NewScanner(out)
	assert.Empty(t, p.until("ready"))
}

// until returns what it prints up to a line; all until its end if that does not come.
func (p *ledgerProgram) until(line string) (printed []string) {
	for p.lines.Scan() && p.lines.Text() != line {
		printed = append(printed, p.lines.Text())
	}
	return printed
}

// tell has clients send.
func (p *ledgerProgram) tell(t *testing.T, words ...any) {
	t.Helper()
	_, err := fmt.Fprintln(p.in, words...)
	require.NoError(t, err)
}

// calls is how many messages are sent in each form.
const calls = 6

// replied are the lines of a client that got the reply to each of its messages.
func replied(name string) (lines []string) {
	for n := range calls {
		lines = append(lines, fmt.Sprintf("reply %s-%d %d", name, n, n+1))
	}
	return lines
}

// entered are the lines of a ledger, or the ids in one, of what was sent under a name.
func entered(prefix, name string) (lines []string) {
	for n := range calls {
		lines = append(lines, fmt.Sprintf("%s%s-%d", prefix, name, n))
	}
	return lines
}

// with are the lines that have a text.
func with(lines []string, text string) (list []string) {
	for _, l := range lines {
		if strings.Contains(l, text) {
			list = append(list, l)
		}
	}
	return list
}

// streamTo has hhfr stream send messages under a name.
func streamTo(t *testing.T, service, name string, flags ...string) {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"stream", service, "--action", "urn:hhfr:peer:1/add", "-o", "xml",
		"--store", "bolt:" + filepath.Join(dir, "client.db")}, flags...)
	for n := range calls {
		file := filepath.Join(dir, fmt.Sprintf("%d.xml", n))
		text := strings.Replace(entryMessage(n), "m-", name+"-", 1)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		args = append(args, file)
	}
	code, stdout, stderr := do(t, args...)
	assert.Zero(t, code, "%s", stderr)
	assert.Len(t, regexp.MustCompile("count>([0-9]+)</").FindAllString(stdout, -1), calls)
}

// TestInteropReliableStacks: Metro and Sandesha2 send to hhfr serve, and hhfr stream to them, in
// 1.0 and 1.1: each message arrives once, and in order at a service that orders, and each reply
// comes.
func TestInteropReliableStacks(t *testing.T) {
	t.Run("Metro", interopMetro)
	t.Run("Sandesha2", interopSandesha)
}

// policies are the namespaces of the assertions.
var policies = map[string]string{
	"1.0": "http://schemas.xmlsoap.org/ws/2005/02/rm/policy", "1.1": "http://docs.oasis-open.org/ws-rx/wsrmp/200702",
}

// interopMetro: what Metro does is what the policies in descriptions say; it takes 1.0 with
// WS-Addressing 2005/08 alone. hhfr stream finds that out, by the description or the refusal.
func interopMetro(t *testing.T) {
	t.Parallel()
	p := newLedgerProgram(t, "metro", "Metro")
	template := string(shared.Read(t, shared.Testdata(t, "interop", "metro", "ledger.wsdl")))
	describe := func(name, version, at string) string {
		file := filepath.Join(p.dir, name+".wsdl")
		text := strings.NewReplacer("POLICY", policies[version], "PORT", name, "LOCATION", at).Replace(template)
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return "file://" + file
	}
	host := "http://127.0.0.1:" + freePort(t)
	var args []string
	send := []any{calls}
	ledgers := map[string]string{}
	for version := range policies {
		at := host + "/" + version
		args = append(args, at, describe("served"+version, version, at), "served"+version)
		services, stop := servicesHere(t, "--soap-rm", version)
		t.Cleanup(stop)
		ledgers[version] = services["ledger"].URL
		send = append(send, describe("sent"+version, version, ledgers[version]), "metro-"+version)
	}
	p.start(t, args...)
	p.tell(t, send...) // it takes some 10 s to end a sequence, whoever the peer is
	for version := range policies {
		streamTo(t, host+"/"+version, "asked-"+version, "--soap-rm", version)
		streamTo(t, host+"/"+version, "assured-"+version, "--assurance", "exactly-once")
	}
	printed := p.until("done")
	for version, ledger := range ledgers {
		assert.Equal(t, replied("metro-"+version), with(printed, "metro-"+version))
		assert.Equal(t, entered("", "metro-"+version), entriesOf(t, ledger))
		for _, name := range []string{"asked-" + version, "assured-" + version} {
			// In which order Metro handles them is not part of these policies.
			assert.ElementsMatch(t, entered("entry ", name), with(printed, name))
		}
	}
}

// pollCounter is a link to an HTTP server that counts who polls, and how replies come.
type pollCounter struct {
	url                       string
	polls, direct, afterwards atomic.Int64
}

func newPollCounter(t *testing.T, server string) *pollCounter {
	t.Helper()
	to, err := url.Parse(server)
	require.NoError(t, err)
	c := &pollCounter{}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	link := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		replies := &c.direct
		if bytes.Contains(body, []byte("MakeConnection>")) {
			c.polls.Add(1)
			replies = &c.afterwards
		}
		own := *proxy
		own.ModifyResponse = func(response *http.Response) error {
			answer, err := io.ReadAll(response.Body)
			if bytes.Contains(answer, []byte("addResponse")) {
				replies.Add(1)
			}
			response.Body = io.NopCloser(bytes.NewReader(answer))
			return err
		}
		own.ServeHTTP(w, r)
	}))
	t.Cleanup(link.Close)
	c.url = link.URL + to.Path
	return c
}

// interopSandesha: with 1.1 a client of Sandesha2 polls; its replies come before it needs to.
func interopSandesha(t *testing.T) {
	t.Parallel()
	p := newLedgerProgram(t, "sandesha2", "Sandesha")
	services, stop := servicesHere(t, "--soap-rm", "all")
	defer stop()
	port := freePort(t)
	own := "http://127.0.0.1:" + port + "/axis2/services/ledger"
	p.start(t, p.dir, port)
	link := newPollCounter(t, services["ledger"].URL)
	p.tell(t, calls, services["ledger"].URL, "1.0", "sandesha-1.0", link.url, "1.1", "sandesha-1.1")
	printed := p.until("done")
	for _, name := range []string{"sandesha-1.0", "sandesha-1.1"} {
		assert.Equal(t, replied(name), with(printed, name))
		assert.Equal(t, entered("", name), with(entriesOf(t, services["ledger"].URL), name))
	}
	assert.EqualValues(t, calls, link.direct.Load(), "replies on the connections of their requests")
	assert.Zero(t, link.afterwards.Load(), "replies that were asked for")
	assert.Less(t, link.polls.Load(), int64(calls))

	var all sync.WaitGroup
	for _, version := range []string{"1.0", "1.1"} {
		for _, addressing := range []string{"2004/08", "2005/08"} {
			name := "stream-" + version + "-" + addressing
			all.Go(func() { streamTo(t, own, name, "--soap-rm", version, "--addressing", addressing) })
		}
	}
	all.Wait()
	p.tell(t, calls) // nobody sends: it only says that it is done
	printed = p.until("done")
	for _, version := range []string{"1.0", "1.1"} {
		for _, addressing := range []string{"2004/08", "2005/08"} {
			name := "stream-" + version + "-" + addressing
			assert.Equal(t, entered("entry ", name), with(printed, name))
		}
	}
}

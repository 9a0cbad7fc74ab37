//go:build interop

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// cxfInfosets has the program of testdata/interop/infosets: Apache CXF with its feature of Fast
// Infoset.
type cxfInfosets struct {
	*testing.T
	dir string
}

func buildInfosets(t *testing.T) *cxfInfosets {
	for _, program := range []string{"java", "javac", "mvn"} {
		shared.Program(t, program)
	}
	dir, sources := t.TempDir(), shared.Testdata(t, "interop", "infosets")
	build(t, dir, "mvn", "-q", "-B", "-f", filepath.Join(sources, "pom.xml"), "dependency:copy-dependencies",
		"-DoutputDirectory="+filepath.Join(dir, "lib"))
	build(t, dir, "javac", "-proc:none", "-nowarn", "-encoding", "UTF-8", "-cp", "lib/*", "-d", "classes",
		filepath.Join(sources, "Infosets.java"))
	return &cxfInfosets{t, dir}
}

func (c *cxfInfosets) command(args ...string) *exec.Cmd {
	quiet := shared.Testdata(c.T, "interop", "stacks", "quiet.properties")
	cmd := exec.CommandContext(c.Context(), "java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
		"-Djava.util.logging.config.file=" + quiet, "-cp", "classes" + string(filepath.ListSeparator) + "lib/*",
		"Infosets"}, args...)...)
	cmd.Dir = c.dir
	return cmd
}

// serve starts a server, and returns its URL.
func (c *cxfInfosets) serve(t *testing.T, mode string) string {
	cmd := c.command("serve", mode)
	stdin, err := cmd.StdinPipe() // it ends with it
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, "%s", &errs)
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// formsOf are the requests and replies of a recording, each in the form in which it was sent.
func formsOf(t *testing.T, recording string) (all []string) {
	t.Helper()
	code, out, stderr := do(t, "decode", recording, "-o", "jsonl")
	require.Zero(t, code, stderr)
	for line := range strings.Lines(out) {
		var m struct {
			Kind, SOAP, Operation string
			FastInfoset           bool `json:"fast_infoset"`
			BodyOctets            int  `json:"body_octets"`
		}
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		form := " XML"
		if m.FastInfoset {
			form = " infoset"
		}
		if m.BodyOctets == 0 {
			form = ""
		}
		all = append(all, strings.TrimSpace(m.SOAP+" "+m.Kind+" "+m.Operation)+form)
	}
	return all
}

// TestInteropInfosetsToServe: CXF's client with Fast Infoset, negotiated (XML until the first
// reply) and forced, in both versions of SOAP, with faults, one-way messages and empty bodies.
func TestInteropInfosetsToServe(t *testing.T) {
	c := buildInfosets(t)
	for _, mode := range []string{"negotiated", "forced"} {
		t.Run(mode, func(t *testing.T) {
			dir := t.TempDir()
			services, mock := filepath.Join(dir, "services.pcapng"), filepath.Join(dir, "mock.pcapng")
			serve := func(args ...string) *proxyProcess {
				return startCommand(t, exec.CommandContext(t.Context(), "hhfr", append([]string{"serve", "--listen",
					"127.0.0.1:0", "--store", "mem:", "-o", "json", "--record"}, args...)...))
			}
			one := serve(services)
			other := serve(mock, "--wsdl", shared.Testdata(t, "interop", "infosets", "infosets.wsdl"))
			out, err := c.command("call", mode, one.url(""), other.url("")).CombinedOutput()
			require.NoError(t, err, "%s", out)
			said := ` 3.5 0.0 -0.25 true refused: "nowhere" is no IPv4 address, nothing, a notice` + "\n"
			assert.Equal(t, "SOAP 1.1:"+said+"SOAP 1.2:"+said, string(out))
			one.end()
			other.end()
			first := map[string]string{"negotiated": " XML", "forced": " infoset"}[mode]
			var want, wantMock []string
			for _, v := range []string{"1.1", "1.2"} {
				call := func(operation, reply, form string) {
					want = append(want, v+" request "+operation+form, v+" reply "+reply+" infoset")
				}
				call("sum", "sumResponse", first)
				call("sum", "sumResponse", " infoset")
				call("sum", "sumResponse", " infoset")
				call("geoip", "geoipResponse", first)
				call("geoip", "Fault", " infoset")
				wantMock = append(wantMock, v+" request"+first, v+" reply infoset", v+" request notice infoset",
					"reply", v+" request infoset", v+" reply infoset")
			}
			assert.Equal(t, want, formsOf(t, services))
			assert.Equal(t, wantMock, formsOf(t, mock))
		})
	}
}

// TestInteropInfosetsToCXF: hhfr call and stream to services of CXF: without the feature, with it,
// with Fast Infoset in all replies, and with nothing else taken.
func TestInteropInfosetsToCXF(t *testing.T) {
	c := buildInfosets(t)
	dir := t.TempDir()
	for _, mode := range []string{"none", "negotiated", "forced", "only"} {
		at := c.serve(t, mode)
		for _, form := range []string{"negotiate", "at-once"} {
			for _, v := range []string{"11", "12"} {
				t.Run(mode+" "+form+" "+v, func(t *testing.T) { callInfosets(t, dir, at+"/soap"+v, mode, form, v) })
			}
		}
	}
}

func callInfosets(t *testing.T, dir, url, mode, form, version string) {
	call := func(args ...string) (int, string, string) {
		return do(t, append([]string{"call", url + "?wsdl", args[0], "--fast-infoset", form}, args[1:]...)...)
	}
	code, out, stderr := call("sum", "item=1.5", "item=2", "--extract", "result")
	if mode == "none" && form == "at-once" {
		assert.Equal(t, 1, code)
		assert.Contains(t, stderr, "does not answer in Fast Infoset, but with status 500: it gets XML from now on")
		assert.Contains(t, stderr, "in prolog") // the fault of the service
		return
	}
	require.Zero(t, code, stderr)
	assert.Equal(t, "3.5\n", out)
	assert.Equal(t, mode == "none", strings.Contains(stderr, "messages stay XML"), stderr)
	code, out, _ = call("geoip", "address=nowhere", "-o", "xml")
	assert.Equal(t, 1, code)
	assert.Contains(t, out, "no address: nowhere")
	code, out, stderr = call("nothing")
	assert.Zero(t, code, stderr)
	assert.Equal(t, "{}\n", out)
	code, before, stderr := call("notified", "--extract", "result")
	require.Zero(t, code, stderr)
	code, _, stderr = call("notice", "value=é")
	assert.Zero(t, code, stderr)
	assert.Eventually(t, func() bool { // it is answered before it is processed
		_, after, _ := call("notified", "--extract", "result")
		return after != before
	}, 30*time.Second, 50*time.Millisecond)

	wrap := "1." + version[1:]
	file, recording := filepath.Join(dir, "text.xml"), filepath.Join(t.TempDir(), "stream.pcapng")
	text := strings.Repeat("é&lt;", 50_000)
	require.NoError(t, os.WriteFile(file,
		[]byte(`<text xmlns="urn:hhfr:peer:1"><value>`+text+`</value></text>`), 0o600))
	code, out, stderr = do(t, "stream", url, file, "--wrap", wrap, "--repeat", "3", "--concurrency", "1",
		"--fast-infoset", form, "-o", "xml", "--record", recording)
	require.Zero(t, code, stderr)
	assert.Equal(t, 3, strings.Count(out, "<result>"+text+"</result>"))
	reply, request := wrap+" reply textResponse infoset", wrap+" request text infoset"
	want := []string{request, reply, request, reply, request, reply}
	switch {
	case mode == "none":
		want = nil
		for range 3 {
			want = append(want, wrap+" request text XML", wrap+" reply textResponse XML")
		}
	case form == "negotiate" && mode == "only":
		want = append([]string{wrap + " request text XML", wrap + " reply Fault infoset"}, want...)
	case form == "negotiate":
		want[0] = wrap + " request text XML"
	}
	assert.Equal(t, want, formsOf(t, recording))
}

// TestInteropInfosetsThroughAPair: a client of XML through a pair to a service of CXF that takes
// Fast Infoset only.
func TestInteropInfosetsThroughAPair(t *testing.T) {
	c := buildInfosets(t)
	at := c.serve(t, "only")
	proxy := func(upstream string, args ...string) *proxyProcess {
		return startCommand(t, exec.CommandContext(t.Context(), "hhfr", append([]string{"proxy", "--listen",
			"127.0.0.1:0", "--store", "mem:", "-o", "json", "-v", "--upstream", upstream}, args...)...))
	}
	for _, form := range []string{"negotiate", "at-once"} {
		far := proxy(at, "--no-offer", "--fast-infoset", form)
		near := proxy(far.url(""))
		near.linked(1)
		for _, v := range []string{"11", "12"} {
			call := func(args ...string) (int, string, string) {
				return do(t, append([]string{"call", at + "/soap" + v + "?wsdl", args[0], "--plain", "--to",
					near.url("/soap" + v)}, args[1:]...)...)
			}
			for range 3 {
				code, out, stderr := call("sum", "item=1.5", "item=2", "--extract", "result")
				require.Zero(t, code, stderr)
				assert.Equal(t, "3.5\n", out)
			}
			code, out, _ := call("geoip", "address=nowhere", "-o", "xml")
			assert.Equal(t, 1, code)
			assert.Contains(t, out, "no address: nowhere")
			code, out, stderr := call("nothing")
			assert.Zero(t, code, stderr)
			assert.Equal(t, "{}\n", out)
			code, _, stderr = call("notice", "value=é")
			assert.Zero(t, code, stderr)
			text := strings.Repeat("é<", 100_000)
			file := filepath.Join(t.TempDir(), "text.json")
			require.NoError(t, os.WriteFile(file, []byte(`{"value":"`+text+`"}`), 0o600))
			code, out, stderr = call("text", "@"+file, "--extract", "result")
			require.Zero(t, code, stderr)
			assert.Equal(t, text+"\n", out)
		}
		near.end()
		far.end()
		assert.Contains(t, near.errs.String(), "over streams")
		assert.Equal(t, 2, strings.Count(far.errs.String(), " answers in Fast Infoset"), "%s", &far.errs)
	}
}

//go:build interop

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// The releases of the Python libraries that the pair is tested with.
const (
	zeepRelease  = "zeep==4.3.3"
	spyneRelease = "spyne==2.14.0"
)

// build runs a program in a folder.
func build(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", program, strings.Join(args, " "), out)
}

// soapPrograms are clients and servers made with SOAP toolkits that know nothing of hhfr.
type soapPrograms struct {
	python, wsdl, gsoapClient, gsoapServer string
}

// buildPrograms builds them from the description of the records service and the sources in
// testdata/interop.
func buildPrograms(t *testing.T, wsdl string) soapPrograms {
	t.Helper()
	dir := t.TempDir()
	p := soapPrograms{
		python: filepath.Join(dir, "venv", "bin", "python"), wsdl: filepath.Join(dir, "records.wsdl"),
		gsoapClient: filepath.Join(dir, "gsoap_client"), gsoapServer: filepath.Join(dir, "gsoap_server"),
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, wsdl, nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	description, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	http.DefaultClient.CloseIdleConnections()
	require.NoError(t, os.WriteFile(p.wsdl, description, 0o600))

	build(t, dir, "python3", "-m", "venv", "venv")
	build(t, dir, p.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", zeepRelease, spyneRelease)
	build(t, dir, "wsdl2h", "-c", "-o", "records.h", "records.wsdl")
	build(t, dir, "soapcpp2", "-c", "-1", "-x", "records.h")
	build(t, dir, "gcc", "-I.", "-o", p.gsoapClient, shared.Testdata(t, "interop", "gsoap_client.c"), "soapC.c",
		"soapClient.c", "-lgsoap")
	build(t, dir, "gcc", "-I.", "-o", p.gsoapServer, shared.Testdata(t, "interop", "gsoap_server.c"), "soapC.c",
		"soapServer.c", "-lgsoap")
	return p
}

// startPrinting starts a server that prints its port, and returns its host.
func startPrinting(t *testing.T, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	port, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, &errs)
	return "127.0.0.1:" + strings.TrimSpace(port)
}

// TestInteropToolkitsThroughThePair: clients and servers of zeep, spyne and gSOAP, unchanged,
// communicate through two proxies. The results are those without proxies, and the link between
// carries hhfr.
func TestInteropToolkitsThroughThePair(t *testing.T) {
	services, stop := servicesHere(t)
	defer stop()
	programs := buildPrograms(t, services["records"].WSDL)
	serve, err := url.Parse(services["records"].URL)
	require.NoError(t, err)
	for _, server := range []struct {
		name, host string
		wsdl       bool // it serves its description at ?wsdl
		chunked    bool // it accepts chunked requests
		faults     bool // it rejects a record
	}{
		{"hhfr serve", serve.Host, true, true, false},
		{"spyne", startPrinting(t, programs.python, shared.Testdata(t, "interop", "spyne_server.py")), true, false,
			true},
		{"gSOAP", startPrinting(t, programs.gsoapServer), false, true, true},
	} {
		t.Run(server.name, func(t *testing.T) {
			link := filepath.Join(t.TempDir(), "link.pcapng")
			far := startProxyProcess(t, "127.0.0.1:0", "http://"+server.host+"/records")
			near := startProxyProcess(t, "127.0.0.1:0", far.url("/records"), "--record", link, "-v")
			near.linked(1)
			to := near.url("/records")
			run := func(program string, args ...string) {
				t.Helper()
				if server.faults {
					args = append(args, "fault")
				}
				out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
				require.NoError(t, err, "%s", out)
				assert.Contains(t, string(out), "agrees")
			}
			wsdl := programs.wsdl
			if server.wsdl {
				wsdl = to + "?wsdl"
			}
			run(programs.python, shared.Testdata(t, "interop", "zeep_records.py"), wsdl, to)
			run(programs.gsoapClient, to, "plain")
			if server.chunked {
				run(programs.gsoapClient, to, "chunked")
			}
			if server.name == "hhfr serve" {
				out, err := exec.CommandContext(t.Context(), programs.python, filepath.Join("..", "..", "internal",
					"peer", "testdata", "zeep_client.py"), near.url("")).CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			near.end()
			far.end()
			onlyHHFR(t, link)
		})
	}
}

// onlyHHFR checks that a recording of the link has calls and replies of records on a stream, and no
// envelope outside of one.
func onlyHHFR(t *testing.T, link string) {
	t.Helper()
	code, out, stderr := do(t, "decode", link, "-o", "jsonl")
	require.Zero(t, code, stderr)
	count := map[string]int{}
	for line := range strings.Lines(out) {
		var m struct{ Session, Kind, Operation string }
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if m.Operation == "records" || m.Operation == "recordsResponse" {
			count[m.Kind+" "+m.Operation]++
			assert.NotEqual(t, "-", m.Session, line)
		}
	}
	assert.GreaterOrEqual(t, count["request records"], 6, "%v", count)
	assert.GreaterOrEqual(t, count["reply recordsResponse"], 6, "%v", count)
}

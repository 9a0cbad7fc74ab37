package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// numberedCall is a body of one of twenty kinds that says its number.
func numberedCall(n int) string {
	kind := n % 20
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><q%d xmlns="urn:q">`+
		`<number>%d</number><text>%x</text></q%d></s:Body></s:Envelope>`, kind, n, uint64(n+1)*0x9E3779B97F4A7C15, kind)
}

var numberIn = regexp.MustCompile(`<number>(\d+)</number>`)

// pairOf is an echo service behind a pair, the near half of which has further arguments.
func pairOf(t *testing.T, args ...string) (near *proxyProcess) {
	t.Helper()
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echo.Close)
	far := startProxyProcess(t, "127.0.0.1:0", echo.URL, "--sync", "16KiB")
	return startProxyProcess(t, "127.0.0.1:0", far.url("/"), append(args, "-v")...)
}

func (p *proxyProcess) calls(from, to int) {
	p.t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for n := from; n < to; n++ {
		resp, err := client.Post(p.url("/"), "text/xml; charset=utf-8", strings.NewReader(numberedCall(n)))
		require.NoError(p.t, err)
		got, err := io.ReadAll(resp.Body)
		require.NoError(p.t, err)
		require.NoError(p.t, resp.Body.Close())
		require.Equal(p.t, numberedCall(n), string(got))
	}
}

// numbersIn decodes one file of a recording, without a store, and returns the calls in it.
func numbersIn(t *testing.T, name string) map[int]bool {
	t.Helper()
	_, stdout, stderr := do(t, "decode", name, "-o", "jsonl", "--lenient")
	found := map[int]bool{}
	lines := bufio.NewScanner(strings.NewReader(stdout))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			State string
			Body  []byte `json:"body_base64"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		require.NotEqual(t, "undecodable", m.State, "%s: %s", name, stderr)
		number := numberIn.FindSubmatch(m.Body)
		if number == nil || m.State == "incomplete" {
			continue
		}
		n, err := strconv.Atoi(string(number[1]))
		require.NoError(t, err)
		require.Equal(t, numberedCall(n), string(m.Body))
		found[n] = true
	}
	return found
}

// TestRecordingInSeveralFiles: a recording of one long stream goes on in further files, the latest
// of which are kept. Each is decoded without the others and without a store, and together they have
// every call. What a killed proxy has recorded is one of them after a restart.
func TestRecordingInSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "link.pcapng")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "link-other.pcapng"), nil, 0o600))
	args := []string{"--record", name, "--record-size", "64KiB", "--record-files", "2", "--sync", "16KiB",
		"--store", filepath.Join(dir, "s")}
	near := pairOf(t, args...)
	near.linked(1)
	const calls = 2500
	near.calls(0, calls)
	near.kill()

	files, err := filepath.Glob(filepath.Join(dir, "link*.pcapng*"))
	require.NoError(t, err)
	require.Len(t, files, 4, "two that are complete, the current one, and that of others: %v", files)
	all := map[int]bool{}
	for _, file := range files {
		found := numbersIn(t, file)
		if strings.Contains(file, "other") {
			continue
		}
		assert.NotEmpty(t, found, file)
		for n := range found {
			all[n] = true
		}
	}
	first := calls
	for n := range all {
		first = min(first, n)
	}
	assert.Positive(t, first, "earlier files were removed")
	assert.Len(t, all, calls-first, "from %d on none is missing", first)

	again := pairOf(t, args...)
	again.linked(1)
	again.calls(calls, calls+10)
	again.end()
	assert.Len(t, numbersIn(t, name), 10)
	files, err = filepath.Glob(filepath.Join(dir, "link-2*.pcapng"))
	require.NoError(t, err)
	require.Len(t, files, 2)
	assert.Contains(t, numbersIn(t, files[1]), calls-1, "the current file of the proxy that was killed")
}

// A second server that is started by mistake, where an address is in use, leaves the recording of
// the first alone: the file has its name still, and no other one is there.
func TestBusyPortCostsNoRecording(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "pair.conf")
	require.NoError(t, os.WriteFile(config, []byte("[proxy]\nlisten = 127.0.0.1:0\n[proxy route a]\nlisten = "+
		busy.Addr().String()+"\nupstream = http://127.0.0.1:1/\n"), 0o600))
	upstream := []string{"--upstream", "http://127.0.0.1:1/"}
	for name, args := range map[string][]string{
		"proxy": append([]string{"proxy", "--listen", busy.Addr().String()}, upstream...),
		"proxy, --tcp": append([]string{"proxy", "--listen", "127.0.0.1:0", "--tcp", busy.Addr().String()},
			upstream...),
		"proxy, routes": {"proxy", "--config", config},
		"serve":         {"serve", "--listen", busy.Addr().String()},
		"serve, --tcp":  {"serve", "--listen", "127.0.0.1:0", "--tcp", busy.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "link.pcapng")
			require.NoError(t, os.WriteFile(file, []byte("of the first"), 0o600))
			code, _, stderr := do(t, append(args, "--record", file)...)
			assert.Equal(t, exit.Failed, code, stderr)
			assert.Contains(t, stderr, "the port is in use")
			assert.Equal(t, "of the first", string(shared.Read(t, file)))
			files, err := os.ReadDir(filepath.Dir(file))
			require.NoError(t, err)
			assert.Len(t, files, 1)
		})
	}
}

// TestRecordingOnAFullDisk: a disk that is full is told once, and stops no call.
func TestRecordingOnAFullDisk(t *testing.T) {
	unshare := shared.Program(t, "unshare")
	if exec.CommandContext(t.Context(), unshare, "-rm", "true").Run() != nil {
		t.Skip("this system does not let us mount a disk")
	}
	dir := t.TempDir()
	script := `#!/bin/sh
mkdir disk && mount -t tmpfs -o size=160k none disk && exec "` + shared.Program(t, "hhfr") + `" "$@"`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proxy"), []byte(script), 0o700))
	for _, several := range []bool{false, true} {
		t.Run(fmt.Sprintf("several=%v", several), func(t *testing.T) {
			echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(w, r.Body)
			}))
			t.Cleanup(echo.Close)
			args := []string{"-rm", filepath.Join(dir, "proxy"), "proxy", "--listen", "127.0.0.1:0", "-o", "json",
				"--upstream", echo.URL, "--record", "disk/link.pcapng", "--no-offer"}
			if several {
				args = append(args, "--record-size", "64KiB")
			}
			command := exec.CommandContext(t.Context(), unshare, args...)
			command.Dir = t.TempDir()
			near := startCommand(t, command)
			random := make([]byte, 400<<10)
			_, err := rand.Read(random)
			require.NoError(t, err)
			message := filepath.Join(command.Dir, "message.xml")
			require.NoError(t, os.WriteFile(message, fmt.Appendf(nil, "<q>%x</q>", random), 0o600))
			for range 3 {
				code, _, stderr := do(t, "stream", near.url("/"), message, "--wrap", "1.1", "-q", "--require-hhfr")
				require.Zero(t, code, stderr)
			}
			near.told("the recording cannot be written: calls go on unrecorded")
			assert.Equal(t, 1, strings.Count(near.errs.String(), "no space left on device"), near.errs.String())
			require.NoError(t, near.cmd.Process.Signal(os.Interrupt))
			_ = near.cmd.Wait()
			assert.Contains(t, near.errs.String(), "the recording disk/link.pcapng is not complete")
		})
	}
}

// The configurations that packages come with are those of a pair.
func TestPackagedConfigurations(t *testing.T) {
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(echo.Close)
	start := func(name string, replaced ...string) *proxyProcess {
		text := string(shared.Read(t, shared.Testdata(t, "..", "packaging", name)))
		for i := 0; i < len(replaced); i += 2 {
			require.Contains(t, text, replaced[i])
			text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
		}
		c := exec.CommandContext(t.Context(), "hhfr", "--config", name, "proxy", "-o", "json", "-v")
		c.Dir = t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600))
		return startCommand(t, c)
	}
	far := start("far.conf", "0.0.0.0:8082", "127.0.0.1:0", "http://127.0.0.1:8080", echo.URL)
	near := start("near.conf", "127.0.0.1:8081", "127.0.0.1:0", "http://far.example:8082", "http://"+far.listen)
	near.linked(1)
	near.calls(0, 3)
	assert.DirExists(t, filepath.Join(near.cmd.Dir, "store", "shapes"))
	near.end()
	far.end()
}

// Flags of a recording that make no sense together are a wrong command line.
func TestRecordFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--record-size 1MiB", "are for --record"},
		{"--record x --record-size 1KiB", "at least 64KiB"},
		{"--record x --record-files 3", "there is one file"},
		{"--record x --record-age -1s", "0 or more"},
	} {
		code, _, stderr := do(t, append(strings.Fields("proxy --listen 127.0.0.1:0 --upstream http://127.0.0.1:1/"),
			strings.Fields(c.args)...)...)
		assert.Equal(t, exit.WrongUsage, code, c.args)
		assert.Contains(t, stderr, c.want)
	}
	code, _, stderr := do(t, strings.Fields("proxy --listen 127.0.0.1:0 --upstream http://127.0.0.1:1/ "+
		"--record /dev/null --record-age 1h")...)
	assert.Equal(t, exit.Failed, code)
	assert.Contains(t, stderr, "--record: /dev/null: a recording in several files needs a file")
}

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/live"
	"github.com/hhfr/hhfr/internal/shared"
)

// capturing starts a decode of what passes on loopback from and to a port; end interrupts it, and
// returns its messages. Who may not capture skips the test.
func capturing(t *testing.T, port string, args ...string) (until func(messages int), end func() string) {
	t.Helper()
	source, err := live.Open("lo", func() bool { return true })
	if err != nil {
		t.Skip("no capture here: ", err)
	}
	require.NoError(t, source.Close())
	args = append([]string{"decode", "-i", "lo", "--port", port, "-o", "jsonl"}, args...)
	cmd := exec.CommandContext(t.Context(), "hhfr", args...)
	out, errs := new(said), new(said)
	cmd.Stdout, cmd.Stderr = out, errs
	require.NoError(t, cmd.Start())
	eventually := func(what func() bool) {
		t.Helper()
		require.Eventually(t, what, time.Minute, 10*time.Millisecond, "%s%s", errs, out)
	}
	eventually(func() bool { return strings.Contains(errs.String(), "capturing from lo") })
	until = func(messages int) {
		t.Helper()
		eventually(func() bool { return strings.Count(out.String(), "\"operation\"") >= messages })
	}
	return until, func() string {
		t.Helper()
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		_ = cmd.Wait()
		assert.Equal(t, exit.Interrupted, cmd.ProcessState.ExitCode(), errs)
		assert.Contains(t, errs.String(), "TCP connection")
		return out.String()
	}
}

// TestCapture: messages are listed as they pass, each once, and Ctrl-C ends it with a summary.
func TestCapture(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write([]byte(entryMessage(2)))
	}))
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	until, end := capturing(t, port)
	for call := range 3 {
		resp, err := http.Post(server.URL, "text/xml", strings.NewReader(entryMessage(1)))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		until(2 * (call + 1))
	}
	assert.Len(t, operationsIn(t, end()), 6)
}

// TestCaptureInTLS: a stream in TLS is decoded while it runs, by the keys that its server logs.
func TestCaptureInTLS(t *testing.T) {
	dir := t.TempDir()
	writeCertificates(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	keys := at("keys")
	t.Setenv("SSLKEYLOGFILE", keys)
	url, stop := serveHere(t, "--cert", at("server.pem"), "--key", at("server.key"))
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "https://"), ":")
	port, _, _ = strings.Cut(port, "/")
	until, end := capturing(t, port, "--keylog", keys)
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	code, _, stderr := do(t, "stream", url, message, "--repeat", "3", "--cacert", at("ca.pem"))
	require.Zero(t, code, stderr)
	until(6)
	stop()
	assert.Len(t, informs(t, end()), 6)
}

// TestCaptureRefused: who may not capture, and what is no interface or port.
func TestCaptureRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		says string
	}{
		"no interface":  {[]string{"-i", "none0"}, "no such interface: none0; there are "},
		"with a file":   {[]string{"-i", "lo", "x.pcap"}, "takes no arguments"},
		"json":          {[]string{"-i", "lo", "-o", "json"}, "-o jsonl"},
		"no port":       {[]string{"-i", "lo", "--port", "0"}, "ports are 1 to 65535"},
		"no such port":  {[]string{"x.pcap", "--port", "65536"}, "ports are 1 to 65535"},
		"neither":       {nil, "no FILE given"},
		"keys of where": {[]string{"-i", "lo", "--keylog", "none"}, "none: no such file"},
	} {
		var out, errs bytes.Buffer
		args := append([]string{"decode"}, tc.args...)
		code := execute(context.Background(), command.Env{Out: &out, Err: &errs}, args)
		assert.NotZero(t, code, name)
		assert.Contains(t, errs.String(), tc.says, name)
	}
	hhfr, err := exec.LookPath("hhfr")
	require.NoError(t, err)
	unprivileged := exec.CommandContext(t.Context(), shared.Program(t, "setpriv"), "--bounding-set=-net_raw",
		"--inh-caps=-net_raw", hhfr, "decode", "-i", "lo")
	said, err := unprivileged.CombinedOutput()
	if strings.Contains(string(said), "setpriv:") {
		t.Skip("setpriv may not: ", string(said))
	}
	require.Error(t, err)
	assert.Equal(t, exit.Failed, unprivileged.ProcessState.ExitCode())
	assert.Contains(t, string(said), "CAP_NET_RAW")
	assert.Contains(t, string(said), "sudo setcap cap_net_raw=ep ")
}

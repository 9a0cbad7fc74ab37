//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOneUpstreamWrittenTwice: routes to one upstream share its stream and its counters, however
// its URL is written, and over reloads.
func TestOneUpstreamWrittenTwice(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.Copy(w, r.Body)
	}))
	defer origin.Close()
	far := startProxyProcess(t, "localhost:0", origin.URL, "--no-offer")
	_, port, err := net.SplitHostPort(far.addresses["http"])
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "near.conf")
	write := func(upstreams ...string) {
		text := "[proxy]\nlisten = 127.0.0.1:0\nstore = mem:\n"
		for i, u := range upstreams {
			text += fmt.Sprintf("[proxy route r%d]\npath = /%d\nupstream = http://%s\n", i, i, u)
		}
		require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
	}
	write("localhost:"+port, "LOCALHOST:"+port+"/")
	near := startCommand(t, exec.CommandContext(t.Context(), "hhfr", "proxy", "--config", config, "-o", "json",
		"--upstream", "http://localhost:"+port+"/", "--metrics", "127.0.0.1:0", "-v"))
	near.linked(1)
	write("Localhost:"+port, "localhost:"+port+"/", "localhost:"+port)
	require.NoError(t, near.cmd.Process.Signal(syscall.SIGHUP))
	near.told("hhfr: reloaded " + config)
	for _, path := range []string{"/0", "/1", "/2", "/other"} {
		post(t, near.url(path))
	}
	var upstreams []map[string]any
	require.Eventually(t, func() bool { // a call is counted behind its reply
		var status struct{ Upstreams []map[string]any }
		require.NoError(t, json.Unmarshal(askMonitor(t, near.addresses["metrics"], "/status?format=json"), &status))
		upstreams = status.Upstreams
		return len(upstreams) == 1 && upstreams[0]["calls"] == 4.0
	}, time.Minute, 10*time.Millisecond)
	assert.Equal(t, "http://localhost:"+port+"/", upstreams[0]["upstream"])
	assert.EqualValues(t, 1, upstreams[0]["streams_opened"])
	assert.NotContains(t, upstreams[0], "gone")
	require.NoError(t, os.WriteFile(config, []byte("[proxy]\n[proxy route all]\nupstream = "+origin.URL+"\n"), 0o600))
	require.NoError(t, near.cmd.Process.Signal(syscall.SIGHUP))
	near.told("hhfr: reloaded " + config + ": 1 route")
	require.Eventually(t, func() bool {
		text := askMonitor(t, near.addresses["metrics"], "/status?format=json")
		keepText(t, text, "status")
		return strings.Contains(string(text), `"gone":true`)
	}, time.Minute, 10*time.Millisecond)
	near.end()
	far.end()
}

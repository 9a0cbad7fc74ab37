//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
	"github.com/hhfr/hhfr/internal/shared"
)

var verifiedCall = regexp.MustCompile(`"operation":"op",.*"state":"verified"`)

// TestDefaultStore: a pair that is told nothing of stores goes on after both halves were ended, and
// what it sends then is decoded with the store of either, which decode names.
func TestDefaultStore(t *testing.T) {
	states, dir := t.TempDir(), t.TempDir()
	start := func(args ...string) *proxyProcess {
		cmd := exec.CommandContext(t.Context(), "hhfr", append([]string{"proxy", "-o", "json", "-v"}, args...)...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+states)
		return startCommand(t, cmd)
	}
	origin := httptest.NewServer(echo{})
	defer origin.Close()
	farAt, nearAt, capture := shared.Addr(t), shared.Addr(t), ""
	for _, name := range []string{"first", "second"} {
		capture = filepath.Join(dir, name+".pcapng")
		far := start("--listen", farAt, "--upstream", origin.URL+"/service", "--no-offer")
		near := start("--listen", nearAt, "--upstream", far.url("/service"), "--record", capture)
		near.linked(1)
		for number := range 5 {
			resp, err := http.Post(near.url("/service"), "text/xml", strings.NewReader(envelope(number)))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, http.StatusOK, resp.StatusCode)
		}
		http.DefaultClient.CloseIdleConnections()
		near.end()
		far.end()
	}
	stores, err := filepath.Glob(filepath.Join(states, "hhfr", "*"))
	require.NoError(t, err)
	require.Len(t, stores, 2)
	for _, at := range []string{farAt, nearAt} {
		store := filepath.Join(states, "hhfr", "proxy-"+strings.ReplaceAll(at, ":", "-"))
		info, err := os.Stat(store)
		require.NoError(t, err)
		assert.Equal(t, os.ModeDir|0o700, info.Mode())
		code, stdout, stderr := do(t, "decode", "-o", "jsonl", capture, "--store", store)
		require.Zero(t, code, stderr)
		assert.Len(t, verifiedCall.FindAllString(stdout, -1), 10)
	}
	t.Setenv("XDG_STATE_HOME", states)
	code, _, stderr := do(t, "decode", "-q=false", capture)
	assert.Equal(t, exit.Partial, code)
	assert.Contains(t, stderr, "--store names one: this user has "+stores[0]+", "+stores[1])
}

// TestDefaultStoreInMemory: with port 0, with mem:, and where there can be no folder, which is
// reported.
func TestDefaultStoreInMemory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, c := range map[string]struct {
		env  []string
		args []string
		said string
	}{
		"port 0":    {args: []string{"--listen", "127.0.0.1:0"}},
		"mem:":      {args: []string{"--listen", shared.Addr(t), "--store", "mem:"}},
		"no folder": {[]string{"XDG_STATE_HOME=" + file}, []string{"--listen", shared.Addr(t)}, file},
		"no home": {[]string{"XDG_STATE_HOME=", "HOME=", "LocalAppData="}, []string{"--listen", shared.Addr(t)},
			"set HOME"},
	} {
		t.Run(name, func(t *testing.T) {
			states := t.TempDir()
			cmd := exec.CommandContext(t.Context(), "hhfr", append([]string{"serve", "-o", "json"}, c.args...)...)
			cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+states), c.env...)
			p := startCommand(t, cmd)
			assert.Equal(t, "mem:", p.store)
			p.end()
			if c.said == "" {
				assert.NotContains(t, p.errs.String(), "warning")
			} else {
				assert.Equal(t, 1, strings.Count(p.errs.String(), "hhfr: warning: the store is in memory"))
				assert.Contains(t, p.errs.String(), c.said)
			}
			left, err := os.ReadDir(states)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// TestNamesOfDefaultStores: one for each command and address.
func TestNamesOfDefaultStores(t *testing.T) {
	for of, want := range map[[2]string]string{
		{"proxy", "127.0.0.1:8081"}:      "proxy-127.0.0.1-8081",
		{"serve", ":8080"}:               "serve-all-8080",
		{"serve", "[::1]:8080"}:          "serve-__1-8080",
		{"proxy", "Gate.Example:80"}:     "proxy-gate.example-80",
		{"proxy", "[fe80::1%eth0/..]:1"}: "proxy-fe80__1_eth0_..-1",
	} {
		t.Setenv("XDG_STATE_HOME", "/states")
		assert.Equal(t, filepath.Join("/states", "hhfr", want), stores.DefaultStore(of[0], of[1]))
		t.Setenv("STATE_DIRECTORY", "/var/lib/hhfr/near:/var/lib/other")
		assert.Equal(t, filepath.Join("/var/lib/hhfr/near", "stores", want), stores.DefaultStore(of[0], of[1]))
		t.Setenv("STATE_DIRECTORY", "")
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", "/home/somebody")
	assert.Equal(t, "/home/somebody/.local/state/hhfr/serve-all-1", stores.DefaultStore("serve", ":1"))
}

//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/stores"
)

// TestProxyCheck: --check says what a proxy would be, or why it would not start, with the exit code
// that it would have, and leaves nothing behind: also while a proxy runs with the same settings.
func TestProxyCheck(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	t.Setenv("XDG_STATE_HOME", dir)
	address := "127.0.0.1:" + freePort(t)
	good := file("good.conf", `[proxy]
listen = `+address+`
upstream = http://far.example:8082/service
record = `+filepath.Join(dir, "link.pcapng")+`
access-log = `+filepath.Join(dir, "calls")+`
metrics = 9101

[proxy route camera]
path = /camera
upstream = http://camera.example/onvif
`)
	other := file("store.db", "")
	badKey := file("key.conf", "[proxy]\nupstream = http://x/\nlistn = :1\n")
	routeKey := file("own.conf", "[proxy route a]\nupstream = https://x/\nupstream-cert = "+dir+
		"/none.pem\nupstream-key = "+other+"\n")
	badRoute := file("route.conf", "[proxy route a]\nupstream = x\n")
	files := func() (all []string) {
		require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			all = append(all, path)
			return err
		}))
		return all
	}
	before := files()
	code, out, stderr := do(t, "proxy", "--config", good, "--check", "--store", "bolt:"+filepath.Join(dir, "new.db"))
	require.Zero(t, code, stderr)
	assert.Equal(t, "check     ok\nclients   http://"+address+"\nstreams   tcp "+address+"\n"+
		"route     camera: /camera to http://camera.example/onvif\nupstream  http://far.example:8082/service\n"+
		"store     bolt:"+filepath.Join(dir, "new.db")+"\nmetrics   http://127.0.0.1:9101/status\n", out)
	code, out, stderr = do(t, "proxy", "--config", good, "--check", "-o", "json", "--tcp", "none")
	require.Zero(t, code, stderr)
	assert.JSONEq(t, `{"version": 1, "check": "ok", "addresses": {"http": "`+address+`", "metrics": "127.0.0.1:9101"},
		"routes": [{"name": "camera", "path": "/camera", "upstream": "http://camera.example/onvif"}],
		"upstream": "http://far.example:8082/service",
		"store": "`+stores.DefaultStore("proxy", address)+`"}`, out)

	up := []string{"--upstream", "http://127.0.0.1:1/x", "--listen", address}
	cases := []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--config", badKey}, exit.WrongUsage, "line 3"},
		{[]string{"--config", badRoute}, exit.WrongUsage, "route a"},
		{[]string{"--config", routeKey}, exit.Failed, "none.pem"},
		{nil, exit.WrongUsage, "--upstream is missing"},
		{append(up, "--listen", "nowhere"), exit.WrongUsage, "nowhere is no address"},
		{append(up, "--cert", filepath.Join(dir, "none.pem"), "--key", other), exit.Failed, "none.pem"},
		{append(up, "--cacert", filepath.Join(dir, "none.pem")), exit.Failed, "none.pem"},
		{append(up, "--negotiate", "bearer:"+filepath.Join(dir, "none")), exit.Failed, "none"},
		{append(up, "--store", "bolt:"+dir), exit.Failed, dir + " is a folder"},
		{append(up, "--store", other), exit.Failed, other + " is no folder"},
		{append(up, "--store", "redis://x"), exit.WrongUsage, "no engine for"},
		{append(up, "--common-store", "x"), exit.WrongUsage, "--common-store x is no URL"},
		{append(up, "--record", filepath.Join(dir, "none", "x.pcapng")), exit.Failed, "--record"},
		{append(up, "--access-log", filepath.Join(dir, "none", "x")), exit.Failed, "--access-log"},
		{append(up, "--schema", filepath.Join(dir, "none.wsdl")), exit.Failed, "none.wsdl"},
		{append(up, "--metrics", address), exit.WrongUsage, "where calls come in"},
	}
	for _, tt := range cases {
		code, _, stderr := do(t, append([]string{"proxy", "--check"}, tt.args...)...)
		assert.Equal(t, tt.code, code, "%v: %s", tt.args, stderr)
		assert.Contains(t, stderr, tt.says)
	}
	assert.Equal(t, before, files(), "nothing is left behind")
	for _, tt := range cases {
		code, _, _ := do(t, append([]string{"proxy"}, tt.args...)...)
		assert.Equal(t, tt.code, code, "as with --check: %v", tt.args)
	}

	store := filepath.Join(dir, "store")
	startProxyProcess(t, address, "http://127.0.0.1:1/x", "--store", store)
	code, _, stderr = do(t, append([]string{"proxy", "--check", "--store", store}, up...)...)
	assert.Zero(t, code, stderr)
}

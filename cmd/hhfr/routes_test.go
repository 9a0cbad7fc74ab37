package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// exampleOfRoutes is the file of docs/proxy.md.
func exampleOfRoutes(t *testing.T) string {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "proxy.md"))
	require.NoError(t, err)
	_, after, ok := strings.Cut(string(page), "```\n[proxy]\n")
	require.True(t, ok)
	example, _, ok := strings.Cut(after, "```\n")
	require.True(t, ok)
	return "[proxy]\n" + example
}

// TestRoutesOfTheDocument: the file of docs/proxy.md, with servers of this machine, sends requests
// where it says, also after SIGHUP under calls in progress, none of which is lost.
func TestRoutesOfTheDocument(t *testing.T) {
	names := func(name string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodOptions {
				http.NotFound(w, r)
				return
			}
			fmt.Fprint(w, name)
		}))
		t.Cleanup(s.Close)
		return s
	}
	far, hall, yard := names("far"), names("hall"), names("yard")
	dir := t.TempDir()
	config := filepath.Join(dir, "pair.conf")
	text := strings.NewReplacer(
		"0.0.0.0:8081", "127.0.0.1:0", "./near.db", "mem:", "http://far.example:8082", far.URL,
		"http://hall.example:8082", hall.URL,
		"127.0.0.1:8091", "localhost:0", "https://yard.example:8443", yard.URL, "cacert = yard.pem\n", "",
	).Replace(exampleOfRoutes(t))
	write := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
	write(text)
	p := &proxyProcess{t: t, cmd: exec.CommandContext(t.Context(), "hhfr", "proxy", "--config", config, "-o", "json")}
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, "%s", &p.errs)
	var said struct{ Addresses map[string]string }
	require.NoError(t, json.Unmarshal(line, &said))
	asks := func(address, host, path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		r.Host = host
		reply, err := http.DefaultClient.Do(r)
		if !assert.NoError(t, err) {
			return ""
		}
		defer func() { _ = reply.Body.Close() }()
		body, err := bufio.NewReader(reply.Body).ReadString(0)
		assert.ErrorContains(t, err, "EOF")
		return body
	}
	main, own := said.Addresses["http"], said.Addresses["localhost:0"]
	assert.Equal(t, "far", asks(main, "gate.example", "/hall"))
	assert.Equal(t, "far", asks(main, "other.example", "/"))
	assert.Equal(t, "hall", asks(main, "other.example", "/hall/1"))
	assert.Equal(t, "yard", asks(own, "other.example", "/hall"))

	var calls atomic.Int64
	var stop atomic.Bool
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for !stop.Load() {
				assert.Contains(t, []string{"far", "hall"}, asks(main, "other.example", "/hall/2"))
				calls.Add(1)
			}
		})
	}
	for i := range 10 {
		path := [2]string{"path = /elsewhere", "path = /hall"}[i%2]
		write(strings.Replace(text, "path = /hall", path, 1))
		before := calls.Load()
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
		require.Eventually(t, func() bool {
			return strings.Count(p.errs.String(), "hhfr: reloaded ") == i+1 && calls.Load() > before+8
		}, time.Minute, time.Millisecond)
	}
	write(strings.Replace(text, "[proxy route yard]", "[proxy route hall]", 1))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.told("not reloaded, everything stays as it is: --config " + config +
		`, line 14: route "hall" stands in line 10 already`)
	assert.Equal(t, "yard", asks(own, "other.example", "/hall"))
	stop.Store(true)
	wait.Wait()
	_, yardsAt, ok := strings.Cut(text, "[proxy route yard]")
	require.True(t, ok, yardsAt)
	write(strings.Replace(text, "[proxy route yard]"+yardsAt, "", 1))
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", own)
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, time.Minute, time.Millisecond, "the listener of its own is closed")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, p.cmd.Wait(), "%s", &p.errs)
}

// A reload says where calls go from then on, also without routes.
func TestReloadWithoutRoutes(t *testing.T) {
	config := filepath.Join(t.TempDir(), "near.conf")
	write := func(upstream string) {
		require.NoError(t, os.WriteFile(config, []byte("listen = 127.0.0.1:0\nupstream = "+upstream+"\n"), 0o600))
	}
	write("http://127.0.0.1:1/a")
	p := startCommand(t, exec.CommandContext(t.Context(), "hhfr", "proxy", "--config", config, "-o", "json"))
	write("http://127.0.0.1:1/b")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGHUP))
	p.told("hhfr: reloaded " + config + ": upstream http://127.0.0.1:1/b\n")
}

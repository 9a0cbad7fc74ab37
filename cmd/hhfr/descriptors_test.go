package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/commands/serve"
	"github.com/hhfr/hhfr/internal/shared"
)

// said collects the output of a process, to be read while it runs.
type said struct {
	mu  sync.Mutex
	all strings.Builder
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.String()
}

// TestServeWithoutDescriptors: clients take all file descriptors of a server, at either port. It
// warns once for each, and continues to serve when they have left.
func TestServeWithoutDescriptors(t *testing.T) {
	const command = `ulimit -n 64 && exec hhfr serve --listen 127.0.0.1:0 --udp none --tcp 127.0.0.1:0 -o json`
	server := exec.CommandContext(t.Context(), shared.Program(t, "sh"), "-c", command)
	var errs said
	server.Stderr = &errs
	out, err := server.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, server.Start())
	t.Cleanup(func() { _ = server.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, "%s", &errs)
	var where struct {
		Addresses map[string]string
		Services  map[string]serve.ServiceLine
	}
	require.NoError(t, json.Unmarshal(line, &where))
	echo := where.Services["echo"].URL
	call := func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
		resp, err := client.Post(echo, "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err, "%s", &errs)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)
		code, _, stderr := do(t, "stream", echo, shared.Testdata(t, "soap", "cwmp-inform.xml"), "--require-hhfr", "-q")
		require.Zero(t, code, "%s; %s", stderr, &errs)
	}
	call()
	for times, port := range []string{"tcp", "http"} {
		var held []net.Conn
		for range 100 {
			c, err := net.Dial("tcp", where.Addresses[port])
			require.NoError(t, err)
			held = append(held, c)
		}
		require.Eventually(t, func() bool {
			return strings.Count(errs.String(), "too many open files") > times
		}, time.Minute, 10*time.Millisecond, "%s", &errs)
		for _, c := range held {
			require.NoError(t, c.Close())
		}
		call()
	}
	require.NoError(t, server.Process.Signal(os.Interrupt))
	require.NoError(t, server.Wait(), "%s", &errs)
	assert.Equal(t, 2, strings.Count(errs.String(), "cannot accept connections"), "%s", &errs)
	assert.Equal(t, 1, strings.Count(errs.String(), "file descriptors may run out"), "%s", &errs)
	assert.Contains(t, errs.String(), "limit=64 connections=2048")
}

// A proxy says at start that its limit of descriptors is too low, waits out their want without
// taking the processor, and serves on. The soft limit is no limit.
func TestProxyWithoutDescriptors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	start := func(limits string) (*exec.Cmd, string, *said) {
		command := limits + " && exec hhfr proxy --listen 127.0.0.1:0 --no-offer --upstream " + server.URL + " -o json"
		c := exec.CommandContext(t.Context(), shared.Program(t, "sh"), "-c", command)
		errs := new(said)
		c.Stderr = errs
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill() })
		line, err := bufio.NewReader(out).ReadBytes('\n')
		require.NoError(t, err, "%s", errs)
		var where struct{ Addresses map[string]string }
		require.NoError(t, json.Unmarshal(line, &where))
		return c, where.Addresses["http"], errs
	}
	end := func(c *exec.Cmd, errs *said) {
		require.NoError(t, c.Process.Signal(syscall.SIGTERM))
		require.NoError(t, c.Wait(), "%s", errs)
	}
	c, addr, errs := start("ulimit -n 64")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	call := func() int {
		resp, err := client.Post("http://"+addr+"/", "text/xml", strings.NewReader(envelope(1)))
		require.NoError(t, err, "%s", errs)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	assert.Equal(t, http.StatusOK, call(), "%s", errs)
	var held []net.Conn
	for range 100 {
		k, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		held = append(held, k)
	}
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "too many open files") }, time.Minute,
		10*time.Millisecond, "%s", errs)
	for _, k := range held {
		require.NoError(t, k.Close())
	}
	require.Eventually(t, func() bool { return call() == http.StatusOK }, time.Minute, 10*time.Millisecond,
		"until the proxy has closed them, it has no descriptor for its upstream: %s", errs)
	end(c, errs)
	assert.Contains(t, errs.String(), "limit=64 connections=3072")
	assert.Equal(t, 1, strings.Count(errs.String(), "file descriptors may run out"))
	assert.Less(t, c.ProcessState.UserTime()+c.ProcessState.SystemTime(), 10*time.Second, "it does not spin")

	c, _, errs = start("ulimit -S -n 64 && ulimit -H -n 4096")
	end(c, errs)
	assert.NotContains(t, errs.String(), "descriptors")
}

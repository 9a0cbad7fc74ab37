package main

import (
	"bufio"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
		Services  map[string]serviceLine
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
}

//go:build unix

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
)

// TestResync: SIGUSR2 to either half of a pair under traffic, or a POST of /status, has what a
// capture that begins then contains decoded without a store: every message, both ways, verified. So
// has who attaches to it.
func TestResync(t *testing.T) {
	for _, how := range []string{"SIGUSR2 to near", "SIGUSR2 to far", "POST to near", "attached to near"} {
		t.Run(how, func(t *testing.T) {
			code, stdout, stderr := do(t, "decode", "-o", "jsonl", captureBehindSync(t, how))
			require.Equal(t, exit.Partial, code, stderr) // it begins without a hello
			bodies := map[string]int{}
			for line := range strings.Lines(stdout) {
				var row struct {
					State, Session string
					Body           []byte `json:"body_base64"`
				}
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				if row.Session == "" {
					continue // on the side of the client
				}
				assert.Equal(t, "verified", row.State, line)
				bodies[string(row.Body)]++
			}
			assert.Len(t, bodies, 36)
			for body, times := range bodies {
				assert.Equal(t, 2, times, "request and reply: %s", body)
			}
		})
	}
}

// captureBehindSync has a pair carry calls, asks for syncs, has it carry 36 more, and gives the
// capture of those.
func captureBehindSync(t *testing.T, how string) (late string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "all.pcapng")
	origin := httptest.NewServer(echo{})
	defer origin.Close()
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL+"/service", "--no-offer", "--quiet=false")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/service"), "--quiet=false", "-v",
		"--record", file, "--metrics", "127.0.0.1:0", "--packets")
	near.linked(1)
	client := &http.Client{Transport: &http.Transport{}}
	call := func(number int, operation string) {
		message := strings.ReplaceAll(envelope(number), "op", operation)
		resp, err := client.Post(near.url("/service"), "text/xml", strings.NewReader(message))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, message, string(body))
	}
	for number := range 12 {
		call(number, "op")
		call(number, "seldom")
	}
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	late = filepath.Join(dir, "late.pcapng")
	var attached func()
	switch half := map[string]*proxyProcess{"SIGUSR2 to near": near, "SIGUSR2 to far": far}[how]; {
	case how == "attached to near":
		attached = attach(t, near.addresses["metrics"], late)
	case half == nil:
		code, _, text := postStatus(t, near.addresses["metrics"])
		require.Equal(t, http.StatusAccepted, code)
		assert.JSONEq(t, `{"version": 1, "streams": 1}`, text)
	default:
		require.NoError(t, half.cmd.Process.Signal(syscall.SIGUSR2))
		half.told("a sync goes out on 1 stream")
	}
	require.Eventually(t, func() bool { // the peer's is sent when it is asked
		now, err := os.ReadFile(file)
		require.NoError(t, err)
		return bytes.Count(now[len(before):], []byte("\x03\xC5hhfr\x9A\n")) == 2
	}, time.Minute, 10*time.Millisecond)
	for number := range 12 {
		call(number, "op")
		call(number, "seldom")
		call(number, "new")
	}
	client.CloseIdleConnections()
	near.end()
	far.end()
	if attached != nil {
		attached()
		return late
	}
	cutBefore(t, file, len(before), late)
	return late
}

// attach saves what passes through a process to a file, until the process ends; who else attaches
// is refused.
func attach(t *testing.T, addr, file string) (wait func()) {
	t.Helper()
	get := func() *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/packets", http.NoBody)
		require.NoError(t, err)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		require.NoError(t, err)
		return resp
	}
	resp := get()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	other := get()
	assert.Equal(t, http.StatusConflict, other.StatusCode)
	require.NoError(t, other.Body.Close())
	f, err := os.Create(file)
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(f, resp.Body) // the process ends in it
	}()
	return func() {
		<-done
		require.NoError(t, resp.Body.Close())
		require.NoError(t, f.Close())
	}
}

// echo answers with what it gets.
type echo struct{}

func (echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "text/xml")
	_, _ = w.Write(body)
}

// postStatus asks for a sync on every stream, with further fields.
func postStatus(t *testing.T, addr string, fields ...string) (code int, header http.Header, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/status", http.NoBody)
	require.NoError(t, err)
	for i := 0; i < len(fields); i += 2 {
		if r.Header.Set(fields[i], fields[i+1]); fields[i] == "Host" {
			r.Host = fields[i+1]
		}
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	if resp.StatusCode == http.StatusAccepted {
		keepText(t, body, "resync")
	}
	return resp.StatusCode, resp.Header, string(body)
}

// cutBefore makes a recording of those packets of another that begin at a byte of it or later, as
// if nothing had been recorded before.
func cutBefore(t *testing.T, file string, from int, to string) {
	t.Helper()
	const packet = 6 // an enhanced packet block
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	var kept []byte
	for at := 0; at < len(b); {
		kind, n := binary.LittleEndian.Uint32(b[at:]), int(binary.LittleEndian.Uint32(b[at+4:]))
		if kind != packet || at >= from {
			kept = append(kept, b[at:at+n]...)
		}
		at += n
	}
	require.NoError(t, os.WriteFile(to, kept, 0o600))
}

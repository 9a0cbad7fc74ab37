package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mortalServer is a `hhfr serve` of its own process, to be killed.
type mortalServer struct {
	cmd          *exec.Cmd
	http, stream string
	url          string
}

func startMortal(t *testing.T, http, stream, store string) *mortalServer {
	t.Helper()
	s := &mortalServer{cmd: exec.CommandContext(t.Context(), "hhfr", "serve", "--listen", http, "--tcp", stream, "--store", store, "-o", "json", "-q")}
	var errs bytes.Buffer
	s.cmd.Stderr = &errs
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	t.Cleanup(s.kill)
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err, &errs)
	var said struct {
		Addresses map[string]string
		Services  map[string]serviceLine
	}
	require.NoError(t, json.Unmarshal(line, &said))
	s.url, s.stream = said.Services["echo"].URL, said.Addresses["tcp"]
	u, err := url.Parse(s.url)
	require.NoError(t, err)
	s.http = u.Host
	return s
}

// kill sends SIGKILL, and waits until the process is gone.
func (s *mortalServer) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// The server is killed in mid-run and started again on the same store: stream negotiates anew, sends what was not yet sent, lists those of unknown fate, and each message
// has one outcome.
func TestServerKilledInMidRun(t *testing.T) {
	const messages, killedAfter, atOnce = 3000, 500, 16
	store := filepath.Join(t.TempDir(), "store")
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", store)
	client := exec.CommandContext(t.Context(), "hhfr", "stream", server.url, "-", "-o", "json", "--concurrency", fmt.Sprint(atOnce), "--reconnect", "2m", "--timeout", "5m")
	stdin, err := client.StdinPipe()
	require.NoError(t, err)
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	client.Stderr = &errs
	require.NoError(t, client.Start())
	go func() {
		for i := range messages {
			if _, err := io.WriteString(stdin, envelope(i+1)); err != nil {
				break
			}
		}
		_ = stdin.Close()
	}()
	type line struct {
		Number  int
		Fate    string
		Status  int
		Body    []byte `json:"body_base64"`
		Summary *summary
	}
	seen := map[int]bool{}
	var unknown []int
	var last *summary
	lines := json.NewDecoder(stdout)
	for {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		if l.Summary != nil {
			last = l.Summary
			continue
		}
		require.False(t, seen[l.Number], "message %d has two outcomes", l.Number)
		seen[l.Number] = true
		if l.Fate != "" {
			assert.Equal(t, "unknown", l.Fate)
			unknown = append(unknown, l.Number)
		} else {
			assert.Equal(t, 200, l.Status)
			assert.Equal(t, envelope(l.Number), string(l.Body))
		}
		if l.Number == killedAfter {
			server.kill()
			time.Sleep(50 * time.Millisecond) // the client meets nobody for a while
			server = startMortal(t, server.http, server.stream, store)
		}
	}
	ended := client.Wait()
	require.NotNil(t, last, errs.String())
	assert.Len(t, seen, messages)
	assert.Equal(t, messages-len(unknown), last.Messages)
	assert.True(t, last.HHFR)
	assert.Empty(t, last.Why, "the run ends on a stream")
	assert.LessOrEqual(t, len(unknown), atOnce)
	if len(unknown) == 0 {
		require.NoError(t, ended, errs.String())
		return
	}
	assert.Equal(t, unknown, last.Unknown)
	var exit *exec.ExitError
	require.ErrorAs(t, ended, &exit)
	assert.Equal(t, exitPartial, exit.ExitCode(), errs.String())
	assert.Contains(t, errs.String(), "unknown")
}

func envelope(number int) string {
	return fmt.Sprintf(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><m:op xmlns:m="urn:m"><n>%d</n></m:op></s:Body></s:Envelope>`, number)
}

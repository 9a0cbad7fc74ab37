package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// A run under an assurance waits for a server that is not there yet, that only half answers, or
// whose store is in trouble: it says so, and its messages arrive once.
func TestFirstStreamIsWaitedFor(t *testing.T) {
	for name, half := range map[string]func(t *testing.T, addr string) (end func()){
		"nobody": func(*testing.T, string) func() { return func() {} },
		"closes": func(t *testing.T, addr string) func() {
			return answerWith(t, addr, "")
		},
		"breaks off": func(t *testing.T, addr string) func() {
			return answerWith(t, addr, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: 100\r\n\r\n<s:")
		},
		"unavailable": func(t *testing.T, addr string) func() {
			return answerWith(t, addr,
				"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		},
		"has no space": func(t *testing.T, addr string) func() {
			return startMortal(t, addr, shared.Addr(t), t.TempDir(), "--store-size", "1").kill
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, addr := t.TempDir(), shared.Addr(t)
			end := half(t, addr)
			client := exec.CommandContext(t.Context(), "hhfr", "stream", "http://"+addr+"/ledger", "-", "--assurance",
				"exactly-once", "--store", filepath.Join(dir, "client"), "--reconnect", "2m")
			client.Stdin = strings.NewReader(addMessage("a") + addMessage("b"))
			errs, err := client.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, client.Start())
			said := bufio.NewReader(errs)
			line, err := said.ReadString('\n')
			require.NoError(t, err)
			assert.Contains(t, line, "no stream yet")
			end()
			w := &resumeWorld{t: t, server: startMortal(t, addr, shared.Addr(t), filepath.Join(dir, "server"))}
			rest, err := io.ReadAll(said)
			require.NoError(t, err)
			require.NoError(t, client.Wait(), "%s", rest)
			assert.Equal(t, tally("a", "b"), w.entries())
		})
	}
}

// answerWith gives every connection the same answer to its request, until end is called.
func answerWith(t *testing.T, addr, answer string) (end func()) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1<<10))
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		}
	}()
	return func() {
		_ = l.Close()
		<-ended
	}
}

// What will not pass is not waited for, however long --reconnect is.
func TestFirstStreamThatWillNotCome(t *testing.T) {
	addr := shared.Addr(t)
	defer answerWith(t, addr, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")()
	for url, says := range map[string]string{
		"http://" + addr + "/ledger":         "HTTP status 404",
		"https://" + addr + "/ledger":        "the server speaks no TLS there",
		"http://nowhere.invalid:1234/ledger": "is the name right?",
	} {
		client := exec.CommandContext(t.Context(), "hhfr", "stream", url, "-", "--assurance", "exactly-once", "-q",
			"--store", t.TempDir(), "--reconnect", "24h")
		client.Stdin = strings.NewReader(addMessage("a"))
		var errs bytes.Buffer
		client.Stderr = &errs
		require.Error(t, client.Run())
		assert.Equal(t, exit.NoPeer, client.ProcessState.ExitCode(), url)
		assert.Contains(t, errs.String(), says)
	}
}

// Why the server cannot open a sequence is told by the client, also with -q at both ends, and
// without where the server keeps its store. The guarantee is not given up for it.
func TestCauseOfARefusedSequence(t *testing.T) {
	dir := t.TempDir()
	server := startMortal(t, shared.Addr(t), shared.Addr(t), filepath.Join(dir, "full"), "--store-size", "1")
	client := exec.CommandContext(t.Context(), "hhfr", "stream", server.url, "-", "--assurance", "exactly-once",
		"--store", filepath.Join(dir, "client"), "--reconnect", "0", "-q")
	client.Stdin = strings.NewReader(addMessage("a"))
	var errs bytes.Buffer
	client.Stderr = &errs
	require.Error(t, client.Run())
	assert.Equal(t, exit.NoPeer, client.ProcessState.ExitCode())
	assert.Contains(t, errs.String(), "the sequence could not be opened: the store is full")
	assert.NotContains(t, errs.String(), filepath.Join(dir, "full"))
	assert.NotContains(t, errs.String(), "at-most-once")
	assert.Contains(t, errs.String(), "hint: that may pass")
}

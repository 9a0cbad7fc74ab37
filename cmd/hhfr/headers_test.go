package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

const (
	tenantBlock = `<t:Tenant xmlns:t="urn:example:tenant">7</t:Tenant>`
	tenantStart = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Header>` + tenantBlock +
		`</s:Header>`
	tenantFirst = tenantStart + `<s:Body><op>1</op></s:Body></s:Envelope>`
	tenantLast  = tenantStart + `<s:Body><op>2</op></s:Body></s:Envelope>`
)

// The server is killed during the run, and its replacement knows no hhfr: it gets messages with the
// headers that were agreed on, of which it knows nothing.
func TestHeadersWhenTheServerTurnsPlain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	header := filepath.Join(dir, "tenant.xml")
	require.NoError(t, os.WriteFile(header, []byte(tenantBlock+"\n"), 0o600))
	server := startMortal(t, shared.Addr(t), shared.Addr(t), filepath.Join(dir, "store"))
	client := exec.CommandContext(t.Context(), "hhfr", "stream", server.url, "-",
		"--unchanging-header", header, "-o", "json", "--concurrency", "1")
	input, err := client.StdinPipe()
	require.NoError(t, err)
	stdout, err := client.StdoutPipe()
	require.NoError(t, err)
	var errs bytes.Buffer
	client.Stderr = &errs
	require.NoError(t, client.Start())
	lines := json.NewDecoder(bufio.NewReader(stdout))
	send := func(message string) (l outcome) {
		_, err := io.WriteString(input, message)
		require.NoError(t, err)
		require.NoError(t, lines.Decode(&l), "%s", &errs)
		return l
	}
	assert.Equal(t, tenantFirst, string(send(tenantFirst).Body))
	server.kill()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", server.http)
	require.NoError(t, err)
	seen := make(chan string, 100)
	knowsNothing := func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("urn:hhfr:negotiation:1")) {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		seen <- string(body)
		_, _ = io.WriteString(w, "<done/>")
	}
	plain := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(knowsNothing)}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = plain.Serve(l)
	}()
	defer func() {
		_ = plain.Close()
		<-ended
	}()
	reply := send(tenantLast)
	if reply.Fate != "" { // it was written to the stream before anybody knew that it was dead
		reply = send(tenantLast)
	}
	assert.Equal(t, "<done/>", string(reply.Body))
	assert.Equal(t, tenantLast, <-seen)
	require.NoError(t, input.Close())
	var last outcome
	require.NoError(t, lines.Decode(&last))
	require.NotNil(t, last.Summary)
	assert.Positive(t, last.Summary.Taken)
	assert.NotEmpty(t, last.Summary.Why)
	_ = client.Wait()
}

package main

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// A server whose store is on NATS serves on, and opens sequences, however often its ledger was
// read, each time by a list of the store.
func TestManyReadsOnNATS(t *testing.T) {
	t.Parallel()
	server := startMortal(t, shared.Addr(t), shared.Addr(t), oneNATS(t))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	for i := range 1100 {
		reply, err := client.Post("http://"+server.http+"/ledger", "text/xml; charset=utf-8",
			strings.NewReader(toLedger("read", "")))
		require.NoError(t, err)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, http.StatusOK, reply.StatusCode, "read %d: %s", i, body)
	}
	w := &resumeWorld{t: t, dir: t.TempDir(), server: server}
	w.flags = []string{"--assurance", "exactly-once", "--store", filepath.Join(w.dir, "client"), "--reconnect", "0"}
	code, _, stderr := w.run(w.files("a", "b")...)
	assert.Equal(t, exit.Done, code, stderr)
	assert.Equal(t, tally("a", "b"), w.entries())
}

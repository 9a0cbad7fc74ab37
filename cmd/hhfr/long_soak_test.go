//go:build soak && !race

package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestSoakLongMessage: 200 MB, ten kills of each process, 64 MB of memory.
func TestSoakLongMessage(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		killed := longRun{transport: transport, size: 200_000_000, kills: 10, memory: 64 << 20}.run(t)
		assert.Equal(t, kills{10, 10}, killed, transport)
	}
}

// TestSoakLongFileInOneFile: 200 MB by the commands, from a store in one file to another one,
// exactly once, in 64 MB of memory of each process beside the file that it maps.
func TestSoakLongFileInOneFile(t *testing.T) {
	if anonymous(os.Getpid()) == 0 {
		t.Skip("/proc/PID/status does not tell RssAnon")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "long.xml")
	out, err := os.Create(file)
	require.NoError(t, err)
	_, err = io.Copy(out, io.MultiReader(
		strings.NewReader(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><b>`),
		io.NewSectionReader(digits{}, 0, 200_000_000), strings.NewReader(`</b></s:Body></s:Envelope>`)))
	require.NoError(t, err)
	require.NoError(t, out.Close())
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", "bolt:"+filepath.Join(dir, "server.db"))
	client := exec.CommandContext(t.Context(), "hhfr", "stream", server.url, file, "-q", "--one-way",
		"--assurance", "exactly-once", "--store", "bolt:"+filepath.Join(dir, "client.db"))
	require.NoError(t, client.Start())
	ended := make(chan error, 1)
	go func() { ended <- client.Wait() }()
	var most [2]int64
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(20 * time.Millisecond):
			for i, p := range []*exec.Cmd{client, server.cmd} {
				most[i] = max(most[i], anonymous(p.Process.Pid))
			}
		}
	}
	require.NoError(t, err)
	for i, name := range []string{"client", "server"} {
		t.Logf("%s: %d MB", name, most[i]>>20)
		assert.Positive(t, most[i], name)
		assert.LessOrEqual(t, most[i], int64(64<<20), name)
	}
	stored, err := os.Stat(filepath.Join(dir, "server.db"))
	require.NoError(t, err)
	assert.Greater(t, stored.Size(), int64(100_000_000), "the message lay in the store")
}

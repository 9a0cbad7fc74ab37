//go:build interop

package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// TestInteropWatching: messages are listed while tshark captures them, and before it ends.
func TestInteropWatching(t *testing.T) {
	tshark := shared.Program(t, "tshark")
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", "mem:")
	watch := exec.CommandContext(t.Context(), tshark, "-i", "lo", "-f", "tcp", "-w", "-")
	captured, err := watch.StdoutPipe()
	require.NoError(t, err)
	said, err := watch.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, watch.Start())
	began := false
	for lines := bufio.NewScanner(said); !began && lines.Scan(); {
		began = strings.Contains(lines.Text(), "Capture started")
	}
	if !began {
		_ = watch.Wait()
		t.Skip("tshark may not capture here")
	}
	list := exec.CommandContext(t.Context(), "hhfr", "decode", "-", "-q", "--lenient")
	list.Stdin = captured
	rows, err := list.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, list.Start())

	message := filepath.Join(t.TempDir(), "message.xml")
	require.NoError(t, os.WriteFile(message, []byte(envelopeOf("watched")), 0o600))
	code, _, stderr := do(t, "stream", server.url, message, "--require-hhfr", "-q")
	require.Equal(t, exit.Done, code, stderr)
	reply, seen := regexp.MustCompile(` reply +watched .* unverified$`), false
	for lines := bufio.NewScanner(rows); !seen && lines.Scan(); {
		seen = reply.MatchString(lines.Text())
	}
	assert.True(t, seen)
	require.NoError(t, watch.Process.Signal(os.Interrupt))
	_ = watch.Wait()
	_ = list.Wait()
}

func envelopeOf(operation string) string {
	return `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><` + operation +
		` xmlns="urn:h">1</` + operation + `></s:Body></s:Envelope>`
}

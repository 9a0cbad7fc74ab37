package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
)

// TestLongMessagesAreEchoed: messages longer than what peers take before they are read come back
// from a service that answers as it reads, over each transport, one at a time and several.
func TestLongMessagesAreEchoed(t *testing.T) {
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(1, 2))
	var paths []string
	for n, size := range []int{100, 1_500_000, 700_000, 2_000_000} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(rnd.Uint32())
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.xml", n))
		message := `<e:Envelope xmlns:e="http://schemas.xmlsoap.org/soap/envelope/"><e:Body><blob xmlns="urn:x">` +
			base64.StdEncoding.EncodeToString(content) + `</blob></e:Body></e:Envelope>`
		require.NoError(t, os.WriteFile(path, []byte(message), 0o600))
		paths = append(paths, path)
	}
	url, stop := serveHere(t)
	defer stop()
	for _, flags := range [][]string{
		{"--mode", "explicit"}, {"--mode", "explicit", "--concurrency", "1"}, {"--mode", "first-call"},
		{"--transport", "udp"}, {"--mode", "explicit", "--representation", "xml"},
	} {
		saved := t.TempDir()
		args := append([]string{"stream", url, "--repeat", "2", "--save-dir", saved, "--require-hhfr", "-o", "json"},
			flags...)
		code, out, stderr := do(t, append(args, paths...)...)
		require.Zero(t, code, "%v: %s", flags, stderr)
		assert.Equal(t, 8, lastSummary(t, out).Messages, flags)
		for n := range 8 {
			reply := shared.Read(t, filepath.Join(saved, fmt.Sprintf("%06d-reply.xml", n+1)))
			assert.True(t, bytes.Equal(shared.Read(t, paths[n%4]), reply), "%v: reply %d", flags, n+1)
		}
	}
}

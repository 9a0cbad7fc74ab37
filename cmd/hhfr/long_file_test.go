//go:build linux && !race

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Under a guarantee a FILE is read as it is sent.
func TestLongFileUnderAGuarantee(t *testing.T) {
	const size = 100 << 20
	file := filepath.Join(t.TempDir(), "long.xml")
	text := []byte(`<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><b>` +
		strings.Repeat("x", size) + `</b></s:Body></s:Envelope>`)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", "bolt:"+filepath.Join(t.TempDir(), "server.db"))
	requireFrugal(t, 0, nil, "stream", server.url, file, "-q", "--one-way", "--assurance", "exactly-once",
		"--store", filepath.Join(t.TempDir(), "client"))
}

package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/pcapng"
)

// TestParts: the parts of a message with attachments are listed by name.
func TestParts(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, entryMessage(1))
	}))
	defer server.Close()
	name := filepath.Join(t.TempDir(), "mtom.pcapng")
	file, err := os.Create(name)
	require.NoError(t, err)
	rec := pcapng.NewRecorder(file, nil)
	transport := &http.Transport{DialContext: rec.DialContext(new(net.Dialer).DialContext)}
	body := strings.ReplaceAll("--b\nContent-Type: application/xop+xml; type=\"text/xml\"\n"+
		"Content-ID: <root@x>\n\n"+entryMessage(1)+
		"\n--b\nContent-Type: image/png\u202e\nContent-ID: <picture@x>\n\n12345\n--b--\n", "\n", "\r\n")
	resp, err := (&http.Client{Transport: transport}).Post(server.URL,
		`multipart/related; type="application/xop+xml"; boundary=b; start="<root@x>"`, strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())
	require.NoError(t, file.Close())

	code, out, stderr := do(t, "decode", name, "-o", "json")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"parts":[{"id":"root@x","type":"application/xop+xml; type=\"text/xml\"","octets":`)
	assert.Contains(t, out, `{"id":"picture@x","type":"image/png\u202e","octets":5}]`)
	assert.Equal(t, 1, strings.Count(out, `"parts"`), "the reply has none")

	code, out, stderr = do(t, "decode", name, "-n", "1")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "\n# part picture@x image/png?, 5 bytes\n")
}

package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/fastinfoset"
	"github.com/hhfr/hhfr/internal/pcapng"
)

// recordedPosts are the replies to requests of one type to a URL, and a recording of them.
func recordedPosts(t *testing.T, url, contentType string, bodies ...[]byte) (replies []string, recording string) {
	t.Helper()
	recording = filepath.Join(t.TempDir(), "posts.pcapng")
	file, err := os.Create(recording)
	require.NoError(t, err)
	rec := pcapng.NewRecorder(file, nil)
	transport := &http.Transport{DialContext: rec.DialContext(new(net.Dialer).DialContext)}
	for _, body := range bodies {
		resp, err := (&http.Client{Transport: transport}).Post(url, contentType, bytes.NewReader(body))
		require.NoError(t, err)
		reply, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		replies = append(replies, string(reply))
	}
	transport.CloseIdleConnections()
	require.NoError(t, rec.Close())
	require.NoError(t, file.Close())
	return replies, recording
}

// TestDecodeFastInfoset: envelopes in Fast Infoset are shown as XML, and chosen by what they say.
func TestDecodeFastInfoset(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	doc, err := new(fastinfoset.InfosetWriter).FromXML(nil, []byte(entryMessage(7)))
	require.NoError(t, err)
	_, name := recordedPosts(t, server.URL, "application/fastinfoset", doc)
	text, err := new(fastinfoset.Reader).ToXML(nil, doc)
	require.NoError(t, err)

	code, out, stderr := do(t, "decode", name, "-o", "xml")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, string(text))
	code, out, stderr = do(t, "decode", name, "-o", "json")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, `"fast_infoset":true`)
	code, out, stderr = do(t, "decode", name, "-V", "--match", "//*[local-name()='Envelope']")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, "sent in Fast Infoset")
	code, out, stderr = do(t, "decode", name, "--export", "pcapng")
	require.Zero(t, code, stderr)
	assert.Contains(t, out, string(text), "Wireshark knows XML")
	code, out, stderr = do(t, "decode", name, "--export", "har")
	require.Zero(t, code, stderr)
	assert.NotContains(t, out, "http://schemas.xmlsoap.org/soap/envelope/\\\"")
}

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestCodedCallsAreDecodedAndReplayed: of calls whose bodies a client and a server compressed with
// zlib, the recording of a pair has what they compressed, and they can be made again.
func TestCodedCallsAreDecodedAndReplayed(t *testing.T) {
	var bodies, plain []string
	lines, err := os.ReadFile("../../internal/proxy/testdata/coded.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		if text, is := strings.CutPrefix(line, "call "); is {
			octets, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
			require.NoError(t, err)
			r, err := gzip.NewReader(bytes.NewReader(octets))
			require.NoError(t, err)
			unfolded, err := io.ReadAll(r)
			require.NoError(t, err)
			bodies, plain = append(bodies, string(octets)), append(plain, string(unfolded))
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			assert.Contains(t, bodies, string(body))
			assert.EqualValues(t, len(body), r.ContentLength)
			w.Header().Set("Content-Encoding", "gzip")
		}
		assert.Equal(t, r.Header.Get("Content-Encoding"), r.Header.Get("Accept-Encoding"))
		assert.NoError(t, err)
		w.Header().Set("Content-Type", "text/xml; charset=utf-8")
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	name := filepath.Join(t.TempDir(), "link.pcapng")
	far := startProxyProcess(t, "127.0.0.1:0", server.URL)
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/"), "-v", "--record", name)
	near.linked(1)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, body := range bodies {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, near.url("/"), strings.NewReader(body))
		require.NoError(t, err)
		r.Header = http.Header{"Content-Type": {"text/xml; charset=utf-8"}, "Content-Encoding": {"gzip"},
			"Accept-Encoding": {"gzip"}}
		reply, err := client.Do(r)
		require.NoError(t, err)
		got, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		require.NoError(t, reply.Body.Close())
		require.Equal(t, body, string(got))
		require.EqualValues(t, len(body), reply.ContentLength)
	}
	near.end()

	code, stdout, stderr := do(t, "decode", name, "-o", "jsonl")
	require.Zero(t, code, stderr)
	var said []string
	for lines := bufio.NewScanner(strings.NewReader(stdout)); lines.Scan(); {
		var m struct {
			Kind, State string
			Body        []byte `json:"body_base64"`
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &m))
		if m.Kind == "request" && bytes.Contains(m.Body, []byte("order>")) {
			said = append(said, string(m.Body))
			assert.Equal(t, "verified", m.State)
		}
	}
	assert.Equal(t, plain, said)
	code, _, stderr = do(t, "replay", name, "--to", server.URL, "--as", "soap")
	assert.Zero(t, code, stderr)
	assert.Contains(t, stderr, "32 requests sent, 0 replies differ, 0 unanswered; 0 without a recorded reply")
}

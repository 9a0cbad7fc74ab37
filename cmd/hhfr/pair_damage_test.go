package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
)

// Law 3 on the link between two proxies: for any flipped bit of its recording, no message is
// verified that is not what was sent; neither those of client and server nor those of the proxies.
func TestNothingDamagedOfAPairIsVerified(t *testing.T) {
	file := recordedPair(t)
	decode := func(file []byte) []*capture.Decoded {
		r, err := capture.Decode(context.Background(), bytes.NewReader(file), capture.DecodeConfig{})
		if err != nil {
			return nil
		}
		return r.Messages
	}
	said := func(m *capture.Decoded) string {
		b, err := json.Marshal([]any{m.Session, m.Lane, m.Exchange, m.Reply, m.OneWay, m.Place, m.Head, m.Body})
		require.NoError(t, err)
		return string(b)
	}
	right := map[string]bool{}
	ends := 0
	for _, m := range decode(file) {
		if m.HHFR {
			require.Equal(t, capture.Verified, m.State, m.Why)
			right[said(m)] = true
			if bytes.Contains(m.Body, []byte("<n>")) {
				ends++
			}
		}
	}
	require.GreaterOrEqual(t, ends, 12)
	verified := 0
	for bit := 0; bit < 8*len(file); bit += max(1, 8*len(file)/400) {
		damaged := bytes.Clone(file)
		damaged[bit/8] ^= 1 << (bit % 8)
		for _, m := range decode(damaged) {
			if m.State == capture.Verified {
				verified++
				require.True(t, right[said(m)], "bit %d of byte %d flipped: %s", bit%8, bit/8, said(m))
			}
		}
	}
	assert.Positive(t, verified, "the test shows nothing")
}

// recordedPair is a near proxy's recording of its link while two clients call, with bodies of known
// length and in chunks.
func recordedPair(t *testing.T) []byte {
	t.Helper()
	origin := httptest.NewServer(&numbered{seen: map[string]int{}})
	t.Cleanup(origin.Close)
	far := startProxyProcess(t, "127.0.0.1:0", origin.URL)
	recording := filepath.Join(t.TempDir(), "link.pcapng")
	near := startProxyProcess(t, "127.0.0.1:0", far.url("/"), "--record", recording, "-v")
	near.linked(1)
	for client := range 2 {
		c := &http.Client{Transport: &http.Transport{}}
		for i := range 3 {
			body := io.Reader(strings.NewReader(envelope(10*client + i)))
			if i == 2 {
				body = io.MultiReader(body) // of unknown length
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, near.url("/echo"), body)
			require.NoError(t, err)
			r.Header.Set("Content-Type", "text/xml; charset=utf-8")
			reply, err := c.Do(r)
			require.NoError(t, err)
			got, err := io.ReadAll(reply.Body)
			require.NoError(t, err)
			require.NoError(t, reply.Body.Close())
			require.Equal(t, envelope(10*client+i), string(got), fmt.Sprint(reply.Status))
		}
		c.CloseIdleConnections()
	}
	near.end()
	far.end()
	file, err := os.ReadFile(recording)
	require.NoError(t, err)
	return file
}

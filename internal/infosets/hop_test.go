package infosets_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/internal/infosets"
	"github.com/hhfr/hhfr/pkg/soap"
)

// through is a client of XML through a hop.
func through(t *testing.T, optimistic bool) *http.Transport {
	hop := infosets.NewHop(new(net.Dialer).DialContext, optimistic, nil)
	client := &http.Transport{DialContext: hop.Dial}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		require.NoError(t, hop.Close())
		_, err := hop.Dial(context.Background(), "tcp", "127.0.0.1:1")
		assert.Error(t, err)
	})
	return client
}

// TestHop: a client of XML with a server that takes Fast Infoset only, over connections that stay.
func TestHop(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := newService(t, func(w http.ResponseWriter, text string, infoset, _ bool) {
		if !infoset {
			inForm(t, w, http.StatusUnsupportedMediaType, envelope(soap.V11, "<s:Fault/>"), true)
			return
		}
		inForm(t, w, http.StatusOK, text, true)
	})
	client := through(t, false)
	for n := range 3 {
		text := envelope(soap.V11, fmt.Sprintf("<a>%d%s</a>", n, strings.Repeat("x", n*300_000)))
		assert.Equal(t, reply{200, "text/xml; charset=utf-8", text, ""}, post(t, client, s.URL, soap.V11, text))
	}
	assert.Len(t, s.asked, 4)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/?wsdl", nil)
	require.NoError(t, err)
	resp, err := client.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	client.CloseIdleConnections()
	s.Close()
}

// TestHopWithoutOrigin: who dials learns that nobody is there, as without the hop; what an origin
// says that cannot be read is a status, and a reply that is cut stays so.
func TestHopWithoutOrigin(t *testing.T) {
	client := through(t, true)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	got := post(t, client, "http://"+gone.Addr().String(), soap.V11, envelope(soap.V11, ""))
	assert.Contains(t, got.fail, "connection refused")

	s := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
		w.Header().Set("Content-Type", "application/fastinfoset")
		_, _ = io.WriteString(w, "no document")
	})
	got = post(t, client, s.URL, soap.V11, envelope(soap.V11, ""))
	assert.Equal(t, http.StatusBadGateway, got.status)
	assert.Contains(t, got.text, "offset 0: no Fast Infoset")

	cut := newService(t, func(w http.ResponseWriter, _ string, _, _ bool) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "<a/>")
	})
	assert.Contains(t, post(t, client, cut.URL, soap.V11, envelope(soap.V11, "")).fail, "EOF")
}

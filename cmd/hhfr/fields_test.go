package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/exit"
	"github.com/hhfr/hhfr/internal/shared"
)

// gateway stands in front of a service, and rejects requests without the credential.
type gateway struct {
	to *httputil.ReverseProxy

	mu   sync.Mutex
	seen []http.Header
}

const ticket = "Bearer of-the-test"

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	g.seen = append(g.seen, r.Header.Clone())
	g.mu.Unlock()
	if r.Header.Get("Authorization") != ticket {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	g.to.ServeHTTP(w, r)
}

// TestFieldsGoWithOffers: -H Authorization gets the offers of all commands through a gateway that
// requires it. Fields about the message stay with the message, and a host to which the gateway
// redirects the offer never sees the field.
func TestFieldsGoWithOffers(t *testing.T) {
	server := startMortal(t, "127.0.0.1:0", "127.0.0.1:0", "mem:")
	inner, err := url.Parse("http://" + server.http)
	require.NoError(t, err)
	g := &gateway{to: httputil.NewSingleHostReverseProxy(inner)}
	front := httptest.NewServer(g)
	defer front.Close()
	recording := filepath.Join(t.TempDir(), "recorded.pcapng")
	message := shared.Testdata(t, "soap", "cwmp-inform.xml")
	authorization := []string{"-H", "Authorization: " + ticket}
	for _, args := range [][]string{
		{
			"stream", front.URL + "/echo", message, "--require-hhfr", "--record", recording,
			"-H", "X-Old: 1", "-H", "Content-Type: text/xml",
		},
		{"negotiate", front.URL + "/echo", "--require-hhfr"},
		{"replay", recording, "--to", front.URL + "/echo", "--as", "hhfr", "-H", "X-Old: 2"},
		{"replay", recording, "--to", front.URL + "/echo", "--as", "soap", "-H", "X-Old: 3"},
	} {
		code, _, stderr := do(t, append(args, authorization...)...)
		assert.Zero(t, code, "%v: %s", args, stderr)
	}
	code, _, stderr := do(t, "negotiate", front.URL+"/echo", "--require-hhfr")
	assert.Equal(t, exit.NoPeer, code)
	assert.Contains(t, stderr, "HTTP status 401")
	var old []string
	for _, h := range g.seen {
		if strings.Contains(strings.Join(h["Soapaction"], ""), "negotiation") {
			assert.Equal(t, []string{"text/xml; charset=utf-8"}, h["Content-Type"], "that of the offer")
		}
		old = append(old, h["X-Old"]...)
	}
	assert.Equal(t, []string{"1", "2", "3"}, old, "two offers, and one request in the place of the recorded field")

	elsewhere := &gateway{to: g.to}
	other := httptest.NewServer(elsewhere)
	defer other.Close()
	leads := httptest.NewServer(http.RedirectHandler(other.URL+"/echo", http.StatusTemporaryRedirect))
	defer leads.Close()
	code, _, stderr = do(t, append([]string{"negotiate", leads.URL + "/echo", "--require-hhfr"}, authorization...)...)
	assert.Equal(t, exit.NoPeer, code, stderr)
	assert.Empty(t, elsewhere.seen)

	for _, args := range [][]string{
		{"stream", front.URL, message}, {"negotiate", front.URL}, {"replay", recording, "--to", front.URL},
	} {
		code, _, stderr := do(t, append(args, "-H", "no field")...)
		assert.Equal(t, exit.WrongUsage, code)
		assert.Contains(t, stderr, `--header: field "no field" is not of the form Name: value`)
	}
}

package hhfr_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// way is how a message reaches a service.
type way string

const (
	plain  way = "plain SOAP"
	stream way = "stream"
)

var ways = []way{plain, stream}

// serve serves a handler until the test ends.
func serve(t testing.TB, by way, services http.Handler, change ...func(*negotiate.ResponderConfig)) string {
	t.Helper()
	if by == plain {
		server := httptest.NewServer(knowsNothing(services))
		t.Cleanup(server.Close)
		return server.URL
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	cfg := negotiate.ResponderConfig{Store: newStore(t), Addresses: map[string]string{"tcp": ":" + port}}
	for _, c := range change {
		c(&cfg)
	}
	handler, err := negotiate.NewHandler(services, cfg)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- handler.ServeStreams(context.Background(), listener) }()
	server := httptest.NewServer(handler)
	t.Cleanup(func() {
		require.NoError(t, handler.Close())
		require.NoError(t, <-served)
		server.Close()
	})
	return server.URL
}

// knowsNothing is a server that knows nothing of hhfr: offers are not for its services.
func knowsNothing(services http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("SOAPAction"), negotiate.OfferAction) {
			http.NotFound(w, r)
			return
		}
		services.ServeHTTP(w, r)
	})
}

func newStore(t testing.TB) ctxstore.Store {
	s := memory.New(memory.Config{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// echo answers with the head and body that it got, and with the way they came.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	came := plain
	if negotiate.FactsOf(r.Context()) != nil {
		came = stream
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Header().Set("X-Way", string(came))
	w.Header().Set("X-Action", r.Header.Get("SOAPAction"))
	w.Header().Set("X-Target", r.RequestURI)
	w.Header().Set("X-User", r.Header.Get("Authorization"))
	_, _ = io.Copy(w, r.Body)
})

func envelope(version, body string) string {
	ns := map[string]string{"1.1": "http://schemas.xmlsoap.org/soap/envelope/", "1.2": "http://www.w3.org/2003/05/soap-envelope"}[version]
	return fmt.Sprintf(`<s:Envelope xmlns:s=%q><s:Body>%s</s:Body></s:Envelope>`, ns, body)
}

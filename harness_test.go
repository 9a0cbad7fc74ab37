package hhfr_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// way is the path by which a message reaches a service.
type way string

const (
	plain  way = "plain SOAP"
	stream way = "stream"
	secure way = "stream in TLS"
)

var ways = []way{plain, stream, secure}

// seen is the service's view of a path.
func (w way) seen() string {
	if w == plain {
		return "HTTP"
	}
	return "stream"
}

// serve serves a handler until the test ends, with a store of its own.
func serve(t testing.TB, by way, services http.Handler) string {
	t.Helper()
	if by == plain {
		server := httptest.NewServer(knowsNothing(services))
		t.Cleanup(server.Close)
		return server.URL
	}
	server := &hhfr.Server{Handler: services, Store: newStore(t)}
	scheme := "http://"
	if by == secure {
		scheme, server.TLS = "https://",
			&tls.Config{Certificates: []tls.Certificate{authority(t).Issue(time.Hour, "127.0.0.1")}}
	}
	return scheme + start(t, server)
}

// authority signs the certificates of a test's servers.
var authority = func() func(testing.TB) *shared.Authority {
	var one *shared.Authority
	var once sync.Once
	return func(t testing.TB) *shared.Authority {
		once.Do(func() { one = shared.NewAuthority(t) })
		return one
	}
}()

// start serves until the test ends, and returns the server's address.
func start(t testing.TB, server *hhfr.Server) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-served)
	})
	return l.Addr().String()
}

// config is that of a client that trusts the servers of tests; its store is its own.
func config(t testing.TB) *hhfr.Config {
	return &hhfr.Config{Store: newStore(t), TLS: &tls.Config{RootCAs: authority(t).Pool()}}
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

// echo answers with the head and body that it received, and with the path they came by.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	came := "HTTP"
	if responder.FactsOf(r.Context()) != nil {
		came = "stream"
	}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Header().Set("X-Way", came)
	w.Header().Set("X-Action", r.Header.Get("SOAPAction"))
	w.Header().Set("X-Target", r.RequestURI)
	w.Header().Set("X-User", r.Header.Get("Authorization"))
	body, err := io.ReadAll(r.Body) // net/http reads no more of a request whose reply has begun
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write(body)
})

func envelope(version, body string) string {
	ns := map[string]string{"1.1": "http://schemas.xmlsoap.org/soap/envelope/",
		"1.2": "http://www.w3.org/2003/05/soap-envelope"}[version]
	return fmt.Sprintf(`<s:Envelope xmlns:s=%q><s:Body>%s</s:Body></s:Envelope>`, ns, body)
}

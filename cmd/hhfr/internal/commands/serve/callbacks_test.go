package serve

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/internal/resolve"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
)

// What goes to callbacks is recorded, of TLS the cleartext.
func TestCallbacksAreRecorded(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	})
	for name, start := range map[string]func(http.Handler) *httptest.Server{
		"http": httptest.NewServer, "https": httptest.NewTLSServer,
	} {
		t.Run(name, func(t *testing.T) {
			server := start(handler)
			defer server.Close()
			file := filepath.Join(t.TempDir(), "serve.pcapng")
			store := memory.New(memory.Config{})
			defer func() { _ = store.Close() }()
			rec, err := (&recording.RecordOptions{Name: file}).Open(store, slog.New(slog.DiscardHandler))
			require.NoError(t, err)
			client, err := callbackClient(resolve.System{}, rec)
			require.NoError(t, err)
			if c := server.Certificate(); c != nil {
				pool := x509.NewCertPool()
				pool.AddCert(c)
				client.Transport.(*http.Transport).TLSClientConfig.RootCAs = pool
			}
			response, err := client.Post(server.URL, "text/xml", strings.NewReader("<reply/>"))
			require.NoError(t, err)
			_, _ = io.Copy(io.Discard, response.Body)
			require.NoError(t, response.Body.Close())
			client.CloseIdleConnections()
			require.NoError(t, rec.Close())
			recorded := string(shared.Read(t, file))
			assert.Equal(t, 2, strings.Count(recorded, "<reply/>"), "request and response")
		})
	}
}

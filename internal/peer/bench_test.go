package peer_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/peer"
	"github.com/hhfr/hhfr/pkg/soap"
)

// sink is a reply that nobody reads.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkService is of the services alone, without connections: of ten values each.
func BenchmarkService(b *testing.B) {
	for _, bc := range []struct {
		service peer.Service
		name    string
		item    string
	}{
		{peer.Echo(), "echo", "<item>123.45</item>"},
		{peer.Sum(), "sum", "<item>123.45</item>"},
		{peer.Concat(), "concat", "<item>thin links</item>"},
		{peer.Records(), "records", "<record><text>one</text><number>1</number><flag>true</flag></record>"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			body := []byte(envelope(soap.V11, bc.name, strings.Repeat(bc.item, 10)))
			w := &sink{header: http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, bc.service.Path, nil)
				r.Header["Content-Type"] = []string{"text/xml; charset=utf-8"}
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
				bc.service.Handler.ServeHTTP(w, r)
				require.Equal(b, http.StatusOK, w.status)
			}
		})
	}
}

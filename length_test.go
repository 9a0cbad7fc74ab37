package hhfr_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// A server behind a reverse proxy, which is a service of streams, refuses requests in chunks.
func TestRequestsOfStreamsHaveALength(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength < 0 {
			w.WriteHeader(http.StatusLengthRequired)
			return
		}
		n, _ := io.Copy(io.Discard, r.Body)
		assert.Equal(t, r.ContentLength, n)
		_, _ = io.WriteString(w, strconv.FormatInt(n, 10))
	}))
	defer backend.Close()
	to, err := url.Parse(backend.URL)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	c := dial(t, serve(t, stream, proxy), nil)
	defer c.Close()
	// Each comes in a shape that is known, and in one that is not; all of them fit one segment.
	for _, content := range []string{"", "<a/>", "<a>1</a>", "<a>2</a>", "not XML", strings.Repeat("x", 10_000)} {
		for range 4 {
			r, err := c.Call(t.Context(), &hhfr.Request{Body: hhfr.Body(content)})
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, r.Status)
			assert.Equal(t, strconv.Itoa(len(content)), readAll(t, r))
		}
	}
}

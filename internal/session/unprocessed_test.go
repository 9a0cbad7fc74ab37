package session_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// A request that the peer did not process on a stream goes as plain SOAP, once.
func TestUnprocessedRequestsGoAsPlainSOAP(t *testing.T) {
	refused := 0
	r, err := responder.New(responder.Config{Serve: func(_ context.Context, _ string, x *streamer.Exchange) {
		refused++
		x.Refuse("for the test")
	}})
	require.NoError(t, err)
	server := httptest.NewServer(r.Handler(http.HandlerFunc(repeat)))
	defer server.Close()
	defer func() { require.NoError(t, r.Close()) }()
	for _, required := range []bool{false, true} {
		d, err := session.NewDialer(session.Config{Mode: negotiate.FirstCall, RequireHHFR: required})
		require.NoError(t, err)
		s, err := d.Dial(t.Context(), server.URL)
		require.NoError(t, err)
		said := func(body io.Reader) (string, error) {
			reply, err := s.Call(t.Context(), &streamer.Message{Body: body})
			if err != nil {
				return "", err
			}
			data, err := io.ReadAll(reply.Body)
			require.NoError(t, err)
			return string(data), nil
		}
		if !required { // else the stream is there
			_, err = said(strings.NewReader("<first/>"))
			require.NoError(t, err)
		}
		long := "<a>" + strings.Repeat("x", 200_000) + "</a>"
		for i, content := range []string{"<a/>", long} {
			refused = 0
			body, err := said(strings.NewReader(content))
			assert.Equal(t, 1, refused)
			if required {
				require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unprocessed}, i)
				continue
			}
			require.NoError(t, err, i)
			assert.Equal(t, content, body, i)
		}
		_, err = said(io.MultiReader(strings.NewReader("<once/>")))
		if !required {
			require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Unsent}, "it cannot be read again")
		}
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unprocessed})
		require.NoError(t, s.Close())
	}
}

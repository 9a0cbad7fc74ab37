package hhfr_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// TestFieldsThatChange: a head that was made before goes with no request that has other fields, be
// they the same map.
func TestFieldsThatChange(t *testing.T) {
	came := make(chan http.Header, 1)
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came <- r.Header.Clone()
		echo.ServeHTTP(w, r)
	})
	cfg := config(t)
	cfg.Header = http.Header{"X-Common": {"1"}}
	client, err := hhfr.Dial(t.Context(), serve(t, stream, service), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	fields := http.Header{"X-Own": {"1"}}
	call := func(action string) http.Header {
		reply, err := client.Call(t.Context(), &hhfr.Request{Action: action, Header: fields,
			Body: strings.NewReader(envelope("1.1", "<a>1</a>"))})
		require.NoError(t, err)
		_, err = reply.ReadAll()
		require.NoError(t, err)
		return <-came
	}
	for range 2 {
		assert.Equal(t, []string{"1"}, call("urn:a")["X-Own"])
	}
	fields["X-Own"][0] = "2"
	assert.Equal(t, []string{"2"}, call("urn:a")["X-Own"])
	fields.Add("X-Own", "3")
	assert.Equal(t, []string{"2", "3"}, call("urn:a")["X-Own"])
	cfg.Header["X-Common"][0] = "2"
	got := call("urn:a")
	assert.Equal(t, []string{"2"}, got["X-Common"])
	assert.Equal(t, []string{`"urn:a"`}, got["Soapaction"])
	assert.Equal(t, []string{`"urn:b"`}, call("urn:b")["Soapaction"])
	delete(fields, "X-Own")
	assert.NotContains(t, call("urn:b"), "X-Own")
}

package hhfr_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// post sends a SOAP message by an unchanged client.
func post(t *testing.T, transport http.RoundTripper, url, body string) (way string) {
	t.Helper()
	client := &http.Client{Transport: transport}
	resp, err := client.Post(url, "text/xml", strings.NewReader(body))
	require.NoError(t, err)
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, body, string(got))
	return resp.Header.Get("X-Way")
}

// untilStream sends until a message goes over a stream: no request waits for one.
func untilStream(t *testing.T, transport http.RoundTripper, url string) {
	t.Helper()
	for n := 0; post(t, transport, url, envelope("1.1", "<a/>")) != stream.seen(); n++ {
		require.Less(t, n, 10_000)
	}
}

// The zero Transport works under an unchanged client.
func TestTransport(t *testing.T) {
	url := serve(t, stream, echo)
	transport := &hhfr.Transport{}
	defer transport.Close()
	untilStream(t, transport, url)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() { assert.Equal(t, stream.seen(), post(t, transport, url, envelope("1.1", "<b/>"))) })
	}
	wait.Wait()
	resp, err := (&http.Client{Transport: transport}).Get(url)
	require.NoError(t, err)
	assert.Equal(t, "HTTP", resp.Header.Get("X-Way"), "no SOAP")
	require.NoError(t, resp.Body.Close())
	require.NoError(t, transport.Close())
	// nolint:bodyclose // an error
	_, err = (&http.Client{Transport: transport}).Post(url, "text/xml", strings.NewReader("<a/>"))
	require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Unsent})
	require.ErrorIs(t, err, net.ErrClosed)
}

// A Config has the same effect in a Transport as in a Client.
func TestTransportWithConfig(t *testing.T) {
	url := serve(t, secure, echo)
	transport := &hhfr.Transport{Config: *config(t)}
	transport.Config.Header = http.Header{"Authorization": {"Bearer x"}}
	defer transport.Close()
	untilStream(t, transport, url)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("<a/>"))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "text/xml")
	resp, err := transport.RoundTrip(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, "Bearer x", resp.Header.Get("X-User"))
	assert.Empty(t, req.Header.Get("Authorization"), "a RoundTripper changes no request")
	assert.Same(t, req, resp.Request)

	for _, broken := range []*hhfr.Transport{
		{Base: http.DefaultTransport, Config: *config(t)}, {Config: hhfr.Config{Guarantee: 7}},
		{Config: hhfr.Config{Guarantee: hhfr.ExactlyOnce}},
	} {
		_, err = (&http.Client{Transport: broken}).Get(url) //nolint:bodyclose // an error
		require.ErrorIs(t, err, &hhfr.Error{Code: hhfr.Invalid})
		require.ErrorIs(t, broken.Close(), &hhfr.Error{Code: hhfr.Invalid})
		broken.CloseIdleConnections()
	}
}

// The same failure has the same Code and Sent under an unchanged client, before there is a session
// and after.
func TestTransportsErrors(t *testing.T) {
	const gone = "http://127.0.0.1:1" // by then another process might use the port of a closed server
	for name, tc := range map[string]struct {
		url  string
		want hhfr.Code
		sent bool
	}{
		"nobody there":     {gone, hhfr.Unreachable, false},
		"plain breaks off": {serve(t, plain, failures["breaks off"]), hhfr.FateUnknown, true},
		"plain panics":     {serve(t, plain, failures["panics"]), hhfr.FateUnknown, true},
		"breaks off":       {serve(t, stream, failures["breaks off"]), hhfr.FateUnknown, true},
		"panics":           {serve(t, stream, failures["panics"]), hhfr.FateUnknown, true},
	} {
		transport := &hhfr.Transport{}
		for range 20 { // some before the session, some after
			resp, err := (&http.Client{Transport: transport}).Post(tc.url, "text/xml", strings.NewReader("<a/>"))
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				_ = resp.Body.Close()
			}
			var e *hhfr.Error
			require.ErrorAs(t, err, &e, name)
			assert.Equal(t, tc.want, e.Code, "%s: %v", name, err)
			assert.Equal(t, tc.sent, e.Sent, "%s: %v", name, err)
		}
		require.NoError(t, transport.Close())
	}
}

// Config.Header goes with all requests to the origin that they are made for, and not where a
// redirection leads.
func TestHeaderStaysFromWhereARedirectionLeads(t *testing.T) {
	type seen struct {
		offer              bool
		authorization, key string
	}
	var mu sync.Mutex
	var all []seen
	offers := make(chan struct{}, 100)
	second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		offer := strings.Contains(r.Header.Get("SOAPAction"), negotiate.OfferAction)
		mu.Lock()
		all = append(all, seen{offer, r.Header.Get("Authorization"), r.Header.Get("X-Key")})
		mu.Unlock()
		if offer {
			offers <- struct{}{}
		}
		knowsNothing(echo).ServeHTTP(w, r)
	}))
	defer second.Close()
	first := serve(t, stream, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, second.URL, http.StatusPermanentRedirect)
	}))
	transport := &hhfr.Transport{Config: hhfr.Config{Mode: "explicit",
		Header: http.Header{"Authorization": {"Bearer x"}, "X-Key": {"k"}}}}
	defer transport.Close()
	for range 5 {
		post(t, transport, first, envelope("1.1", "<a/>"))
	}
	<-offers
	mu.Lock()
	for _, s := range all {
		assert.Equal(t, seen{offer: s.offer}, s)
	}
	all = nil
	mu.Unlock()
	for asked, n := false, 0; !asked; n++ { // until the answer to the first offer has arrived
		require.Less(t, n, 10_000)
		post(t, transport, second.URL, envelope("1.1", "<b/>"))
		select {
		case <-offers:
			asked = true
		default:
		}
	}
	mu.Lock()
	defer mu.Unlock()
	assert.GreaterOrEqual(t, len(all), 2)
	for _, s := range all {
		assert.Equal(t, seen{s.offer, "Bearer x", "k"}, s)
	}
}

package hhfr_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
		{Config: hhfr.Config{Guarantee: hhfr.ExactlyOnce}}, {IdleConnTimeout: -1},
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

// counted counts the connections that a listener has open.
type counted struct {
	net.Listener
	open atomic.Int64
}

func (c *counted) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	return &countedConn{conn, c, sync.Once{}}, nil
}

type countedConn struct {
	net.Conn
	by   *counted
	once sync.Once
}

func (c *countedConn) Close() error {
	c.once.Do(func() { c.by.open.Add(-1) })
	return c.Conn.Close()
}

// Streams that nothing uses are closed after IdleConnTimeout, and by the CloseIdleConnections of an
// unchanged client; the next requests have a stream again. A Transport that is not closed leaves no
// goroutine behind, see TestMain.
func TestTransportClosesIdleStreams(t *testing.T) {
	for name, timeout := range map[string]time.Duration{"by itself": time.Millisecond, "by the client": 0} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			conns := &counted{Listener: l}
			server := &hhfr.Server{Handler: echo, Store: newStore(t)}
			served := make(chan error, 1)
			go func() { served <- server.Serve(conns) }()
			transport := &hhfr.Transport{IdleConnTimeout: timeout}
			client := &http.Client{Transport: transport}
			for range 3 {
				untilStream(t, transport, "http://"+l.Addr().String())
				if timeout == 0 {
					require.Positive(t, conns.open.Load())
					client.CloseIdleConnections()
				}
				require.Eventually(t, func() bool { return conns.open.Load() == 0 }, time.Minute, time.Millisecond)
			}
			require.NoError(t, server.Close())
			require.NoError(t, <-served)
		})
	}
}

// Sessions that end while requests come lose none of them.
func TestRequestsWhileIdleStreamsClose(t *testing.T) {
	for _, by := range ways {
		url := serve(t, by, echo)
		transport := &hhfr.Transport{Config: *config(t), IdleConnTimeout: time.Nanosecond}
		var wait sync.WaitGroup
		for n := range 4 {
			wait.Go(func() {
				for i := range 50 {
					post(t, transport, url, envelope("1.1", fmt.Sprintf("<a>%d %d</a>", n, i)))
					if n == 0 {
						transport.CloseIdleConnections()
					}
				}
			})
		}
		wait.Wait()
		require.NoError(t, transport.Close())
	}
}

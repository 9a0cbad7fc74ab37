package session_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// unchanged is a SOAP server as one would write it for net/http, that knows nothing of HHFR. It
// records the headers and hosts that it sees.
type unchanged struct {
	mu   sync.Mutex
	seen []*http.Request
}

func (u *unchanged) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	u.seen = append(u.seen, r)
	u.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	switch r.URL.Path {
	case "/fault":
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, envelope("<Fault/>"))
	case "/panic":
		panic("of the service")
	case "/cut":
		w.Header().Set("Content-Type", "text/xml")
		_, _ = w.Write(bytes.Repeat([]byte("x"), 100_000))
		panic(http.ErrAbortHandler)
	case "/flush":
		w.Header().Set("Content-Type", "text/xml")
		_, _ = io.WriteString(w, "one ")
		w.(http.Flusher).Flush()
		_, _ = w.Write(body)
	case "/accepted":
		w.WriteHeader(http.StatusAccepted)
	case "/guess":
		_, _ = io.WriteString(w, "<?xml version='1.0'?><a/>")
	default:
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.Header().Set("X-Query", r.URL.RawQuery)
		w.Header().Add("X-Two", "a")
		w.Header().Add("X-Two", "b")
		_, _ = w.Write(body)
	}
}

func (u *unchanged) ways(facts bool) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range u.seen {
		if (responder.FactsOf(r.Context()) != nil) == facts {
			n++
		}
	}
	return n
}

// speaking is such a server with a handler around it.
func speaking(t testing.TB, service http.Handler) (url string) {
	l, err := new(loopback).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	h, err := responder.NewHandler(service, responder.Config{Addresses: map[string]string{"tcp": ":" + port}})
	require.NoError(t, err)
	var wait sync.WaitGroup
	wait.Go(func() { _ = h.ServeStreams(context.Background(), l) })
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		_ = h.Close()
		wait.Wait()
		server.Close()
	})
	return server.URL
}

// swapped returns a client of net/http with the RoundTripper put in.
func swapped(t testing.TB, change func(*session.Config)) (*http.Client, *session.RoundTripper) {
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	var cfg session.Config
	if change != nil {
		change(&cfg)
	}
	rt, err := session.NewRoundTripper(base, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = rt.Close() })
	return &http.Client{Transport: rt}, rt
}

func post(t testing.TB, c *http.Client, url, contentType string, body io.Reader) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	require.NoError(t, err)
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("SOAPAction", `"urn:a"`)
	resp, err := c.Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(data)
}

// required makes calls wait for the stream.
func required(c *session.Config) { c.RequireHHFR = true }

// An unchanged net/http SOAP program with the RoundTripper swapped in speaks HHFR, and the
// unchanged server with the Handler around it sees the same.
func TestUnchangedPrograms(t *testing.T) {
	service := &unchanged{}
	url := speaking(t, service)
	client, rt := swapped(t, required)
	plainly := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/echo", "/echo?q=1", "/fault", "/flush", "/accepted", "/guess"} {
		over, body := post(t, client, url+path, "text/xml; charset=utf-8", strings.NewReader(envelope("<a/>")))
		plain, want := post(t, plainly, url+path, "text/xml; charset=utf-8", strings.NewReader(envelope("<a/>")))
		assert.Equal(t, want, body, path)
		assert.Equal(t, plain.Status, over.Status, path)
		for name := range plain.Header {
			if name != "Date" && name != "Content-Length" {
				assert.Equal(t, plain.Header[name], over.Header[name], "%s %s", path, name)
			}
		}
	}
	sess, ok := rt.Session(url)
	require.True(t, ok)
	require.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
	assert.Equal(t, 6, service.ways(true))
	assert.Equal(t, 6, service.ways(false))
	for _, r := range service.seen {
		assert.Equal(t, strings.TrimPrefix(url, "http://"), r.Host)
		assert.Equal(t, []string{`"urn:a"`}, r.Header["Soapaction"])
	}

	// Other requests than SOAP POSTs go through base.
	resp, err := client.Get(url + "/echo")
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	post(t, client, url+"/echo", "application/json", strings.NewReader("{}"))
	assert.Equal(t, 6, service.ways(true))

	// Bodies of any length, in both directions; of unknown length too.
	long := make([]byte, 3<<20)
	_, err = rand.Read(long)
	require.NoError(t, err)
	for _, body := range []io.Reader{bytes.NewReader(long), io.MultiReader(bytes.NewReader(long))} {
		_, got := post(t, client, url+"/echo", "application/soap+xml", body)
		assert.True(t, string(long) == got)
	}
	assert.Equal(t, 8, service.ways(true))
	stats := sess.Stream().Stats()
	assert.Positive(t, stats.Sent.Data.Octets)
}

func TestServerThatFails(t *testing.T) {
	url := speaking(t, &unchanged{})
	client, _ := swapped(t, required)
	_, err := client.Post(url+"/panic", "text/xml", strings.NewReader("x"))
	require.ErrorIs(t, err, &streamer.Error{Code: streamer.Failed})
	resp, err := client.Post(url+"/cut", "text/xml", strings.NewReader("x"))
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		require.NoError(t, resp.Body.Close())
	}
	require.Error(t, err, "a reply cut short is not taken for whole")
	_, body := post(t, client, url+"/echo", "text/xml", strings.NewReader("still there"))
	assert.Equal(t, "still there", body)
}

func TestRoundTripperWithPlainServers(t *testing.T) {
	service := &unchanged{}
	server := httptest.NewServer(service)
	defer server.Close()
	clock := newLater()
	client, rt := swapped(t, func(c *session.Config) { c.Clock = clock })
	for range 3 {
		_, body := post(t, client, server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
		assert.Equal(t, envelope("<a/>"), body)
	}
	sess, ok := rt.Session(server.URL)
	require.True(t, ok)
	assert.False(t, sess.Agreed().HHFR)
	assert.Equal(t, 4, service.ways(false), "one offer and three messages")
	clock.forward(time.Hour)
	post(t, client, server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
	_, ok = rt.Session(server.URL)
	require.True(t, ok)
	assert.Equal(t, 6, service.ways(false), "asked again")

	strict, _ := swapped(t, required)
	_, err := strict.Post(server.URL+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.NoHHFR})
	_, err = client.Post("http://127.0.0.1"+deadPort(t), "text/xml", strings.NewReader("x"))
	require.ErrorContains(t, err, "refused")
}

func TestRoundTripperIsClosed(t *testing.T) {
	url := speaking(t, &unchanged{})
	client, rt := swapped(t, nil)
	post(t, client, url, "text/xml", strings.NewReader("x"))
	require.NoError(t, rt.Close())
	require.NoError(t, rt.Close())
	_, err := client.Post(url, "text/xml", strings.NewReader("x"))
	require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Closed})
}

// Requests side by side ask once, and each gets its own reply.
func TestRoundTripperConcurrently(t *testing.T) {
	service := &unchanged{}
	url := speaking(t, service)
	client, _ := swapped(t, required)
	var wait sync.WaitGroup
	for i := range 32 {
		wait.Go(func() {
			body := envelope(strings.Repeat("<a/>", i))
			resp, err := client.Post(url+"/echo", "text/xml", strings.NewReader(body))
			if !assert.NoError(t, err) {
				return
			}
			defer resp.Body.Close()
			got, err := io.ReadAll(resp.Body)
			assert.NoError(t, err)
			assert.Equal(t, body, string(got))
		})
	}
	wait.Wait()
	assert.Equal(t, 32, service.ways(true))
}

// counting is a RoundTripper that counts.
type counting struct {
	http.RoundTripper
	mu   sync.Mutex
	seen []string
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	for name, values := range r.Header { // offers keep the case of names
		if strings.EqualFold(name, "SOAPAction") {
			c.seen = append(c.seen, values...)
		}
	}
	c.mu.Unlock()
	return c.RoundTripper.RoundTrip(r)
}

// With the RoundTripper swapped in, the only HTTP request is the offer: all messages and replies
// are in frames.
func TestFramesCarryMessages(t *testing.T) {
	url := speaking(t, &unchanged{})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	base := &counting{RoundTripper: transport}
	frames := map[streamer.Dir]int{}
	var mu sync.Mutex
	cfg := session.Config{RequireHHFR: true}
	cfg.Stream.Events = func(e streamer.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.First {
			frames[e.Dir]++
		}
	}
	rt, err := session.NewRoundTripper(base, cfg)
	require.NoError(t, err)
	client := &http.Client{Transport: rt}
	for range 5 {
		_, body := post(t, client, url+"/echo", "text/xml", strings.NewReader(envelope("<a/>")))
		assert.Equal(t, envelope("<a/>"), body)
	}
	require.NoError(t, rt.Close())
	assert.Equal(t, []string{`"` + negotiate.OfferAction + `"`}, base.seen)
	assert.Equal(t, map[streamer.Dir]int{streamer.Sent: 5, streamer.Received: 5}, frames)
}

// Heads that HTTP forbids, or that name another host, reach no server over a stream, as they would
// reach none over HTTP; an absolute target that names this one does.
func TestHeadsThatNoServerGets(t *testing.T) {
	service := &unchanged{}
	url := speaking(t, service)
	sess := dial(t, url, session.Config{RequireHHFR: true})
	for _, head := range []string{
		"POST @evil/ HTTP/1.1\r\n", "POST /a b HTTP/1.1\r\n", "POST http://evil.example/ HTTP/1.1\r\n",
		"CONNECT evil:80 HTTP/1.1\r\n",
		"POST / HTTP/1.1\r\nX: a\rb\r\n", "POST / HTTP/1.1\r\nX : a\r\n",
	} {
		_, err := sess.Call(t.Context(), streamer.NewMessage([]byte(head+"\r\n"), []byte("x")))
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Failed}, "%q", head)
	}
	assert.Zero(t, service.ways(true))
	call(t, sess, "POST "+url+"/own HTTP/1.1\r\n\r\n", "x")
	require.Equal(t, 1, service.ways(true))
	assert.Equal(t, "/own", service.seen[0].RequestURI)
}

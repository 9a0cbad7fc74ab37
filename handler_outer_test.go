package hhfr_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// where answers with the way and the paths by which a request came.
var where = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	by := plain
	if responder.FactsOf(r.Context()) != nil {
		by = stream
	}
	user, _ := r.Context().Value(userKey{}).(string)
	_, _ = io.WriteString(w, strings.TrimSpace(by.seen()+" "+r.URL.Path+" "+r.RequestURI+" "+user))
})

type userKey struct{}

// posted sends a SOAP request by a transport; once: its body can be read only once.
func posted(t *testing.T, transport *hhfr.Transport, url string, once bool) (status int, body string) {
	t.Helper()
	content := io.Reader(strings.NewReader("<a/>"))
	if once {
		content = struct{ io.Reader }{content}
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Post(url, "text/xml", content)
	require.NoError(t, err)
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(data)
}

// guarded serves a Handler within another handler until the test ends.
func guarded(t *testing.T, h *hhfr.Handler, around func(http.Handler) http.Handler) string {
	t.Helper()
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	server := httptest.NewServer(around(h))
	t.Cleanup(server.Close)
	return server.URL
}

// denying answers 401 for the path /admin, except for the method OPTIONS, as many handlers do, and
// tells the handlers within who the user is.
func denying(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/admin" && r.Method != http.MethodOptions {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, "ann")))
	})
}

func TestHandlersAroundAreNotBypassed(t *testing.T) {
	url := guarded(t, &hhfr.Handler{Handler: where}, denying)
	transport := newTransport(t)
	_, _ = posted(t, transport, url+"/public", false) // its connection becomes the stream
	for range 3 {
		status, body := posted(t, transport, url+"/public?x=1", false)
		assert.Equal(t, http.StatusOK, status)
		assert.Contains(t, body, "stream /public /public?x=1")
		for _, once := range []bool{false, true} {
			status, _ = posted(t, transport, url+"/admin", once)
			assert.Equal(t, http.StatusUnauthorized, status)
			status, body = posted(t, transport, url+"/other", once)
			assert.Equal(t, http.StatusOK, status)
			assert.Equal(t, "HTTP /other /other ann", body, "through the handlers around")
		}
	}
}

// A client that does not know that a stream is for one path is told that nothing was processed.
func TestOtherPathsAreRefusedAsUnprocessed(t *testing.T) {
	url := guarded(t, &hhfr.Handler{Handler: where}, denying)
	d, err := session.NewDialer(session.Config{Mode: negotiate.FirstCall})
	require.NoError(t, err)
	s, err := d.Dial(t.Context(), url+"/public")
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Call(t.Context(), &streamer.Message{Body: strings.NewReader("<a/>")})
	require.NoError(t, err)
	require.NotNil(t, s.Stream())
	lane := s.Stream().Lane(0)
	for _, line := range []string{"POST /admin", "POST /public/../admin", "POST /%61dmin", "POST /other",
		"POST /publi%63", "POST //public", "DELETE /public", "OPTIONS /public", "OPTIONS *"} {
		m := &streamer.Message{Head: []byte(line + " HTTP/1.1\r\n\r\n"), Body: strings.NewReader("<a/>")}
		_, err := lane.Call(t.Context(), m)
		require.ErrorIs(t, err, &streamer.Error{Code: streamer.Unprocessed}, line)
		require.ErrorContains(t, err, "another path", line)
	}
	reply, err := lane.Call(t.Context(), &streamer.Message{Body: strings.NewReader("<a/>")})
	require.NoError(t, err)
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	assert.Equal(t, "stream /public /public", string(body))
}

// A question by OPTIONS, which handlers around may let through, opens no stream to a path.
func TestQuestionsGetNoStreamPastHandlersAround(t *testing.T) {
	url := guarded(t, &hhfr.Handler{Handler: where}, denying)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, url+"/admin", nil)
	require.NoError(t, err)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "hhfr/1", "HHFR": "1"} {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	assert.Equal(t, http.StatusNoContent, resp.StatusCode)
	assert.Equal(t, "1", resp.Header.Get("HHFR"), "a call may be upgraded")
}

func TestHandlersAroundChangePathsOfStreams(t *testing.T) {
	strip := func(next http.Handler) http.Handler {
		mux := http.NewServeMux()
		mux.Handle("/api/", http.StripPrefix("/api", next))
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
		return mux
	}
	for name, c := range map[string]struct {
		anyPath bool
		second  string
	}{"one path": {false, "HTTP"}, "any path": {true, "stream"}} {
		t.Run(name, func(t *testing.T) {
			url := guarded(t, &hhfr.Handler{Handler: where, AnyPath: c.anyPath}, strip)
			transport := newTransport(t)
			_, body := posted(t, transport, url+"/api/x", false)
			assert.Equal(t, "HTTP /x /api/x", body, "its connection becomes the stream")
			for range 2 {
				_, body = posted(t, transport, url+"/api/x", false)
				assert.Equal(t, "stream /x /api/x", body)
				_, body = posted(t, transport, url+"/api/y%2Fz?q=1", false)
				assert.Equal(t, c.second+" /y/z /api/y%2Fz?q=1", body)
				status, _ := posted(t, transport, url+"/elsewhere", false)
				assert.Equal(t, http.StatusTeapot, status, "as plain SOAP")
				status, _ = posted(t, transport, url+"/apix", false)
				assert.Equal(t, http.StatusTeapot, status)
			}
			client := dial(t, url+"/api/x", nil)
			require.NoError(t, call(t, client))
			for range 2 { // without a head
				r, err := client.Call(t.Context(), &hhfr.Request{Body: hhfr.Body("<a/>")})
				require.NoError(t, err)
				assert.Equal(t, "stream /x /api/x", readAll(t, r))
			}
			require.NoError(t, client.Close())
		})
	}
}

// After a stream has ended, the next call gets another one: a question would get none.
func TestStreamsOfOnePathAreOpenedAgain(t *testing.T) {
	h := &hhfr.Handler{Handler: where}
	defer h.Close()
	upgraded := make(chan net.Conn, 10)
	server := httptest.NewUnstartedServer(denying(h))
	server.Config.ConnState = func(c net.Conn, state http.ConnState) {
		if state == http.StateHijacked {
			upgraded <- c
		}
	}
	server.Start()
	defer server.Close()
	d, err := session.NewDialer(session.Config{Mode: negotiate.FirstCall, Reconnect: time.Hour})
	require.NoError(t, err)
	s, err := d.Dial(t.Context(), server.URL+"/public")
	require.NoError(t, err)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		for _, want := range []string{"HTTP /public /public ann", "stream /public /public", "stream /public /public"} {
			reply, err := s.Call(ctx, &streamer.Message{Body: strings.NewReader("<a/>")})
			require.NoError(t, err)
			body, err := io.ReadAll(reply.Body)
			require.NoError(t, err)
			assert.Equal(t, want, string(body))
		}
		ended := s.Stream()
		require.NoError(t, (<-upgraded).Close())
		<-ended.Done()
	}
}

// Values that handlers around have set reach the services as far as StreamContext passes them on.
func TestStreamContext(t *testing.T) {
	url := guarded(t, &hhfr.Handler{
		Handler: where,
		StreamContext: func(ctx context.Context, r *http.Request) context.Context {
			return context.WithValue(ctx, userKey{}, r.Context().Value(userKey{}).(string)+" of the stream")
		},
	}, denying)
	transport := newTransport(t)
	_, body := posted(t, transport, url+"/public", false)
	assert.Equal(t, "HTTP /public /public ann", body, "the request itself")
	for range 2 {
		_, body = posted(t, transport, url+"/public", false)
		assert.Equal(t, "stream /public /public ann of the stream", body)
	}
}

func newTransport(t *testing.T) *hhfr.Transport {
	transport := &hhfr.Transport{}
	t.Cleanup(func() { require.NoError(t, transport.Close()) })
	return transport
}

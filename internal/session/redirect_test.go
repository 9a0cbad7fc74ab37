package session_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// asked is a request by which a peer is asked for a stream, or got an offer.
type asked struct{ method, authorization, key string }

// recording serves over HTTP and streams, and records how it is asked. guarded: requests without
// credentials get no answer.
func recording(t *testing.T, guarded bool, services http.HandlerFunc) (url string, all *noted[asked]) {
	t.Helper()
	l, err := new(loopback).Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	h, err := responder.NewHandler(services,
		responder.Config{Store: newStore(t), Addresses: map[string]string{"tcp": ":" + port}})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- h.ServeStreams(context.Background(), l) }()
	all = &noted[asked]{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions || strings.Contains(r.Header.Get("SOAPAction"), negotiate.OfferAction) {
			all.note(asked{r.Method, r.Header.Get("Authorization"), r.Header.Get("X-Key")})
			if guarded && r.Header.Get("Authorization") == "" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.Close()
		require.NoError(t, h.Close())
		require.NoError(t, <-served)
	})
	return server.URL, all
}

func redirecting(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusTemporaryRedirect) }
}

var secrets = []soap.Field{{Name: "Authorization", Value: "Bearer x"}, {Name: "X-Key", Value: "k"}}

// The fields that a user configures for offers and questions go to the hosts that the user names,
// and not where a redirection leads, in every mode.
func TestFieldsStayFromWhereARedirectionLeads(t *testing.T) {
	for mode, method := range map[negotiate.Mode]string{negotiate.Explicit: http.MethodPost,
		negotiate.FirstCall: http.MethodOptions} {
		second, ofSecond := recording(t, false, repeat)
		first, ofFirst := recording(t, false, redirecting(second+"/there"))
		client, rt := swapped(t, func(c *session.Config) {
			c.Mode, c.RequireHHFR, c.Store, c.OfferFields = mode, true, newStore(t), secrets
			c.Transports = map[string]streamer.Transport{"tcp": &loopback{}}
		})
		for range 2 { // by a new session, and by one that is there
			_, body := post(t, client, first, "text/xml", strings.NewReader(envelope("<a/>")))
			assert.Equal(t, envelope("<a/>"), body)
		}
		sess, ok := rt.Session(second)
		require.True(t, ok)
		assert.True(t, sess.Agreed().HHFR, "%s: a redirection leads to a session all the same", mode)
		assert.Equal(t, []asked{{method, "Bearer x", "k"}}, ofFirst.got(), mode)
		assert.Equal(t, []asked{{method, "", ""}}, ofSecond.got(), mode)
		_, body := post(t, client, second, "text/xml", strings.NewReader(envelope("<b/>")))
		assert.Equal(t, envelope("<b/>"), body, "%s: an origin named later has that session", mode)
		again, _ := rt.Session(second)
		assert.Same(t, sess, again)
	}
}

// An origin that refuses because those fields are missing is asked with them as soon as the user
// names it, with a store that would remember a refusal.
func TestWhoIsNamedBehindARedirectionIsAskedAnew(t *testing.T) {
	second, ofSecond := recording(t, true, repeat)
	first, _ := recording(t, false, redirecting(second))
	client, rt := swapped(t, func(c *session.Config) {
		c.Store, c.OfferFields = newStore(t), secrets
		c.Transports = map[string]streamer.Transport{"tcp": &loopback{}}
	})
	post(t, client, first, "text/xml", strings.NewReader(envelope("<a/>")))
	sess, ok := rt.Session(second)
	require.True(t, ok)
	assert.False(t, sess.Agreed().HHFR)
	post(t, client, first, "text/xml", strings.NewReader(envelope("<a/>")))
	require.Len(t, ofSecond.got(), 1, "a redirection asks no more")
	for range 2 {
		post(t, client, second, "text/xml", strings.NewReader(envelope("<b/>")))
		sess, ok = rt.Session(second)
		require.True(t, ok)
		assert.True(t, sess.Agreed().HHFR, sess.Agreed().Why)
	}
	assert.Equal(t, []asked{{"POST", "", ""}, {"POST", "Bearer x", "k"}}, ofSecond.got())
}

func TestIsElsewhere(t *testing.T) {
	request := func(url string, before *http.Request) *http.Request {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, nil)
		require.NoError(t, err)
		if before != nil {
			req.Response = &http.Response{Request: before}
		}
		return req
	}
	own := request("http://a.example/x", nil)
	assert.False(t, session.IsElsewhere(own))
	for to, elsewhere := range map[string]bool{
		"http://a.example:80/y": false, "http://A.example/x": false, "http://b.example/x": true,
		"https://a.example/x":   true,
		"http://a.example:81/x": true, "http://sub.a.example/x": true,
	} {
		assert.Equal(t, elsewhere, session.IsElsewhere(request(to, own)), to)
		there := request("http://b.example/", own)
		assert.Equal(t, elsewhere, session.IsElsewhere(request(to, there)), "%s, by another one", to)
	}
	lost := request("http://a.example/x", own)
	lost.Response.Request = nil
	assert.True(t, session.IsElsewhere(lost), "its origin is not known")
}

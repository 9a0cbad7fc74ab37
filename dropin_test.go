package hhfr_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr"
)

// described is what a service sees of a request, without its body.
func described(r *http.Request) string {
	lines := []string{r.Method + " " + r.URL.String() + " " + r.RequestURI + " " + r.Host}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		lines = append(lines, fmt.Sprintf("%s: %q", name, r.Header[name]))
	}
	return strings.Join(lines, "\n")
}

// spoil changes all that a service or client may change of the fields that it was given.
func spoil(h http.Header) {
	for name, values := range h {
		for i := range values {
			values[i] = "spoiled"
		}
		h[name] = append(values, "one more")
	}
	h["X-New"] = []string{"new"}
	delete(h, "Soapaction")
}

// dropIn opens a stream by an unchanged client of net/http.
func dropIn(t *testing.T, service http.HandlerFunc) (client *http.Client, url string) {
	t.Helper()
	url = serve(t, stream, service)
	transport := &hhfr.Transport{}
	t.Cleanup(func() { assert.NoError(t, transport.Close()) })
	client = &http.Client{Transport: transport}
	for n := 0; ask(t, client, url, http.Header{}).Header.Get("X-Way") != stream.seen(); n++ {
		require.Less(t, n, 10_000)
	}
	return client, url
}

// ask sends a message with fields, and reads the whole reply.
func ask(t *testing.T, client *http.Client, url string, fields http.Header) *http.Response {
	t.Helper()
	body := strings.NewReader(envelope("1.1", "<a/>"))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	require.NoError(t, err)
	req.Header = fields
	fields.Set("Content-Type", "text/xml")
	resp, err := client.Do(req)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp
}

// Messages with the same head are parsed once. What services and clients do to the fields and the
// URL that they were given is seen by nobody else: not in the next message, not in one at the same
// time, and not by a service that keeps its request.
func TestHeadsBelongToTheirMessage(t *testing.T) {
	var mu sync.Mutex
	var kept []*http.Request
	var saw []string
	client, at := dropIn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Two"] = []string{"c", "d"}
		if r.Header.Get("X-Keep") == "" {
			w.Header().Set("X-Saw", url.QueryEscape(described(r)))
		}
		echo(w, r)
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("X-Keep") != "" {
			kept = append(kept, r)
			saw = append(saw, described(r))
			return
		}
		spoil(r.Header)
		*r.URL = url.URL{Path: "/spoiled"}
		r.Method, r.RequestURI, r.Host = "PUT", "/spoiled", "spoiled"
	})
	fields := func(name, value string) http.Header {
		return http.Header{"Soapaction": {`"urn:a"`}, "X-Two": {"a", "b"}, "X-Zero": {""}, name: {value}}
	}
	first := ask(t, client, at+"/x%2Fy?q=1", fields("X", "1"))
	want, reply := first.Header.Get("X-Saw"), first.Header.Clone()
	saw1, err := url.QueryUnescape(want)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"POST /x%2Fy?q=1 /x%2Fy?q=1 " + strings.TrimPrefix(at, "http://"),
		`Content-Type: ["text/xml"]`,
		`Soapaction: ["\"urn:a\""]`,
		`X: ["1"]`,
		`X-Two: ["a" "b"]`,
		`X-Zero: [""]`,
	}, strings.Split(saw1, "\n"))
	ask(t, client, at, fields("X-Keep", "1"))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for i := range 20 {
				sent := fields("X", "1")
				resp := ask(t, client, at+"/x%2Fy?q=1", sent)
				assert.Equal(t, want, resp.Header.Get("X-Saw"))
				assert.Equal(t, reply, resp.Header)
				assert.Equal(t, []string{"c", "d"}, resp.Header["X-Two"])
				spoil(resp.Header)
				spoil(sent)
				// more heads of the same length than are remembered
				other := ask(t, client, at, fields("X-Other", fmt.Sprint(i%10)))
				assert.Contains(t, other.Header.Get("X-Saw"), url.QueryEscape(fmt.Sprintf("X-Other: [\"%d\"]", i%10)))
			}
		})
	}
	wait.Wait()
	mu.Lock()
	defer mu.Unlock()
	require.Len(t, kept, 1)
	assert.Equal(t, saw, []string{described(kept[0])})
	n, err := kept[0].Body.Read(make([]byte, 100))
	assert.Zero(t, n, "a body is over with its exchange")
	require.Error(t, err)
	require.Error(t, kept[0].Context().Err())
}

// A head may be longer than what is remembered, and there may be more of them.
func TestManyHeads(t *testing.T) {
	client, at := dropIn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Long", r.Header.Get("X-Long"))
		echo(w, r)
	})
	for i := range 40 {
		long := strings.Repeat(fmt.Sprint(i%20), 1+i%20*300)
		resp := ask(t, client, at+fmt.Sprintf("/%d", i%7), http.Header{"X-Long": {long}})
		assert.Equal(t, long, resp.Header.Get("X-Long"))
		assert.Equal(t, fmt.Sprintf("/%d", i%7), resp.Header.Get("X-Target"))
		assert.Equal(t, stream.seen(), resp.Header.Get("X-Way"))
	}
}

package httpmsg_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/httpmsg"
)

// TestReplyHeads: the head of the reply before on the lane is given again, and no other: not for
// another status or other fields, and not to another lane.
func TestReplyHeads(t *testing.T) {
	var heads httpmsg.ReplyHeads
	fields := http.Header{"Content-Type": {"text/xml"}, "X-Many": {"one", "two"}}
	first := heads.Head(1, 200, fields)
	assert.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nX-Many: one\r\nX-Many: two\r\n\r\n", string(first))
	assert.Same(t, &first[0], &heads.Head(1, 200, fields.Clone())[0])
	for name, tc := range map[string]struct {
		lane   uint64
		status int
		change func(http.Header)
	}{
		"another lane":    {2, 200, func(http.Header) {}},
		"another status":  {1, 500, func(http.Header) {}},
		"another value":   {1, 200, func(h http.Header) { h["X-Many"][1] = "three" }},
		"one value more":  {1, 200, func(h http.Header) { h.Add("X-Many", "three") }},
		"one field more":  {1, 200, func(h http.Header) { h.Set("X-Other", "one") }},
		"another name":    {1, 200, func(h http.Header) { delete(h, "X-Many"); h["X-Less"] = []string{"one", "two"} }},
		"one field fewer": {1, 200, func(h http.Header) { delete(h, "X-Many") }},
	} {
		heads.Head(1, 200, fields)
		before := heads.Head(1, 200, fields)
		own := fields.Clone()
		tc.change(own)
		head := heads.Head(tc.lane, tc.status, own)
		assert.NotSame(t, &before[0], &head[0], name)
		assert.Equal(t, string(httpmsg.ReplyHead(tc.status, own)), string(head), name)
	}
	kept := fields.Clone()
	before := heads.Head(3, 200, kept)
	kept["X-Many"][0] = "other" // who made it may change it
	assert.NotEqual(t, string(before), string(heads.Head(3, 200, kept)))
	assert.Equal(t, "HTTP/1.1 200 OK\r\n\r\n", string((*httpmsg.ReplyHeads)(nil).Head(0, 200, nil)))
}

// TestRequestHeads: the head of the request before is given again, and no other: not for another
// method, URL or field, nor where it cannot be written.
func TestRequestHeads(t *testing.T) {
	request := func() *http.Request {
		req, err := http.NewRequest(http.MethodPost, "http://name:word@here/service?a=1", nil)
		require.NoError(t, err)
		req.Header.Set("Content-Type", "text/xml")
		return req
	}
	var heads httpmsg.RequestHeads
	same := request()
	first, err := heads.Head(same)
	require.NoError(t, err)
	again, err := heads.Head(same)
	require.NoError(t, err)
	assert.Same(t, &first[0], &again[0])
	for name, change := range map[string]func(*http.Request){
		"another method": func(r *http.Request) { r.Method = http.MethodPut },
		"another path":   func(r *http.Request) { r.URL.Path = "/other" },
		"another query":  func(r *http.Request) { r.URL.RawQuery = "a=2" },
		"another user":   func(r *http.Request) { r.URL.User = url.User("other") },
		"another field":  func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") },
	} {
		_, err := heads.Head(same)
		require.NoError(t, err)
		req := request()
		req.URL.User = same.URL.User // as one parsed once
		change(req)
		want, err := httpmsg.RequestHead(req)
		require.NoError(t, err)
		got, err := heads.Head(req)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(got), name)
	}
	bad := request()
	bad.Header.Set("X-Lines", "one\r\ntwo")
	_, err = heads.Head(bad)
	require.Error(t, err)
}

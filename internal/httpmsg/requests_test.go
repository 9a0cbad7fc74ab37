package httpmsg_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

var facts = &negotiate.Facts{Origin: "http://a:80", Path: "/s"}

const head = "POST /x?q HTTP/1.1\r\nsoapaction: \"urn:a\"\r\nX-One: 1\r\nx-two: 2\r\nX-One: 3\r\n\r\n"

// A value that is added to one field reaches no other field of the same head, nor one of another
// message.
func TestFieldsAreApart(t *testing.T) {
	requests := httpmsg.NewRequests(facts)
	want := http.Header{"Soapaction": {`"urn:a"`}, "X-One": {"1", "3"}, "X-Two": {"2"}}
	var replies httpmsg.Replies
	for range 3 {
		req, err := requests.Request(t.Context(), 0, streamer.NewMessage([]byte(head), nil))
		require.NoError(t, err)
		reply := "HTTP/1.1 202 Accepted\r\n" + strings.SplitAfterN(head, "\r\n", 2)[1]
		resp, err := replies.Response(streamer.NewMessage([]byte(reply), nil), nil)
		require.NoError(t, err)
		for _, h := range []http.Header{req.Header, resp.Header} {
			assert.Equal(t, want, h)
			for name := range h {
				_ = append(h[name], "more")
			}
			assert.Equal(t, want, h)
			h.Add("X-Two", "more")
			h["X-One"][0] = "other"
		}
		assert.Equal(t, "202 Accepted", resp.Status)
		assert.Equal(t, "/x?q", req.URL.String())
		req.URL.Path = "/other"
	}
}

// The memory of a head does not depend on the buffer that the head came in, and a head that is
// refused once is refused again.
func TestHeadsAreRememberedByTheirBytes(t *testing.T) {
	requests, buffer := httpmsg.NewRequests(facts), []byte{}
	for i := range 30 {
		buffer = fmt.Appendf(buffer[:0], "POST /%d HTTP/1.1\r\n\r\n", i%7)
		req, err := requests.Request(t.Context(), uint64(i%2), &streamer.Message{Head: buffer})
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("/%d", i%7), req.RequestURI)
		assert.Equal(t, "a:80", req.Host)
		_, err = requests.Request(t.Context(), 0, &streamer.Message{Head: []byte("POST http://b/ HTTP/1.1\r\n\r\n")})
		require.ErrorIs(t, err, &negotiate.Error{Code: negotiate.Malformed})
		req, err = requests.Request(t.Context(), 0, &streamer.Message{})
		require.NoError(t, err)
		assert.Equal(t, "/s", req.RequestURI)
		assert.Equal(t, `""`, req.Header.Get("SOAPAction"))
	}
}

// A caller may use the memory of its head again once the message is sent.
func TestCallersHeadsAreTheirOwn(t *testing.T) {
	im := httpmsg.DefaultHeadOf(&url.URL{Path: "/s"})
	for i := range 30 {
		buffer := fmt.Appendf(nil, "POST /%d HTTP/1.1\r\n\r\n", i%3)
		sent, err := im.ForWire(buffer)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("POST /%d HTTP/1.1\r\n\r\n", i%3), string(sent))
		clear(buffer)
	}
}

// The messages of a session mostly have the head of the one before, which is not parsed again.
func TestKnownHeadsCostLittle(t *testing.T) {
	requests, m := httpmsg.NewRequests(facts), &streamer.Message{Head: []byte(head)}
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		_, _ = requests.Request(t.Context(), 0, m)
	}), 5.0, "the request, its URL, and its header of a map with values")
	var replies httpmsg.Replies
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() {
		_, _ = replies.Response(&streamer.Message{}, nil)
	}), 5.0, "the response and its header")
	req, err := requests.Request(t.Context(), 0, m)
	require.NoError(t, err)
	assert.LessOrEqual(t, testing.AllocsPerRun(100, func() { _, _ = httpmsg.RequestHead(req) }), 2.0,
		"the target with its query, and the head")
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		httpmsg.ReplyHead(http.StatusOK, defaultReply)
	}))
}

var defaultReply = http.Header{"Content-Type": {"text/xml; charset=utf-8"}}

package httpmsg_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

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

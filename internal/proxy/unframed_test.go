package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mirror is an origin that replies with the body of the one request as it comes, whatever that is.
func mirror(c net.Conn) {
	r := &requests{conn: c}
	if _, err := r.head(); err != nil {
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n")
	_, _ = io.Copy(c, io.MultiReader(strings.NewReader(string(r.buf)), c))
}

// TestLongBodiesInChunksOfOneSize: they are not held to their ends, and arrive as they were,
// whatever comes after the first of them; in both directions.
func TestLongBodiesInChunksOfOneSize(t *testing.T) {
	const size = 1000
	entity := "<a>" + strings.Repeat("<b>0123456789 and something more</b>", 20_000) + "</a>"
	chunk := func(i int) string { return fmt.Sprintf("%X\r\n%s\r\n", size, entity[i*size:(i+1)*size]) }
	var all strings.Builder
	const chunks = 700
	for i := range chunks {
		all.WriteString(chunk(i))
	}
	equal, inside := all.String(), len(chunk(0))*300
	insert := func(s string) string { return equal[:inside] + s + equal[inside:] + "0\r\n\r\n" }
	for name, body := range map[string]string{
		"equal":           equal + "0\r\n\r\n",
		"a short one":     equal + "4\r\n</a>\r\n0\r\n\r\n",
		"trailer":         equal + "0\r\nA: b\r\nC: d\r\n\r\n",
		"another inside":  insert("5\r\nabcde\r\n"),
		"extension":       insert("3E8;a=b\r\n" + entity[:size] + "\r\n"),
		"marks":           insert("3\r\n\x01\x02\x03\r\n"),
		"a long one":      insert(fmt.Sprintf("%x\r\n%s\r\n", 300_000, entity[:300_000])),
		"many short ones": insert(strings.Repeat("1\r\n<\r\n", 5000)),
		"no chunks":       insert("this is no size\r\n and so on \x01 \x01"),
		"one chunk":       fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(entity), entity),
		"cut in a chunk":  equal + "3E8\r\nabc",
		"cut in a line":   equal + "3E",
	} {
		t.Run(name, func(t *testing.T) {
			var held, over atomic.Bool
			var looks sync.WaitGroup
			s := script{name, mirror, func(c *client) string {
				c.say(chunked(body))
				require.NoError(t, c.CloseWrite())
				return c.rest()
			}}
			got, received := play(t, s, func(u *url.URL) *url.URL { return u })
			require.True(t, strings.HasSuffix(got, "\r\n\r\n"+body))
			gotHere, receivedHere := play(t, s, func(u *url.URL) *url.URL {
				near, far := pair(t, u, small)
				looks.Go(func() {
					for !over.Load() {
						held.Store(held.Load() || near.Holds() || far.Holds())
						runtime.Gosched()
					}
				})
				return near.url()
			})
			over.Store(true)
			looks.Wait()
			assert.True(t, got == gotHere, "the client got something else: %d bytes, not %d", len(gotHere), len(got))
			require.Len(t, receivedHere, 1)
			assert.True(t, received[0] == receivedHere[0], "the server received something else: %d bytes, not %d",
				len(receivedHere[0]), len(received[0]))
			assert.False(t, held.Load())
		})
	}
}

// TestLongBodiesThatPause: of a body in chunks of one size everything arrives while it pauses, the
// line end behind a chunk as well, for which there are receivers that wait.
func TestLongBodiesThatPause(t *testing.T) {
	chunk := fmt.Sprintf("%x\r\n%s\r\n", 1000, strings.Repeat("<b>0123456</b>", 100)[:1000])
	last := strings.ReplaceAll(chunk, "0123456", "7654321")
	before, end := strings.Repeat(chunk, 100)+last, "5\r\n<end>\r\n0\r\n\r\n"
	near, _ := pair(t, startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		if _, err := r.head(); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\n\r\n")
		for _, part := range []string{before, chunk, end} {
			for len(r.buf) < len(part) {
				if r.more() != nil {
					return
				}
			}
			if r.buf = r.buf[len(part):]; len(r.buf) > 0 {
				return
			}
			_, _ = io.WriteString(c, part)
		}
	}).url(), small)
	c := connect(t, near.url())
	c.say(chunked(before))
	assert.True(t, strings.HasSuffix(c.hear(last), "\r\n\r\n"+before))
	c.say(chunk)
	assert.Equal(t, chunk, c.hear(chunk))
	c.say(end)
	assert.Equal(t, end, c.hear("0\r\n\r\n"))
}

// TestMarksThatAreNone: a request whose marks are malformed, or cut, does not arrive as a whole
// one, and costs its stream nothing.
func TestMarksThatAreNone(t *testing.T) {
	var whole atomic.Int32
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, entity []byte) []byte {
		if string(h.Target()) == "/c" {
			whole.Add(1)
		}
		return echoReply(h, entity)
	}))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	c := connect(t, far.url())
	c.say("OPTIONS /service HTTP/1.1\r\nHost: h\r\n" + asking + "\r\n")
	s, _ := follow(t, c, false)
	head := []byte("POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n=u:3\n")
	call := func(lane int, body string) (string, error) {
		reply, err := s.Lane(uint64(lane)).Call(t.Context(), streamer.NewMessage(head, []byte(body)))
		if err != nil {
			return "", err
		}
		all, err := io.ReadAll(reply.Body)
		return string(all), err
	}
	for i, bad := range []string{
		"abc\x01\x05", "abc\x01", "a\x01\x04", "abc\x01\x02\x05\r\n0\r\n\x00", "abc\x01\x02\xff\xff\xff\xff\x01",
	} {
		body, _ := call(i+1, bad)
		assert.NotContains(t, body, "abc", "%q", bad)
	}
	assert.Zero(t, whole.Load())
	body, err := call(100, "abc\x01\x03\r\n0\r\n\r\n")
	require.NoError(t, err)
	assert.Equal(t, "abc", body)
	assert.EqualValues(t, 1, whole.Load())
}

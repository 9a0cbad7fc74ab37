package proxy_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/shared"
)

// script is a client and its server. Both must get the same with and without the pair between them.
type script struct {
	name   string
	server func(net.Conn)
	client func(c *client) string
}

const odd = "hTTp-X: 1\r\nX-Repeat: a\r\nx-repeat:b\r\nX-Repeat:   c  \r\nHOST: somewhere.example:99\r\n" +
	"SOAPAction: \"urn:x\"\r\n"

func echoReply(h *http1.Head, entity []byte) []byte {
	return fmt.Appendf(nil, "HTTP/1.1 200 Fine Thanks\r\nsErver: x\r\nContent-type:text/xml\r\nSet-Cookie: a\r\n"+
		"set-cookie: b\r\nCONTENT-LENGTH: %d\r\n\r\n%s", len(entity), entity)
}

func chunkedReply(_ *http1.Head, entity []byte) []byte {
	half := len(entity) / 2
	return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nTransfer-Encoding:  chunked\r\n\r\n%X;ext=\"1\"\r\n%s\r\n0%x\r\n"+
		"%s\r\n0\r\nTrailer-A: 1\r\n\r\n", half, entity[:half], len(entity)-half, entity[half:])
}

const envelope = `<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><a xmlns="urn:x">1</a>` +
	`</s:Body></s:Envelope>`

func post(extra, body string) string {
	return fmt.Sprintf("POST /service?x=1 HTTP/1.1\r\n%s%sContent-Length: %d\r\n\r\n%s", odd, extra, len(body), body)
}

func chunked(sizes ...string) string {
	return "POST /c HTTP/1.1\r\n" + odd + "transfer-encoding: Chunked\r\n\r\n" + strings.Join(sizes, "")
}

var scripts = []script{
	{"case, order, repeats, white space", server(echoReply), func(c *client) string {
		c.say(post("", envelope))
		return c.hear(envelope)
	}},
	{"keep-alive", server(echoReply), func(c *client) string {
		var all string
		for i := range 3 {
			body := strings.Replace(envelope, "1<", fmt.Sprint(i, "<"), 1)
			c.say(post("", body))
			all += c.hear(body)
		}
		return all
	}},
	{"pipelining", server(echoReply), func(c *client) string {
		c.say(post("", envelope) + "GET /b HTTP/1.1\r\nHost: x\r\n\r\n" + post("", "<z/>"))
		return c.hear("<z/>")
	}},
	{"chunks, upper case, extensions, trailers", server(chunkedReply), func(c *client) string {
		c.say(chunked("1A;a=b\r\n", envelope[:26], "\r\n00", fmt.Sprintf("%x", len(envelope)-26), "\r\n", envelope[26:],
			"\r\n000\r\nT: 1\r\nt: 2\r\n\r\n"))
		return c.hear("Trailer-A: 1\r\n\r\n")
	}},
	{"regular chunks", server(func(_ *http1.Head, entity []byte) []byte {
		return fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%X\r\n%s\r\n0\r\n\r\n",
			len(entity), entity)
	}), func(c *client) string {
		c.say(chunked("a\r\n", envelope[:10], "\r\na\r\n", envelope[10:20], "\r\n", fmt.Sprintf("%x", len(envelope)-20),
			"\r\n", envelope[20:], "\r\n0\r\n\r\n"))
		return c.hear("\r\n0\r\n\r\n")
	}},
	{"100-continue", expecting("HTTP/1.1 100 Continue\r\nX-hint: 1\r\n\r\n", true), func(c *client) string {
		var all string
		for range 2 {
			c.say(fmt.Sprintf("POST / HTTP/1.1\r\nexpect: 100-Continue\r\n%sContent-Length: %d\r\n\r\n", odd,
				len(envelope)))
			all += c.hear("\r\n\r\n")
			c.say(envelope)
			all += c.hear(envelope)
		}
		return all
	}},
	{"100-continue, refused, body withheld", expecting("HTTP/1.1 417 No\r\nContent-Length: 2\r\n\r\nno", false),
		func(c *client) string {
			c.say(fmt.Sprintf("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(envelope)))
			all := c.hear("\r\n\r\nno")
			c.say(fmt.Sprintf("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(envelope)))
			return all + c.hear("\r\n\r\nno")
		}},
	{"100-continue, not waited for", expecting("", true), func(c *client) string {
		c.say(fmt.Sprintf("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(envelope)))
		c.say(envelope)
		return c.hear(envelope)
	}},
	{"HTTP/1.0, body until close", server(func(h *http1.Head, entity []byte) []byte {
		return nil
	}), func(c *client) string {
		c.say("POST /old HTTP/1.0\r\nContent-Length: 2\r\n\r\nhi")
		return c.rest()
	}},
	{"until close", func(c net.Conn) {
		r := &requests{conn: c}
		h, _ := r.head()
		_, entity, _ := r.body(&h)
		_, _ = c.Write(append([]byte("HTTP/1.0 200 OK\r\nContent-Type: text/xml\r\n\r\n"), entity...))
	}, func(c *client) string {
		c.say(strings.Replace(post("", envelope), "HTTP/1.1", "HTTP/1.0", 1))
		return c.rest()
	}},
	{"connection: close", func(c net.Conn) {
		r := &requests{conn: c}
		h, _ := r.head()
		_, entity, _ := r.body(&h)
		_, _ = c.Write(echoReply(&h, entity))
	}, func(c *client) string {
		c.say(post("Connection: close\r\n", envelope))
		return c.rest()
	}},
	{"half close of the client", server(echoReply), func(c *client) string {
		c.say(post("", envelope))
		require.NoError(c.t, c.CloseWrite())
		return c.rest()
	}},
	{"bare line feeds, empty lines before", server(echoReply), func(c *client) string {
		c.say("\r\n\nPOST /lf HTTP/1.1\nHost : x\nContent-Length: 4\n\n<a/>")
		return c.hear("<a/>")
	}},
	{"folded fields", server(echoReply), func(c *client) string {
		c.say("POST /f HTTP/1.1\r\nHost: x\r\nA: b\r\n  c\r\n\td\r\nContent-Length: 4\r\n\r\n<b/>")
		return c.hear("<b/>")
	}},
	{"HEAD and 204", server(func(h *http1.Head, _ []byte) []byte {
		if string(h.Method()) == "HEAD" {
			return []byte("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
		}
		return []byte("HTTP/1.1 204 None\r\n\r\n")
	}), func(c *client) string {
		c.say("HEAD /h HTTP/1.1\r\nHost: x\r\n\r\n")
		all := c.hear("\r\n\r\n")
		c.say("POST /n HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
		return all + c.hear("\r\n\r\n")
	}},
	{"304 with a length", server(func(*http1.Head, []byte) []byte {
		return []byte("HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 99\r\n\r\n")
	}), func(c *client) string {
		c.say("GET /n?wsdl HTTP/1.1\r\nHost: x\r\nIf-None-Match: x\r\n\r\n")
		all := c.hear("\r\n\r\n")
		c.say(post("", envelope))
		return all + c.hear("\r\n\r\n")
	}},
	{"upgrade, refused", server(echoReply), func(c *client) string {
		c.say("POST /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: raw\r\nContent-Length: 4\r\n\r\n<a/>")
		all := c.hear("<a/>")
		c.say(post("", envelope))
		return all + c.hear(envelope)
	}},
	{"upgrade", func(c net.Conn) {
		r := &requests{conn: c}
		_, _ = r.head()
		_, _ = c.Write([]byte("HTTP/1.1 101 Switching\r\nUpgrade: raw\r\n\r\nhello"))
		for len(r.buf) < 4 {
			if r.more() != nil {
				return
			}
		}
		_, _ = c.Write(append([]byte("you said "), r.buf...))
	}, func(c *client) string {
		c.say("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\n")
		all := c.hear("hello")
		c.say("\x00\x01\x02\x03")
		return all + c.rest()
	}},
	{"upgrade, nobody waits", func(c net.Conn) {
		r := &requests{conn: c}
		if h, err := r.head(); err != nil || string(h.Target()) != "/ws" {
			return
		}
		for len(r.buf) < 4 {
			if r.more() != nil {
				return
			}
		}
		_, _ = c.Write(append([]byte("HTTP/1.1 101 Switching\r\nUpgrade: raw\r\n\r\n"), r.buf...))
	}, func(c *client) string {
		c.say("GET /ws HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: raw\r\n\r\nraw!")
		return c.rest()
	}},
	{"CONNECT", func(c net.Conn) {
		r := &requests{conn: c}
		if h, _ := r.head(); string(h.Method()) != "CONNECT" {
			return // the offer
		}
		_, _ = c.Write([]byte("HTTP/1.1 200 Connected\r\n\r\n"))
		_ = r.more()
		_, _ = c.Write(append([]byte("echo "), r.buf...))
	}, func(c *client) string {
		c.say("CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n")
		all := c.hear("\r\n\r\n")
		c.say("raw")
		return all + c.rest()
	}},
	{"no HTTP", func(c net.Conn) {
		r := &requests{conn: c}
		for len(r.buf) < 8 {
			if r.more() != nil {
				return
			}
		}
		_, _ = c.Write([]byte("\x16\x03\x03 no"))
	}, func(c *client) string {
		c.say("\x16\x03\x01\x00\n\n\x00\x00")
		return c.rest()
	}},
	{"contradicting lengths", func(c net.Conn) {
		r := &requests{conn: c}
		_, _ = r.head()
		_, _ = c.Write([]byte("HTTP/1.1 400 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"))
	}, func(c *client) string {
		c.say("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n")
		return c.rest()
	}},
	{"malformed chunks", func(c net.Conn) {
		r := &requests{conn: c}
		h, _ := r.head()
		_, _, _ = r.body(&h)
		_, _ = c.Write([]byte("HTTP/1.1 400 No\r\n\r\nbad chunk"))
	}, func(c *client) string {
		c.say("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
		return c.rest()
	}},
	{"server closes without a reply", server(func(*http1.Head, []byte) []byte { return nil }), func(c *client) string {
		c.say(post("", envelope))
		return c.rest()
	}},
	{"server speaks before it closes", func(c net.Conn) {
		r := &requests{conn: c}
		h, _ := r.head()
		_, entity, _ := r.body(&h)
		_, _ = c.Write(echoReply(&h, entity))
		_, _ = c.Write([]byte("HTTP/1.1 408 Timeout\r\nConnection: close\r\n\r\n"))
	}, func(c *client) string {
		c.say(post("", envelope))
		return c.rest()
	}},
	{"reply cut short", func(c net.Conn) {
		r := &requests{conn: c}
		h, _ := r.head()
		_, _, _ = r.body(&h)
		_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nonly this"))
	}, func(c *client) string {
		c.say(post("", envelope))
		return c.rest()
	}},
	{"interim replies", server(func(h *http1.Head, entity []byte) []byte {
		return append([]byte("HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
			echoReply(h, entity)...)
	}), func(c *client) string {
		c.say(post("", envelope))
		all := c.hear(envelope)
		c.say(post("", "<two/>"))
		return all + c.hear("<two/>")
	}},
	{"long chunked both ways", server(chunkedReply), func(c *client) string {
		body := strings.Repeat("<a>0123456789</a>", 20000)
		c.say(chunked(fmt.Sprintf("%x\r\n", len(body)), body, "\r\n0\r\n\r\n"))
		return c.hear("Trailer-A: 1\r\n\r\n")
	}},
	{"long both ways", server(echoReply), func(c *client) string {
		body := "<a>" + strings.Repeat("<b>0123456789</b>", 20000) + "</a>"
		c.say(post("", body))
		all := c.hear(body)
		c.say(post("", "<after/>"))
		return all + c.hear("<after/>")
	}},
}

func expecting(word string, wants bool) func(net.Conn) {
	return func(c net.Conn) {
		r := &requests{conn: c}
		for {
			h, err := r.head()
			if err != nil {
				return
			}
			if _, err := c.Write([]byte(word)); err != nil {
				return
			}
			if !wants {
				continue
			}
			_, entity, err := r.body(&h)
			if err != nil {
				return
			}
			if _, err := c.Write(echoReply(&h, entity)); err != nil {
				return
			}
		}
	}
}

// play runs a script against a server, with or without a pair between, and returns what client and
// server got.
func play(t *testing.T, s script, between func(upstream *url.URL) *url.URL) (got string, received []string) {
	t.Helper()
	o := startOrigin(t, "127.0.0.1:0", s.server)
	c := connect(t, between(o.url()))
	got = s.client(c)
	_ = c.CloseWrite()
	_ = c.rest()
	return got, o.received()
}

func TestPairLosesNoOctet(t *testing.T) {
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			got, received := play(t, s, func(u *url.URL) *url.URL { return u })
			for _, hop := range []struct {
				name    string
				between func(u *url.URL) *url.URL
			}{
				{"pair", func(u *url.URL) *url.URL { near, _ := pair(t, u, small); return near.url() }},
				{"chain of three", func(u *url.URL) *url.URL {
					_, far := pair(t, u, small)
					near := startProxy(t, "127.0.0.1:0", startProxy(t, "127.0.0.1:0", far.url(), small).url(), small)
					return near.url()
				}},
				{"one", func(u *url.URL) *url.URL { return startProxy(t, "127.0.0.1:0", u, small).url() }},
			} {
				t.Run(hop.name, func(t *testing.T) {
					gotHere, receivedHere := play(t, s, hop.between)
					assert.Equal(t, got, gotHere, "the client got something else")
					assert.Equal(t, received, receivedHere, "the server received something else")
				})
			}
		})
	}
}

// TestLongBodies: bodies that are too long to be held, or to be one message of a stream, arrive as
// well.
func TestLongBodies(t *testing.T) {
	body := func(octets int) string {
		return "<a>" + strings.Repeat("<b>0123456789</b>", octets/17) + "</a>"
	}
	counted := func(size int) func(c *client) string {
		return func(c *client) string {
			c.say(post("", body(size)))
			all := c.hear("</a>")
			c.say(post("", "<after/>"))
			return all + c.hear("<after/>")
		}
	}
	cut := func(size int) func(c *client) string {
		return func(c *client) string {
			body := body(size)
			var parts []string
			for len(body) > 0 {
				n := min(len(body), 70_000)
				parts = append(parts, fmt.Sprintf("%X;n=%d\r\n", n, len(parts)), body[:n], "\r\n")
				body = body[n:]
			}
			c.say(chunked(append(parts, "0\r\nT: 1\r\n\r\n")...))
			return c.hear("Trailer-A: 1\r\n\r\n")
		}
	}
	narrow := func(c *settings) { c.MaxBuffer, c.Stream.Limits.MaxMessage = 64<<10, 1<<20 }
	for _, tt := range []struct {
		script
		change func(*settings)
	}{
		{script{"17 MiB", server(echoReply), counted(17 << 20)}, nil},
		{script{"3 MiB in chunks", server(chunkedReply), cut(3 << 20)}, nil},
		{script{"beyond a message of the stream", server(echoReply), counted(1 << 20)}, narrow},
		{script{"beyond a message of the stream, in chunks", server(chunkedReply), cut(1 << 20)}, narrow},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, received := play(t, tt.script, func(u *url.URL) *url.URL { return u })
			gotHere, receivedHere := play(t, tt.script, func(u *url.URL) *url.URL {
				near, _ := pair(t, u, tt.change)
				return near.url()
			})
			assert.True(t, got == gotHere, "the client got something else: %d bytes, not %d", len(gotHere), len(got))
			require.Len(t, receivedHere, len(received))
			assert.True(t, received[0] == receivedHere[0], "the server received something else: %d bytes, not %d",
				len(receivedHere[0]), len(received[0]))
		})
	}
}

// small makes messages count as long that a test can afford.
func small(c *settings) { c.MaxBuffer = 64 << 10 }

func TestPairOverCorpus(t *testing.T) {
	paths := shared.Messages(t)
	exchange := func(t *testing.T, to *url.URL) (got []string) {
		c := connect(t, to)
		for i, path := range paths {
			body := string(shared.Read(t, path))
			if i%3 == 1 {
				c.say(chunked(fmt.Sprintf("%x\r\n", len(body)), body, "\r\n0\r\n\r\n"))
			} else {
				c.say(post("", body))
			}
			h := c.hear("\r\n\r\n" + body)
			got = append(got, h)
		}
		require.NoError(t, c.CloseWrite())
		assert.Empty(t, c.rest())
		return got
	}
	direct := startOrigin(t, "127.0.0.1:0", server(echoReply))
	want := exchange(t, direct.url())
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	near, _ := pair(t, o.url(), nil)
	got := exchange(t, near.url())
	require.Equal(t, len(want), len(got))
	for i := range want {
		assert.True(t, want[i] == got[i], "%s: the client got something else", paths[i])
	}
	a, b := direct.received(), o.received()
	require.Len(t, b, 1)
	assert.True(t, a[0] == b[0], "the server received something else")

}

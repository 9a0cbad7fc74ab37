package proxy_test

import (
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// codedBody is a body that zlib wrote, or something like it.
type codedBody struct{ writer, octets string }

// codedBodies are those of testdata/coded.txt.
func codedBodies(t testing.TB) (all []codedBody) {
	t.Helper()
	lines, err := os.ReadFile("testdata/coded.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(lines)) {
		at := strings.LastIndexByte(line, ' ')
		octets, err := base64.StdEncoding.DecodeString(strings.TrimSpace(line[at:]))
		require.NoError(t, err)
		all = append(all, codedBody{line[:at], string(octets)})
	}
	require.NotEmpty(t, all)
	return all
}

// calls are the bodies of one client's calls.
func calls(t testing.TB) (all []string) {
	t.Helper()
	for _, b := range codedBodies(t) {
		if b.writer == "call" {
			all = append(all, b.octets)
		}
	}
	return all
}

// codedHead begins a request, or a reply, with a coded body.
func codedHead(start string, chunks bool, octets int) string {
	framing := fmt.Sprintf("Content-Length: %d", octets)
	if chunks {
		framing = "Transfer-Encoding: chunked"
	}
	return start + "\r\nContent-Type: text/xml; charset=utf-8\r\nContent-Encoding: gzip\r\n" + framing + "\r\n\r\n"
}

// framed is a body with its framing.
func framed(body string, chunks bool) string {
	if !chunks {
		return body
	}
	half := len(body) / 2
	return fmt.Sprintf("%x\r\n%s\r\n%X;x=1\r\n%s\r\n0\r\nT: 1\r\n\r\n", half, body[:half], len(body)-half, body[half:])
}

// codedEcho replies with the body of the request, coded as it is.
func codedEcho(h *http1.Head, entity []byte) []byte {
	_, chunks := h.Get("Transfer-Encoding")
	return []byte(codedHead("HTTP/1.1 200 OK", chunks, len(entity)) + framed(string(entity), chunks))
}

// TestCodedBodiesArriveAsTheyWere: whoever wrote them, and if nobody knows who did, in requests and
// replies, by length and in chunks; on a connection of their own, and among others.
func TestCodedBodiesArriveAsTheyWere(t *testing.T) {
	bodies := codedBodies(t)
	say := func(c *client, body string, chunks bool) string {
		c.say(codedHead("POST /service HTTP/1.1\r\nHost: h", chunks, len(body)) + framed(body, chunks))
		return c.hear("\r\n\r\n" + framed(body, chunks))
	}
	var scripts []script
	for _, chunks := range []bool{false, true} {
		for _, b := range bodies[len(calls(t))-1:] {
			scripts = append(scripts, script{fmt.Sprint(b.writer, chunks), server(codedEcho), func(c *client) string {
				return say(c, b.octets, chunks) + say(c, b.octets, chunks)
			}})
		}
		scripts = append(scripts, script{fmt.Sprint("all", chunks), server(codedEcho), func(c *client) (all string) {
			for range 2 {
				for _, b := range bodies {
					all += say(c, b.octets, chunks)
				}
			}
			return all
		}})
	}
	for _, s := range scripts {
		t.Run(s.name, func(t *testing.T) {
			got, received := play(t, s, func(u *url.URL) *url.URL { return u })
			gotHere, receivedHere := play(t, s, func(u *url.URL) *url.URL {
				near, _ := pair(t, u, nil)
				return near.url()
			})
			assert.True(t, got == gotHere, "the client got something else: %d bytes, not %d", len(gotHere), len(got))
			assert.Equal(t, received, receivedHere, "the server received something else")
		})
	}
}

// TestCodedBodiesCostWhatPlainOnesDo: a conversation whose requests zlib coded costs on the link
// what the same one costs without a coding, and hardly more if its replies are coded, too.
func TestCodedBodiesCostWhatPlainOnesDo(t *testing.T) {
	for _, chunks := range []bool{false, true} {
		plain := costOf(t, chunks, false, false)
		requests, both := costOf(t, chunks, true, false), costOf(t, chunks, true, true)
		t.Logf("chunks: %v; plain %d bytes, requests in gzip %d, replies too %d", chunks, plain, requests, both)
		assert.LessOrEqual(t, requests, plain*105/100, "chunks: %v", chunks)
		assert.LessOrEqual(t, both, plain*110/100, "chunks: %v", chunks)
	}
}

// costOf is what the calls of testdata/coded.txt take on the link, each of which is echoed.
func costOf(t *testing.T, chunks, requests, replies bool) int64 {
	message := func(start, body string, coded bool) []byte {
		head := codedHead(start, chunks, len(body))
		if !coded {
			body = unfolded(t, body)
			head = strings.Replace(codedHead(start, chunks, len(body)), "Content-Encoding: gzip\r\n", "", 1)
		}
		if chunks {
			body = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		}
		return []byte(head + body)
	}
	bodies, next := calls(t), 0
	o := startOrigin(t, "127.0.0.1:0", server(func(h *http1.Head, _ []byte) []byte {
		if isOffer(h) {
			return nil
		}
		next++
		return message("HTTP/1.1 200 OK", bodies[next-1], replies)
	}))
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	thin, err := link.Relay(nil, link.Profile{Name: "test", Bandwidth: 10_000_000, RTT: 4 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { _ = thin.Close() })
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
		c.Dial = thin.DialContext(new(net.Dialer).DialContext)
	})
	near.linked(t)
	c := connect(t, near.url())
	began := octets(thin)
	for _, body := range bodies {
		c.say(string(message("POST /service HTTP/1.1\r\nHost: orders.example:8080\r\nConnection: Keep-Alive\r\n"+
			"User-Agent: PHP-SOAP/8.2.36\r\nSOAPAction: \"urn:example:orders#order\"", body, requests)))
		c.hear(string(message("HTTP/1.1 200 OK", body, replies)))
	}
	return octets(thin) - began
}

func unfolded(t testing.TB, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	require.NoError(t, err)
	plain, err := io.ReadAll(r)
	require.NoError(t, err)
	return string(plain)
}

// stranger is a stream to a far proxy, of a peer that speaks as a near one does, and has no
// abilities.
func stranger(t *testing.T, o *origin) *streamer.Stream {
	far := startProxy(t, "127.0.0.1:0", o.url(), nil)
	c := connect(t, far.url())
	c.say("OPTIONS /service HTTP/1.1\r\nHost: h\r\n" + asking + "\r\n")
	s, _ := follow(t, c, false)
	return s
}

// TestCodedBodiesForPeersThatCannotCode: they get them as they are.
func TestCodedBodiesForPeersThatCannotCode(t *testing.T) {
	s := stranger(t, startOrigin(t, "127.0.0.1:0", server(codedEcho)))
	body := calls(t)[0]
	request := codedHead("POST /service HTTP/1.1\r\nHost: h", false, len(body))
	reply, err := s.Lane(1).Call(t.Context(), streamer.NewMessage([]byte(request+"\n"), []byte(body)))
	head, got := read(t, reply, err)
	assert.Equal(t, codedHead("HTTP/1.1 200 OK", false, len(body))+"\n", head)
	assert.Equal(t, body, got)
}

// TestCodingsThatAreNone: a request whose coding is none, or whose body cannot be coded so, does
// not arrive, and costs its stream nothing; so does one that unfolds to more than may be.
func TestCodingsThatAreNone(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(codedEcho))
	s := stranger(t, o)
	head := codedHead("POST /service HTTP/1.1\r\nHost: h", false, 5)
	long, hard := strings.Repeat("a", 1<<20+1), contrived()
	for i, tt := range []struct{ line, body string }{
		{"=d1:\n\n", "<a/>"}, {"=d1:6f8", "<a/>"}, {"=d1:0f8g3\n\n", "<a/>"}, {"=d1:af8g3\n\n", "<a/>"},
		{"=d1:6f0g3\n\n", "<a/>"}, {"=d1:688g3\n\n", "<a/>"}, {"=d1:6F8g3\n\n", "<a/>"}, {"=d1:6f8x3\n\n", "<a/>"},
		{"=d1:6f8g03\n\n", "<a/>"}, {"=d1:6f8g1000000000000\n\n", "<a/>"}, {"=d1:6f8z789c1\n\n", "<a/>"},
		{"=d1:6f8g3\n=r\n", "<a/>"}, {"=d1:6f8g3\n=u:5\n", "<a/>"}, {"=d1:6f8g3\n=d1:6f8g3\n\n", "<a/>"},
		{"=d2:6f8g3\n\n", "<a/>"}, {"=d1:6f8g3\n\n", long}, {"=d1:9f8g3\n\n", hard},
	} {
		_, err := s.Lane(uint64(i+1)).Call(t.Context(), streamer.NewMessage([]byte(head+tt.line), []byte(tt.body)))
		if err == nil {
			assert.Empty(t, o.whole(t), "%q", tt.line)
		}
	}
	assert.Empty(t, o.whole(t))
	body := calls(t)[0]
	m := streamer.NewMessage([]byte(head+"=d1:6f9g3\n\n"), []byte(unfolded(t, body)))
	reply, err := s.Lane(100).Call(t.Context(), m)
	got, octets := read(t, reply, err)
	assert.Contains(t, got, fmt.Sprintf("Content-Length: %d\r\n", len(body)))
	assert.Equal(t, body, octets)
}

// contrived are bytes that match in many places, nowhere for long.
func contrived() string {
	var b strings.Builder
	for x := uint32(1); b.Len() < 1<<20; x = x*1103515245 + 12345 {
		b.WriteByte(byte('a' + x>>30&1))
	}
	return b.String()
}

// whole are the requests that came whole.
func (o *origin) whole(t *testing.T) (all []string) {
	for _, octets := range o.received() {
		h, n, err := http1.ParseHead([]byte(octets), 0)
		require.NoError(t, err)
		f, err := http1.RequestFraming(&h)
		require.NoError(t, err)
		if int64(len(octets)-n) >= f.Length {
			all = append(all, octets)
		}
	}
	return all
}

package proxy_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/clock"
)

// said is what the client and the server of one fuzz run send, and what the server received.
type said struct {
	mu     sync.Mutex
	server []byte
	got    chan []byte
}

// FuzzPair lets a client send anything to a server that sends anything: both get what the other one
// sent, byte for byte.
func FuzzPair(f *testing.F) {
	for _, seed := range []struct{ client, server string }{
		{post("", envelope), string(echoReply(nil, []byte(envelope)))},
		{post("", envelope) + post("", "<b/>"), string(echoReply(nil, []byte(envelope))) +
			string(chunkedReply(nil, []byte("<b/>")))},
		{chunked("5;a\r\nhello\r\n0\r\nT: 1\r\n\r\n"), "HTTP/1.1 102 x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil close"},
		{"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.0\r\n\r\n",
			"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No\r\n\r\nHTTP/1.0 404 No\r\n\r\nx"},
		{"GET / HTTP/1.1\r\nUpgrade: x\r\n\r\nmore", "HTTP/1.1 101 Go\r\n\r\nraw"},
		{"GET / HTTP/1.1\r\nUpgrade: x\r\n\r\nmore", "P/1.1 101 Go\r\n\r\nraw"},
		{"CONNECT a:1 HTTP/1.1\r\n\r\nmore", "HTTP/1.1 200 Go\r\n\r\nraw"},
		{"HEAD / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\n\r\n",
			"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"POST / HTTP/1.1\r\nContent-Length: 99\r\n\r\nshort", "HTTP/1.1 400 Short\r\nContent-Length: 99\r\n\r\nshort"},
		{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
			"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
		{"\x16\x03\x01", "\x15\x03\x01"},
		{"GET / HTTP/1.1\r\n", ""},
		{"G", "H"},
	} {
		f.Add([]byte(seed.client), []byte(seed.server))
	}
	s := &said{got: make(chan []byte, 1)}
	o := startOrigin(f, "127.0.0.1:0", func(c net.Conn) {
		first := make([]byte, 64<<10)
		n, err := c.Read(first)
		if err != nil || bytes.HasPrefix(first[:n], []byte(question)) {
			return
		}
		s.mu.Lock()
		say := s.server
		s.mu.Unlock()
		_, _ = c.Write(say)
		rest, _ := io.ReadAll(c)
		s.got <- append(first[:n], rest...)
	})
	near, _ := pair(f, o.url(), func(cfg *settings) {
		small(cfg)
		cfg.Clock = clock.Scaled(20) // a client's end waits a second for a next call
	})
	f.Fuzz(func(t *testing.T, client, server []byte) {
		if len(client) == 0 || strings.Contains(string(client), "egotiation") ||
			strings.Contains(strings.ToLower(string(client)), "hhfr") || len(server) > 32<<10 {
			// silence takes its time, a request for a stream is not for the server, and more than
			// this is not passed on without a request
			return
		}
		s.mu.Lock()
		s.server = server
		s.mu.Unlock()
		c := connect(t, near.url())
		c.say(string(client))
		require.NoError(t, c.CloseWrite())
		got := c.rest()
		select {
		case received := <-s.got:
			if !bytes.Equal(received, client) {
				t.Fatalf("the client said %q, the server got %q", client, received)
			}
		case <-time.After(patience):
			t.Fatalf("the client said %q, the server got nothing", client)
		}
		delivered := got == string(server) || strings.HasPrefix(string(server), got) && answers(client, []byte(got))
		if !delivered {
			t.Fatalf("the server said %q, the client got %q", server, got)
		}
	})
}

// answers reports whether replies are those to all requests of a client and nothing more. A client
// that has ended its direction and has them is gone: what its server says behind them is lost.
func answers(client, replies []byte) bool {
	skip := func(p []byte, f http1.Framing) []byte {
		for b := http1.NewBody(f); len(p) > 0 && !b.Done(); {
			_, n, err := b.Write(p)
			if p = p[n:]; err != nil || n == 0 {
				return nil
			}
		}
		return p
	}
	for len(client) > 0 {
		h, n, err := http1.ParseHead(client, 0)
		if err != nil {
			return false
		}
		f, err := http1.RequestFraming(&h)
		if err != nil {
			return false
		}
		client = skip(client[n:], f)
		for interim := true; interim; {
			r, n, err := http1.ParseHead(replies, 0)
			if err != nil {
				return false
			}
			f, err := http1.ReplyFraming(&r, string(h.Method()))
			if err != nil {
				return false
			}
			interim = r.Status()/100 == 1
			replies = skip(replies[n:], f)
		}
	}
	return len(replies) == 0
}

package proxy_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestRepliesInPiecesOneBehindTheOther: while the last part of a reply is in progress, the near end
// has requested more of it; the surplus request must not take what belongs to the next reply.
func TestRepliesInPiecesOneBehindTheOther(t *testing.T) {
	const (
		chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		second = "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nc\r\n."
	)
	parts := []string{chunks + "1\r\na\r\n", "1\r\nb\r\n", "1\r\nc\r\n", "0\r\n\r\n" + second}
	heard := make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		for {
			for range 2 {
				h, err := r.head()
				if err != nil {
					return
				}
				if _, _, err = r.body(&h); err != nil {
					return
				}
			}
			for _, part := range parts {
				if _, err := io.WriteString(c, part); err != nil {
					return
				}
				<-heard
			}
		}
	})
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Pause = 20 * time.Millisecond
		c.Transports = map[string]streamer.Transport{}
	})
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	t.Cleanup(func() { close(heard) })
	c := connect(t, near.url())
	for range 20 {
		c.say(post("", "<a/>") + post("", "<b/>"))
		for _, part := range parts {
			require.Equal(t, part, c.hear(part[len(part)-4:]))
			heard <- struct{}{}
		}
	}
}

// TestLongRequestsKeepTheirPlace: requests pipelined after one that is too long to hold go up after
// it.
func TestLongRequestsKeepTheirPlace(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Transports = map[string]streamer.Transport{}
	})
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.MaxBuffer = 1 << 10 })
	// The first one is of a new kind each time, which takes long to analyze.
	bodies := func(client, round int) []string {
		var b strings.Builder
		for i := range 200 {
			fmt.Fprintf(&b, "<k%dx%dx%d>%d</k%dx%dx%d>", client, round, i, i, client, round, i)
		}
		return []string{"<a>" + b.String() + "</a>", "<b/>", "<c/>"}
	}
	var clients sync.WaitGroup
	for client := range 4 {
		c := connect(t, near.url())
		clients.Go(func() {
			r := &requests{conn: c}
			for round := range 5 {
				var all string
				for _, b := range bodies(client, round) {
					all += post("", b)
				}
				for _, part := range []string{all[:2000], all[2000:]} {
					if _, err := io.WriteString(c, part); !assert.NoError(t, err) {
						return
					}
					// so that the beginning is found too long before the end arrives
					time.Sleep(10 * time.Millisecond)
				}
				for _, want := range bodies(client, round) {
					_, got, err := r.reply()
					if !assert.NoError(t, err) || !assert.Equal(t, want, string(got)) {
						return
					}
				}
			}
		})
	}
	clients.Wait()
	for _, got := range o.received() {
		assert.Equal(t, strings.Repeat("<a><b/><c/>", 5),
			strings.Join(regexp.MustCompile("<a>|<b/>|<c/>").FindAllString(got, -1), ""))
	}
}

// TestRepliesKeepTheirOrderWhenTheFarEndCloses: the replies that arrive before the far end closes
// are those to the first requests, in their order.
func TestRepliesKeepTheirOrderWhenTheFarEndCloses(t *testing.T) {
	bodies := []string{"<a/>", "<b/>", "<c/>", "<d/>"}
	var all string
	for i, b := range bodies {
		all += post([]string{"Expect: 100-continue\r\n", ""}[i%2], b)
	}
	arrived := make(chan struct{})
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		var out []byte
		for i := range bodies {
			h, err := r.head()
			if err != nil {
				return
			}
			_, entity, err := r.body(&h)
			if err != nil {
				return
			}
			if i%2 == 0 {
				out = append(out, "HTTP/1.1 100 Continue\r\n\r\n"...)
			}
			out = append(out, echoReply(&h, entity)...)
		}
		arrived <- struct{}{}
		_, _ = c.Write(out)
		_, _ = c.Read(make([]byte, 1))
	})
	for range 20 {
		far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
			c.Transports = map[string]streamer.Transport{}
		})
		near := startProxy(t, "127.0.0.1:0", far.url(), nil)
		c := connect(t, near.url())
		c.say(all)
		<-arrived
		closed := make(chan error, 1)
		go func() { closed <- far.Close() }()
		r := &requests{conn: c}
		for _, want := range bodies {
			h, got, err := r.reply()
			if err != nil || h.Status() != http.StatusOK {
				break
			}
			require.Equal(t, want, string(got))
		}
		require.NoError(t, c.Close())
		require.NoError(t, <-closed)
		require.NoError(t, near.Close())
	}
}

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/pcapng"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// record makes a proxy record its link at its own end.
func record(c *settings, file io.Writer) *pcapng.Recorder {
	rec := pcapng.NewRecorder(file, time.Now)
	c.WrapDialed = func(conn net.Conn) net.Conn { return rec.Conn(conn) }
	c.WrapAccepted = func(conn net.Conn) net.Conn { return rec.Accepted(conn) }
	return rec
}

// TestUpgradedLinksAreRecorded: the recording of either half has each message once, also upgraded
// requests, and decodes without a store.
func TestUpgradedLinksAreRecorded(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	var files [2]bytes.Buffer
	var recorders [2]*pcapng.Recorder
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Transports = map[string]streamer.Transport{}
		recorders[0] = record(c, &files[0])
	})
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { recorders[1] = record(c, &files[1]) })
	near.linked(t)
	numbered := func(n int) string { return strings.Replace(envelope, ">1<", fmt.Sprintf(">%d<", n), 1) }
	ask := func(to end, n int) { // for a stream with the receiver of the request
		c := connect(t, to.url())
		body := numbered(n)
		c.say("POST /service HTTP/1.1\r\nHost: h\r\nContent-Type: text/xml\r\n" + asking +
			fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		s, p := follow(t, c, true)
		reply, err := p.Reply(t.Context())
		_, got := read(t, reply, err)
		assert.Equal(t, body, got)
		reply, err = s.Lane(0).Call(t.Context(), streamer.NewMessage(nil, []byte(numbered(n+1))))
		_, got = read(t, reply, err)
		assert.Equal(t, numbered(n+1), got)
		require.NoError(t, s.Close())
	}
	var clients sync.WaitGroup
	for i := range 4 {
		c := connect(t, near.url())
		clients.Go(func() {
			for k := range 5 {
				c.say(post("", numbered(100+10*i+k)))
				c.hear("</s:Envelope>")
			}
		})
	}
	clients.Wait()
	ask(far, 200)
	require.NoError(t, near.Close())
	require.NoError(t, far.Close())

	for i, want := range []int{4*5 + 2, 4 * 5} {
		require.NoError(t, recorders[i].Close())
		result, err := capture.Decode(t.Context(), &files[i], capture.DecodeConfig{})
		require.NoError(t, err)
		assert.Empty(t, result.Others)
		seen := map[string]int{}
		for _, m := range result.Messages {
			if len(m.Body) > 0 {
				seen[fmt.Sprint(m.Reply, string(m.Body))]++
				// it was plain HTTP, which has no check
				if m.Head == nil || !bytes.Contains(m.Head, []byte("UPGRADE")) {
					assert.Equal(t, capture.Verified, m.State, "%q", m.Head)
				}
			}
		}
		assert.Len(t, seen, 2*want)
		for message, times := range seen {
			assert.Equal(t, 1, times, message)
		}
		for _, s := range result.Streams {
			assert.Empty(t, s.Problems)
		}
	}
}

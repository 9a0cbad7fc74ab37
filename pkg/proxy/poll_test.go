package proxy_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/pkg/proxy"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// TestRepliesInPiecesOneBehindTheOther: while the last piece of a reply is under way, the near end has asked for more of it; what it asked for too much must not take
// what belongs to the reply behind it.
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
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *proxy.Config) {
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

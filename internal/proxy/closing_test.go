package proxy_test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/proxy"
)

// TestClosingIsCheap: a client that opens a connection for each call costs at most 4 packets a call
// on the link, and at most 20 bytes more than the first call on a new lane; whether it closes
// first, says that it will, or leaves that to the server.
func TestClosingIsCheap(t *testing.T) {
	const calls = 20
	for _, tt := range []struct {
		name, field, replied string
		byServer             bool
	}{
		{name: "by the client"},
		{"by the client, announced", "Connection: close\r\n", "Connection: close\r\n", false},
		{"by the server, announced", "", "Connection: close\r\n", true},
		{"by the server", "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reply := func(h *http1.Head, entity []byte) []byte {
				if isOffer(h) {
					return []byte("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
				}
				return []byte(strings.Replace(string(echoReply(h, entity)), "\r\n", "\r\n"+tt.replied, 1))
			}
			o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
				r := &requests{conn: c}
				for {
					h, err := r.head()
					if err != nil {
						return
					}
					_, entity, err := r.body(&h)
					if err != nil {
						return
					}
					if _, err := c.Write(reply(&h, entity)); err != nil || tt.byServer && !isOffer(&h) {
						return
					}
				}
			})
			far := startProxy(t, "127.0.0.1:0", o.url(), nil)
			thin, err := link.Relay(nil, link.Profile{Name: "test", Bandwidth: 10_000_000, RTT: 4 * time.Millisecond})
			require.NoError(t, err)
			t.Cleanup(func() { _ = thin.Close() })
			near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) {
				c.Dial = thin.DialContext(new(net.Dialer).DialContext)
			})
			near.linked(t)
			call := func(c *client) {
				c.say(post(tt.field, envelope))
				c.hear(envelope)
			}
			end := func(c *client) {
				if tt.byServer {
					assert.Empty(t, c.rest())
				}
				require.NoError(t, c.Close())
			}
			unused := func() {
				require.Eventually(t, func() bool { return near.LanesInUse() == 0 }, patience, time.Millisecond)
			}
			var first int64
			for n := range 4 { // the last client has a lane that nobody has had, and knows of no other that left
				var clients []*client
				for range n + 2 {
					before := octets(thin)
					c := connect(t, near.url())
					call(c)
					first = octets(thin) - before
					clients = append(clients, c)
				}
				for _, c := range clients {
					end(c)
				}
				unused()
			}
			before, packets := octets(thin), packetsOf(thin)
			for range calls {
				c := connect(t, near.url())
				call(c)
				end(c)
				unused()
			}
			cost, count := float64(octets(thin)-before)/calls, float64(packetsOf(thin)-packets)/calls
			t.Logf("%.1f packets and %.1f bytes a call; the first one on a lane: %d bytes", count, cost, first)
			assert.LessOrEqual(t, count, 4.0)
			assert.LessOrEqual(t, cost, float64(first+20))
		})
	}
}

// TestClientsThatEndTheirDirection: a client that ends its direction gets its reply, if that comes
// before nothing has come for it for long; then its connection ends, and so does the one to the
// server, so that it has its place no longer.
func TestClientsThatEndTheirDirection(t *testing.T) {
	for name, start := range forwardings {
		t.Run(name, func(t *testing.T) {
			arrived, release := make(chan struct{}, 8), make(chan struct{})
			o := startOrigin(t, "127.0.0.1:0", held(arrived, release))
			entry := start(t, o, func(c *settings) { c.Idle = proxy.DefaultPause })
			patient, hung := connect(t, entry.url()), connect(t, entry.url())
			patient.say(post("", envelope))
			require.NoError(t, patient.CloseWrite())
			<-arrived
			release <- struct{}{}
			assert.Contains(t, patient.rest(), envelope)
			hung.say(post("", envelope))
			require.NoError(t, hung.CloseWrite())
			<-arrived
			_, _ = io.ReadAll(hung.TCPConn) // in order or not
			entry.Drain(t.Context())        // it waits as long as there is a call
			close(release)
		})
	}
}

func octets(l *link.Link) int64 {
	s := l.Stats()
	return s.Up.Octets + s.Down.Octets
}

func packetsOf(l *link.Link) int64 {
	s := l.Stats()
	return s.Up.Packets + s.Down.Packets
}

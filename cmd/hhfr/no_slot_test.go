package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/upgrade"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// frames reads the first frame that comes, or all until the end of the connection.
func (c *connFrom) frames(all bool) (got []frame.Frame) {
	c.t.Helper()
	var b []byte
	for at := int64(0); ; {
		f, n, err := frame.Parse(b, at, 0)
		require.NoError(c.t, err)
		if n > 0 {
			got, b, at = append(got, f), b[n:], at+int64(n)
			if !all {
				return got
			}
			continue
		}
		next, err := c.in.ReadByte()
		if err != nil {
			require.Empty(c.t, b, "in the middle of a frame: %v", err)
			return got
		}
		b = append(b, next)
	}
}

// firstHello begins a session at the address of streams.
func firstHello(*testing.T, *proxyProcess, string) []byte {
	return frame.Hello{Target: "http://127.0.0.1/service", Session: negotiate.NewSessionID(),
		Representation: frame.Binary, Limits: frame.EarlyLimits}.AppendTo(nil)
}

// joiningHello joins a session that was offered to another address.
func joiningHello(t *testing.T, p *proxyProcess, by string) []byte {
	c := dialFrom(t, by, &url.URL{Scheme: "http", Host: p.listen}, nil)
	_, err := fmt.Fprintf(c, "OPTIONS /service HTTP/1.1\r\nHost: h\r\n%s: 1\r\n\r\n", negotiate.Field)
	require.NoError(t, err)
	reply, err := http.ReadResponse(c.in, nil)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	i, err := upgrade.ParseInvitation(reply.Header.Get(negotiate.Field))
	require.NoError(t, err)
	require.NoError(t, c.Close())
	return frame.Hello{Session: i.Session, Token: i.Token, Representation: frame.Binary,
		Limits: frame.EarlyLimits}.AppendTo(nil)
}

// TestStreamWithoutSlotHearsWhy: at a proxy, a stream beyond those of its address, or beyond all,
// gets a hello without representation and a close that says why. Who is turned away can come again
// with the same hello, and is served once a slot is free.
func TestStreamWithoutSlotHearsWhy(t *testing.T) {
	behind := httptest.NewServer(http.NotFoundHandler())
	defer behind.Close()
	for name, hello := range map[string]func(t *testing.T, p *proxyProcess, by string) []byte{
		"tcp": firstHello, "http": joiningHello,
	} {
		t.Run(name, func(t *testing.T) {
			p := startProxyProcess(t, "127.0.0.1:0", behind.URL, "--tcp", "127.0.0.1:0", "--max-conns", "5",
				"--max-per-peer", "2")
			to := &url.URL{Scheme: "tcp", Host: p.addresses[name]}
			begin := func(from string, hello []byte) *connFrom {
				c := dialFrom(t, from, to, nil)
				_, err := c.Write(hello)
				require.NoError(t, err)
				return c
			}
			isServed := func(c *connFrom) bool {
				return c.frames(false)[0].(frame.Hello).Representation == frame.Binary
			}
			var streams []*connFrom
			for i, from := range []string{"127.0.0.11", "127.0.0.11", "127.0.0.12", "127.0.0.12"} {
				c := begin(from, hello(t, p, fmt.Sprintf("127.0.0.2%d", i)))
				require.True(t, isServed(c), i)
				streams = append(streams, c)
			}
			refused := func(from string, hello []byte) {
				frames := begin(from, hello).frames(true)
				require.Len(t, frames, 2)
				assert.Zero(t, frames[0].(frame.Hello).Representation)
				assert.Equal(t, frame.Close{Code: frame.CloseLimits, Text: "too many sessions"}, frames[1])
			}
			again := hello(t, p, "127.0.0.25")
			for range 3 {
				refused("127.0.0.11", again)
			}
			require.NoError(t, streams[0].Close())
			require.Eventually(t, func() bool { return isServed(begin("127.0.0.11", again)) },
				time.Minute, 10*time.Millisecond)
			if name == "tcp" {
				require.True(t, isServed(begin("127.0.0.13", hello(t, p, ""))))
				refused("127.0.0.14", hello(t, p, ""))
			}
		})
	}
}

//go:build interop

package middleboxes_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// haproxyTo runs HAProxy in front of an origin, with these lines in its section, and returns the
// URL of the service.
func haproxyTo(t *testing.T, o *origin, lines string) string {
	t.Helper()
	addr := shared.Addr(t)
	haproxy(t, addr, `
listen soap
	bind `+addr+`
`+lines+`
	server one `+o.addr)
	return "http://" + addr + "/soap"
}

func haproxyHTTP(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	c := newClient(t, negotiate.Auto, through())
	c.upgrades(t, o, haproxyTo(t, o, "mode http"), 3)
}

func haproxyTCP(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	c := newClient(t, negotiate.Auto, through())
	url := haproxyTo(t, o, "mode tcp")
	s := c.dial(t, url)
	c.say(t, s)
	streams(t, s, "upgrade")
	c.bothWays(t, s)
	require.NoError(t, s.Close())
	sess := s.Agreed().Facts.Session
	s = c.dial(t, url)
	require.True(t, s.Agreed().HHFR, "met")
	c.say(t, s)
	streams(t, s, "tcp")
	assert.Equal(t, sess, s.Agreed().Facts.Session)
	c.bothWays(t, s)
	o.once(t, 2)
	c.log.silent(t)
}

// haproxyEndsQuietStreams: a tunnel that is silent for longer than its time-out ends, and the
// session continues.
func haproxyEndsQuietStreams(t *testing.T) {
	for mode, timeouts := range map[string]string{
		"http": "timeout tunnel 1s", "tcp": "timeout client 1s\n\ttimeout server 1s",
	} {
		t.Run(mode, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.2", nil, nil)
			c := newClient(t, negotiate.Auto, through())
			s := c.dial(t, haproxyTo(t, o, "mode "+mode+"\n\t"+timeouts))
			c.say(t, s)
			streams(t, s, "upgrade")
			c.quiet(t, s)
			o.once(t, 7)
		})
	}
}

// quiet waits three times until an idle stream has ended, and checks that the session continues
// over another one.
func (c *client) quiet(t *testing.T, s *session.Session) {
	t.Helper()
	for range 3 {
		stream := s.Stream()
		select {
		case <-stream.Done():
		case <-time.After(patience):
			t.Fatal("what stands between did not end the stream")
		}
		c.say(t, s)
		c.say(t, s)
		require.Eventually(t, func() bool { return s.Stream() != nil && s.Stream() != stream }, patience, tick)
	}
}

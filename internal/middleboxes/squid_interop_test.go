//go:build interop

package middleboxes_test

import (
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// by makes a transport use a forward proxy, for loopback too.
func by(t *testing.T, transport *http.Transport, proxy string) *http.Transport {
	t.Helper()
	u, err := url.Parse("http://" + proxy)
	require.NoError(t, err)
	transport.Proxy = http.ProxyURL(u)
	return transport
}

func squidHTTP(t *testing.T) {
	o := startOrigin(t, "127.0.0.1", nil, nil)
	c := newClient(t, negotiate.Auto, by(t, through(), squid(t, "")))
	s := c.dial(t, "http://"+o.addr+"/soap")
	c.say(t, s)
	streams(t, s, "tcp")
	c.bothWays(t, s)
	o.once(t, 1)
	c.log.silent(t)
}

// squidHTTPHides: only squid reaches the server, whose name only squid knows.
func squidHTTPHides(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	hosts := write(t, "hosts", "127.0.0.2 service.invalid\n")
	c := newClient(t, negotiate.Auto, by(t, through(),
		squid(t, "hosts_file "+hosts+"\nacl tunnels method CONNECT\nhttp_access deny tunnels")))
	plainAlways(t, o, c, "http://service.invalid:"+o.port+"/soap", "no stream to service.invalid")
	c.log.warned(t, "service.invalid", "open that port")
}

func squidPassesUpgrade(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	hosts := write(t, "hosts", "127.0.0.2 service.invalid\n")
	c := newClient(t, negotiate.Auto, by(t, through(), squid(t,
		"hosts_file "+hosts+"\nhttp_upgrade_request_protocols hhfr allow all")))
	c.upgradesOnce(t, o, "http://service.invalid:"+o.port+"/soap")
}

// hiddenInTLS is a server with TLS that nobody but squid reaches, by a name that only squid knows,
// and a client that goes through squid.
func hiddenInTLS(t *testing.T) (*client, *origin) {
	t.Helper()
	authority := shared.NewAuthority(t)
	certificate := authority.Issue(time.Hour, "service.invalid")
	o := startOrigin(t, "127.0.0.2", &tls.Config{Certificates: []tls.Certificate{certificate}}, nil)
	hosts := write(t, "hosts", "127.0.0.2 service.invalid\n")
	transport := trusting(&tls.Config{RootCAs: authority.Pool()}, false)
	return newClient(t, negotiate.Auto, by(t, transport, squid(t, "hosts_file "+hosts))), o
}

func squidCONNECT(t *testing.T) {
	c, o := hiddenInTLS(t)
	c.upgradesOnce(t, o, "https://service.invalid:"+o.port+"/soap")
}

// squidCONNECTMet: also the direct stream of a session that was met before.
func squidCONNECTMet(t *testing.T) {
	c, o := hiddenInTLS(t)
	for range 2 {
		s := c.dial(t, "https://service.invalid:"+o.port+"/soap")
		c.say(t, s)
		require.Eventually(t, func() bool { return s.Agreed().HHFR }, patience, tick)
		c.bothWays(t, s)
		require.NoError(t, s.Close())
	}
	o.once(t, 2)
	if !strings.Contains(c.log.String(), "transport=urn:hhfr:transport:tls") {
		t.Skip("direct streams do not go through CONNECT: each session is a first call")
	}
}

// squidHTTPTunnels: only squid reaches the server, and CONNECT to it is allowed.
func squidHTTPTunnels(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	hosts := write(t, "hosts", "127.0.0.2 service.invalid\n")
	c := newClient(t, negotiate.Auto, by(t, through(), squid(t, "hosts_file "+hosts)))
	s := c.dial(t, "http://service.invalid:"+o.port+"/soap")
	c.say(t, s)
	require.Eventually(t, func() bool { return s.Agreed().HHFR || s.Agreed().NoStream != "" }, patience, tick)
	if !s.Agreed().HHFR {
		t.Skip("direct streams do not go through CONNECT")
	}
	c.bothWays(t, s)
	o.once(t, 1)
	c.log.silent(t)
}

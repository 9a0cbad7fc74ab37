//go:build interop

package middleboxes_test

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// passing makes nginx pass upgrades.
const passing = `
	map $http_upgrade $connection_upgrade { default upgrade; "" close; }
`

const passes = `
			proxy_http_version 1.1;
			proxy_set_header Upgrade $http_upgrade;
			proxy_set_header Connection $connection_upgrade;
`

// nginxTo runs nginx in front of an origin, with these lines in its location, and returns the URL
// of the service.
func nginxTo(t *testing.T, o *origin, location string) string {
	t.Helper()
	return "http://" + nginxOf(t, o.addr, location) + "/soap"
}

// nginxOf runs nginx in front of an address, and returns its own.
func nginxOf(t *testing.T, of, location string) (addr string) {
	t.Helper()
	addr = shared.Addr(t)
	nginx(t, addr, passing+`
	upstream kept { server `+of+`; keepalive 4; }
	server {
		listen `+addr+`;
		location / {
			proxy_pass http://kept;
`+location+`
		}
	}`)
	return addr
}

var eating = map[string]string{
	"as it comes": "",
	"HTTP/1.1":    "proxy_http_version 1.1;",
	"kept alive":  `proxy_http_version 1.1; proxy_set_header Connection "";`,
}

func nginxEatsUpgrade(t *testing.T) {
	for name, location := range eating {
		t.Run(name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1", nil, nil)
			c := newClient(t, negotiate.Auto, through())
			s := c.dial(t, nginxTo(t, o, location))
			c.say(t, s)
			streams(t, s, "tcp")
			c.bothWays(t, s)
			c.say(t, s)
			require.NoError(t, s.Close())
			s = c.dial(t, s.Agreed().Facts.Origin+"/soap") // met
			require.True(t, s.Agreed().HHFR)
			c.say(t, s)
			o.once(t, 3)
			c.log.silent(t)
		})
	}
}

func nginxEatsUpgradeAndHides(t *testing.T) {
	for name, location := range eating {
		t.Run(name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.2", nil, nil)
			c := newClient(t, negotiate.Auto, through())
			url := nginxTo(t, o, location)
			s := c.dial(t, url)
			for range 3 {
				c.say(t, s)
			}
			plain(t, s, "connection refused")
			assert.Equal(t, "127.0.0.1:"+o.port, s.Agreed().NoStream)
			c.say(t, s)
			require.NoError(t, s.Close())
			s = c.dial(t, url)
			assert.True(t, s.Agreed().Remembered)
			c.say(t, s)
			o.once(t, 5)
			c.log.warned(t, "connection refused", "open that port")
		})
	}
}

func nginxPassesUpgrade(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	c := newClient(t, negotiate.Auto, through())
	// The port of nginx takes no direct streams: each session is a first call.
	c.upgrades(t, o, nginxTo(t, o, passes), 3)
}

// A stream that is silent for longer than proxy_read_timeout ends, and the session continues over
// the next one.
func nginxEndsQuietStreams(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	c := newClient(t, negotiate.Auto, through())
	s := c.dial(t, nginxTo(t, o, passes+"proxy_read_timeout 1s; proxy_send_timeout 1s;"))
	c.say(t, s)
	streams(t, s, "upgrade")
	c.quiet(t, s)
	o.once(t, 7)
}

// secureNginx runs nginx in front of an origin with TLS and this option of listen; the client must
// trust its certificate.
func secureNginx(t *testing.T, authority *shared.Authority, option, scheme string, o *origin,
	location string) (url string, trust *tls.Config) {
	t.Helper()
	dir, addr := t.TempDir(), shared.Addr(t)
	shared.WriteCertificate(t, dir, "server", authority.Issue(time.Hour, "127.0.0.1"))
	nginx(t, addr, passing+`
	server {
		listen `+addr+` ssl `+option+`;
		ssl_certificate `+dir+`/server.pem;
		ssl_certificate_key `+dir+`/server.key;
		location / {
			proxy_pass `+scheme+`://`+o.addr+`;
`+location+`
		}
	}`)
	return "https://" + addr + "/soap", &tls.Config{RootCAs: authority.Pool()}
}

func nginxTLS(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	url, trust := secureNginx(t, shared.NewAuthority(t), "", "http", o, passes)
	c := newClient(t, negotiate.Auto, trusting(trust, true))
	c.upgrades(t, o, url, 2)
}

func nginxTLSEatsUpgrade(t *testing.T) {
	o := startOrigin(t, "127.0.0.1", nil, nil)
	url, trust := secureNginx(t, shared.NewAuthority(t), "", "http", o, "")
	plainAlways(t, o, newClient(t, negotiate.Auto, trusting(trust, true)), url, "a stream by tcp, which is not allowed")
}

func nginxH2(t *testing.T) {
	o := startOrigin(t, "127.0.0.2", nil, nil)
	url, trust := secureNginx(t, shared.NewAuthority(t), "http2", "http", o, passes)
	c := newClient(t, negotiate.Auto, trusting(trust, true))
	c.upgradesOnce(t, o, url)
}

// nginxH2TLSInside: the server behind nginx takes TLS, at a reachable port.
func nginxH2TLSInside(t *testing.T) {
	authority := shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1", &tls.Config{Certificates: []tls.Certificate{authority.Issue(time.Hour,
		"127.0.0.1")}}, nil)
	url, trust := secureNginx(t, authority, "http2", "https", o, "")
	c := newClient(t, negotiate.Auto, trusting(trust, true))
	s := c.dial(t, url)
	c.say(t, s)
	streams(t, s, "tls")
	c.bothWays(t, s)
	require.NoError(t, s.Close())
	s = c.dial(t, url)
	require.True(t, s.Agreed().HHFR, "met")
	c.say(t, s)
	o.once(t, 2)
	c.log.silent(t)
}

// nginxGuardsOneRequest: a path that nginx denies is denied to plain SOAP; of a stream nginx sees
// only the first request.
func nginxGuardsOneRequest(t *testing.T) {
	o, addr := startOrigin(t, "127.0.0.2", nil, nil), shared.Addr(t)
	nginx(t, addr, passing+`
	server {
		listen `+addr+`;
		location / { deny all; }
		location /soap {
			proxy_pass http://`+o.addr+`;
`+passes+`
		}
	}`)
	resp, err := http.Post("http://"+addr+"/lines", "text/xml", strings.NewReader("<line/>\n"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusForbidden, resp.StatusCode)
	c := newClient(t, negotiate.Auto, through())
	s := c.dial(t, "http://"+addr+"/soap")
	c.say(t, s)
	streams(t, s, "upgrade")
	c.bothWays(t, s) // at /lines
}

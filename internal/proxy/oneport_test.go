package proxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/responder"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
	streamtls "github.com/hhfr/hhfr/pkg/streamer/tls"
)

// wire is a listener that records what goes over its connections, below everything.
type wire struct {
	net.Listener
	mu    sync.Mutex
	conns []*bytes.Buffer // both directions of a connection together
}

func (w *wire) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := new(bytes.Buffer)
	w.conns = append(w.conns, b)
	return &wired{conn, w, b}, nil
}

type wired struct {
	net.Conn
	w *wire
	b *bytes.Buffer
}

func (c *wired) note(p []byte) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.b.Write(p)
}

func (c *wired) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.note(p[:n])
	return n, err
}

func (c *wired) Write(p []byte) (int, error) {
	c.note(p)
	return c.Conn.Write(p)
}

// all is what went over each connection.
func (w *wire) all() (all []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.conns {
		all = append(all, b.String())
	}
	return all
}

// secrets are pieces of messages, offers and streams that must not be readable on the link.
var secrets = []string{"POST", "Envelope", "urn:hhfr", "text/xml", "x.example", "HHFR/1", "HTTP/1."}

// A pair has one address at each end, for clients, offers and streams. If that takes TLS, for
// clients and the server too, no byte of a message can be read on the link, and no option has to
// allow it.
func TestPairOverOnePort(t *testing.T) { inEachWay(t, pairOverOnePort) }

func pairOverOnePort(t *testing.T, mode negotiate.Mode) {
	a := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	u, _, _ := secureOrigin(t)
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			link := &wire{}
			var facts []negotiate.Facts
			far := startProxy(t, "127.0.0.1:0", u, func(c *settings) {
				c.TLS = &tls.Config{InsecureSkipVerify: true}
				link.Listener, c.Listen = c.Listen, link
				if scheme == "https" {
					c.ListenTLS = own
				}
			})
			to := far.url()
			to.Scheme = scheme
			near := startProxy(t, "127.0.0.1:0", to, func(c *settings) {
				c.Mode, c.ListenTLS, c.TLS = mode, own, &tls.Config{RootCAs: a.Pool()}
				c.OnSession = func(f negotiate.Facts, _ net.Conn) { facts = append(facts, f) }
			})
			require.NoError(t, near.Linked(t.Context()))
			for range 3 {
				conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: a.Pool()}}).DialContext(t.Context(), "tcp",
					near.Addrs()["http"].String())
				require.NoError(t, err)
				_, err = io.WriteString(conn, post("Connection: close\r\n", envelope))
				require.NoError(t, err)
				got, err := io.ReadAll(conn)
				require.NoError(t, err)
				assert.Contains(t, string(got), "you said "+envelope)
				require.NoError(t, conn.Close())
			}
			transport := map[string]string{"http": "tcp", "https": "tls"}[scheme]
			require.Len(t, facts, 1)
			over, connections := "upgrade", 1
			if mode == negotiate.Explicit {
				over, connections = transport, 2
			}
			assert.Equal(t, negotiate.TransportURI(over), facts[0].Transport)
			assert.Equal(t, map[string]net.Addr{"http": link.Addr(), transport: link.Addr()}, far.Addrs())
			require.NoError(t, near.Close())
			all := link.all()
			require.Len(t, all, connections, "the offer, whose connection may be the stream's")
			for _, conn := range all {
				assert.Equal(t, scheme == "https", conn[0] == 0x16)
				for _, s := range secrets {
					if scheme == "https" {
						assert.NotContains(t, conn, s)
					}
				}
			}
			if scheme == "http" {
				assert.Contains(t, strings.Join(all, ""), "HHFR/1", "the wire shows what is on it")
			}
		})
	}
}

// Streams may be accepted elsewhere, in TLS if the other address takes TLS.
func TestStreamsAtAnotherAddress(t *testing.T) {
	a := shared.NewAuthority(t)
	own := &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	for _, secure := range []bool{false, true} {
		far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
			var err error
			if secure {
				c.ListenTLS = own
				c.Streams, err = streamtls.New(own, nil).Listen(t.Context(), "127.0.0.1:0")
			} else {
				c.Streams, err = new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			}
			require.NoError(t, err)
		})
		to := far.url()
		var facts []negotiate.Facts
		if secure {
			to.Scheme = "https"
		}
		near := startProxy(t, "127.0.0.1:0", to, func(c *settings) {
			c.TLS = &tls.Config{RootCAs: a.Pool()}
			c.OnSession = func(f negotiate.Facts, _ net.Conn) { facts = append(facts, f) }
		})
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
		require.Len(t, facts, 1)
		assert.NotEqual(t, far.Addrs()["http"].String(), "127.0.0.1"+facts[0].Address)
	}
}

// What begins like a stream and is of no session here is the client's: it arrives at the server
// unchanged, in any fragmentation, also when its token was valid once, and at a proxy that is near
// only.
func TestStreamsOfClients(t *testing.T) {
	const rest = "and what follows"
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.Copy(c, c)
	})
	var sessions []negotiate.Facts
	var mu sync.Mutex
	link := &wire{}
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		link.Listener, c.Listen = c.Listen, link
		c.OnSession = func(f negotiate.Facts, _ net.Conn) {
			mu.Lock()
			defer mu.Unlock()
			sessions = append(sessions, f)
		}
	})
	near := startProxy(t, "127.0.0.1:0", far.url(), func(c *settings) { c.Mode = negotiate.Explicit })
	near.linked(t)
	only := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.NearOnly = true })
	mu.Lock()
	require.Len(t, sessions, 1)
	mu.Unlock()
	var spent []byte
	for _, conn := range link.all() {
		if h, ok := frame.Opening([]byte(conn)); ok {
			spent = h.AppendTo(nil)
		}
	}
	require.NotNil(t, spent)
	unknown := frame.Hello{Token: make([]byte, frame.TokenLen), Limits: frame.EarlyLimits}.AppendTo(nil)
	for name, to := range map[string]*url.URL{"far": far.url(), "near only": only.url(), "over the pair": near.url()} {
		t.Run(name, func(t *testing.T) {
			for _, says := range []string{
				string(unknown) + rest, string(spent) + rest, string(unknown[:12]), string(unknown[:3]), "\x01HHFR/1\n",
				"\x01HHFR/2\n" + rest,
			} {
				for _, pieces := range []int{len(says), 1} {
					c := connect(t, to)
					for at := 0; at < len(says); at += pieces {
						c.say(says[at:min(at+pieces, len(says))])
					}
					require.NoError(t, c.CloseWrite())
					assert.Equal(t, says, c.rest())
				}
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, sessions, 1)
}

// A wrong certificate is reported on both sides of the near proxy: to clients and in the log, with
// the remedy.
func TestWrongCertificates(t *testing.T) {
	a, other := shared.NewAuthority(t), shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	good := a.Issue(time.Hour, "127.0.0.1")
	for name, tc := range map[string]struct {
		far        *tls.Config
		says, hint string
	}{
		"untrusted": {&tls.Config{Certificates: []tls.Certificate{other.Issue(time.Hour, "127.0.0.1")}},
			"no authority that is trusted", "--cacert"},
		"expired": {&tls.Config{Certificates: []tls.Certificate{a.Issue(-time.Hour, "127.0.0.1")}}, "expired",
			"another certificate"},
		"other host": {&tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "far.example")}}, "other hosts",
			"name a host"},
		"wanted": {&tls.Config{Certificates: []tls.Certificate{good}, ClientCAs: a.Pool(),
			ClientAuth: tls.RequireAndVerifyClientCert},
			"wants a certificate", "--upstream-cert"},
	} {
		t.Run(name, func(t *testing.T) {
			var said warnings
			far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) { c.ListenTLS = tc.far })
			to := far.url()
			to.Scheme = "https"
			near := startProxy(t, "127.0.0.1:0", to, func(c *settings) {
				c.TLS, c.Log = &tls.Config{RootCAs: a.Pool()}, slog.New(slog.NewTextHandler(&said, nil))
			})
			for range 2 {
				c := connect(t, near.url())
				c.say(post("", envelope))
				got := c.rest()
				assert.True(t, strings.HasPrefix(got, "HTTP/1.1 502 "), "%q", got)
				assert.Contains(t, got, tc.says)
			}
			require.NoError(t, near.Close())
			for _, line := range said.lines() {
				assert.Contains(t, line, tc.hint)
			}
		})
	}
	assert.Empty(t, o.received())
}

// With mutual TLS the pair has its stream; a client that may have none is forwarded plainly, inside
// TLS.
func TestAdmittedByCertificate(t *testing.T) { inEachWay(t, admittedByCertificate) }

func admittedByCertificate(t *testing.T, mode negotiate.Mode) {
	a := shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.ListenTLS = &tls.Config{
			Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}, ClientCAs: a.Pool(),
			ClientAuth: tls.VerifyClientCertIfGiven,
		}
		c.Admit = responder.AdmitCertificate
	})
	to := far.url()
	to.Scheme = "https"
	for _, certificates := range [][]tls.Certificate{nil, {a.Issue(time.Hour)}} {
		near := startProxy(t, "127.0.0.1:0", to, func(c *settings) {
			c.Mode, c.TLS = mode, &tls.Config{RootCAs: a.Pool(), Certificates: certificates}
		})
		err := near.Linked(t.Context())
		switch {
		case certificates != nil:
			require.NoError(t, err)
		case mode == negotiate.Explicit:
			require.ErrorContains(t, err, "Admission: only clients with a certificate are admitted")
		default: // the server answers, as if there were no proxy
			require.ErrorContains(t, err, "offers no stream")
			assert.Equal(t, 2, o.offers(), "that of the far proxy, and that of the near one")
		}
		c := connect(t, near.url())
		c.say(post("", envelope))
		c.hear(envelope)
	}
	assert.Len(t, o.received(), 2)
}

// Clients that send nothing, or too little, delay nobody, and what a server sends first reaches
// them.
func TestSilentAndSlowClients(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		_, _ = io.WriteString(c, "220 ready\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	passes := newSudden()
	p := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Silence, c.Clock, c.MaxConns = ages, passes, 64
		c.Transports = map[string]streamer.Transport{}
	})
	var slow []*client
	for i := range 60 {
		c := connect(t, p.url())
		if i%2 == 0 {
			c.say("\x01HHFR")
		}
		slow = append(slow, c)
	}
	quick := connect(t, p.url())
	quick.say("EHLO x\r\n")
	assert.Equal(t, "220 ready\r\n", quick.hear("\r\n"))
	passes.end()
	for i, c := range slow {
		if i%2 == 1 {
			assert.Equal(t, "220 ready\r\n", c.hear("\r\n"))
		}
	}
}

// A hello that arrives late, because its segment was lost, still begins a stream, unless the server
// spoke first; what is no stream of this proxy arrives at the server.
func TestLateHello(t *testing.T) {
	for _, tc := range []struct {
		name, greeting string
		known, stream  bool
	}{
		{"ours", "", true, true}, {"not ours", "", false, false}, {"server first", "220 ready", true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
				_, _ = io.WriteString(c, tc.greeting)
				_, _ = io.Copy(c, c)
			})
			passes := newSudden()
			far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
				c.Silence, c.Clock, c.Transports = ages, passes, map[string]streamer.Transport{}
			})
			answer := offered(t, connect(t, far.url()), "tcp")
			hello := frame.Hello{Session: answer.Session, Token: answer.Token[:], Representation: frame.Binary,
				Limits: frame.EarlyLimits}
			if !tc.known {
				hello.Token[0] ^= 1
			}
			says := hello.AppendTo(nil)
			c := connect(t, far.url())
			passes.end()
			require.Eventually(t, func() bool { return o.accepted() > 0 }, patience, time.Millisecond)
			if tc.greeting != "" {
				c.hear(tc.greeting)
			}
			for i := range says {
				c.say(string(says[i : i+1]))
			}
			var got []byte
			opening := frame.Hello{}
			for ok := false; !ok; opening, ok = frame.Opening(got) {
				b := make([]byte, 1)
				_, err := io.ReadFull(c, b)
				require.NoError(t, err, "%q", got)
				got = append(got, b...)
			}
			assert.Equal(t, tc.stream, opening.Responder, "of the proxy, or what was said, back from the server")
			assert.Equal(t, !tc.stream, len(o.received()) > 0)
		})
	}
}

// accepted is the number of connections.
func (o *origin) accepted() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.conns)
}

// offered makes an offer on a connection, and returns the answer.
func offered(t *testing.T, c net.Conn, transport string) *negotiate.Answer {
	t.Helper()
	offer, err := (&negotiate.Offer{
		Schemes: []string{negotiate.Scheme}, Representations: []string{negotiate.RepresentationURI("binary")},
		Transports: []string{negotiate.TransportURI(transport)},
	}).Message(1)
	require.NoError(t, err)
	_, err = io.WriteString(c, post("Connection: close\r\n", string(offer)))
	require.NoError(t, err)
	got, err := io.ReadAll(c)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, body, _ := strings.Cut(string(got), "\r\n\r\n")
	answer, err := negotiate.ParseAnswer([]byte(body))
	require.NoError(t, err, "%s", got)
	return answer
}

// dialFar opens TLS with a far proxy.
func dialFar(ctx context.Context, e end, cfg *tls.Config) (net.Conn, error) {
	return (&tls.Dialer{Config: cfg}).DialContext(ctx, "tcp", e.Addrs()["http"].String())
}

// A far proxy with a certificate accepts no cleartext stream, not even with a valid token.
func TestNoCleartextStreamWhereTLSIsTaken(t *testing.T) {
	a := shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	var sessions int
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.ListenTLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
		c.OnSession = func(negotiate.Facts, net.Conn) { sessions++ }
	})
	conn, err := dialFar(t.Context(), far, &tls.Config{RootCAs: a.Pool()})
	require.NoError(t, err)
	answer := offered(t, conn, "tls")
	hello := frame.Hello{Session: answer.Session, Token: answer.Token[:], Representation: frame.Binary,
		Limits: frame.EarlyLimits}.AppendTo(nil)
	c := connect(t, far.url())
	c.say(string(hello))
	_, err = c.Read(make([]byte, 1))
	require.Error(t, err)
	assert.Zero(t, sessions)
	resp, err := http.Get(far.url().String())
	require.NoError(t, err)
	_ = resp.Body.Close()
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
	secure, err := dialFar(t.Context(), far, &tls.Config{RootCAs: a.Pool(), NextProtos: []string{"hhfr/1"}})
	require.NoError(t, err)
	_, err = secure.Write(hello)
	require.NoError(t, err)
	_, err = secure.Read(make([]byte, 1))
	require.NoError(t, err, "the token is good still, in TLS")
	_ = secure.Close()
	require.NoError(t, far.Close())
	assert.Equal(t, 1, sessions)
}

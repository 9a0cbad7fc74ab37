package proxy_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/coders"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/shared"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

const (
	asking    = "connection: x-Mine, UPGRADE\r\nUPGRADE: hhfr/1\r\nhhfr: 1\r\n"
	switching = "HTTP/1.1 101 \r\nConnection: Upgrade\r\nUpgrade: hhfr/1\r\n\r\n"
)

// follow makes a stream of a connection after a request that asked for it.
func follow(t *testing.T, c *client, exchange bool) (*streamer.Stream, *streamer.Pending) {
	t.Helper()
	head := make([]byte, 0, len(switching))
	for !bytes.HasSuffix(head, []byte("\r\n\r\n")) {
		b := make([]byte, 1)
		_, err := c.Read(b)
		require.NoError(t, err, "%q", head)
		head = append(head, b...)
	}
	require.Equal(t, switching, string(head))
	require.NoError(t, c.SetDeadline(time.Time{}))
	store := memory.New(memory.Config{})
	t.Cleanup(func() { _ = store.Close() })
	made := coders.OfBook(binary.NewBook(ctxstore.Shapes{Store: store}))
	coder, err := made(t.Context(), coders.Spec{Representation: 1})
	require.NoError(t, err)
	s, p, err := streamer.DialUpgraded(t.Context(), c, streamer.Config{Initiator: true, Coder: coder}, exchange)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s, p
}

// read returns the head and the body of a reply.
func read(t *testing.T, reply *streamer.Message, err error) (head, body string) {
	t.Helper()
	require.NoError(t, err)
	octets, err := reply.ReadAll(1 << 20)
	require.NoError(t, err)
	return string(reply.Head), string(octets)
}

// TestRequestsThatAskForAStream: a client that asks for a stream over the connection of a request
// gets it from the next proxy. The upstream sees the request as HTTP, without what concerned that
// connection, and the reply comes by the stream, like all that follow.
func TestRequestsThatAskForAStream(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	quiet := func(c *settings) { c.Transports = map[string]streamer.Transport{} }
	far := startProxy(t, "127.0.0.1:0", o.url(), quiet)
	near := startProxy(t, "127.0.0.1:0", far.url(), nil)
	near.linked(t)
	const kept = "sOAPAction:\t\"a\"\r\nX-b: 1\r\nx-B:  2\r\ncontent-Type: text/xml\r\n"
	const own = "Host: %s\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
	for name, to := range map[string]end{"far": far, "near": near} {
		for _, framing := range []string{"length", "chunks"} {
			t.Run(name+" "+framing, func(t *testing.T) {
				before, host := len(o.received()), o.url().Host
				if name == "near" {
					host = far.url().Host
				}
				c := connect(t, to.url())
				head := "POST /service?x=1 HTTP/1.1\r\nHost: outer.example\r\n" + asking + "X-mine: gone\r\n" + kept
				if framing == "length" {
					c.say(head + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(envelope), envelope))
				} else {
					c.say(head + "Transfer-Encoding: chunked\r\n\r\n" +
						fmt.Sprintf("%x;e=1\r\n%s\r\n0\r\nT: 1\r\n\r\n", len(envelope), envelope))
				}
				s, p := follow(t, c, true)
				reply, err := p.Reply(t.Context())
				got, body := read(t, reply, err)
				assert.Equal(t, envelope, body)
				assert.True(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "%q", got)
				next := streamer.NewMessage([]byte("POST /service HTTP/1.1\r\n\r\n"), []byte("<next/>"))
				reply, err = s.Lane(0).Call(t.Context(), next)
				_, body = read(t, reply, err)
				assert.Equal(t, "<next/>", body)
				require.NoError(t, s.Close())

				all := o.received()
				require.Len(t, all, before+2)
				assert.Equal(t, "POST /service?x=1 HTTP/1.1\r\n"+strings.NewReplacer(":\t", ": ", ":  ",
					": ").Replace(kept)+
					fmt.Sprintf(own, host, len(envelope), envelope), all[before])
			})
		}
	}
}

// TestRequestsThatMayNotBecomeStreams: a request that is too long to be held, has Expect, asks
// otherwise, or may have no session arrives unchanged, with whatever it asks for.
func TestRequestsThatMayNotBecomeStreams(t *testing.T) {
	long := strings.Repeat("<b/>", 64<<10)
	body := func(fields, method, body string) string {
		const request = "%s /service HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n%s"
		return fmt.Sprintf(request, method, fields, len(body), body)
	}
	requests := map[string]string{
		"too long": body(asking, "POST", long),
		"too long in chunks": "POST / HTTP/1.1\r\nHost: h\r\n" + asking + "Transfer-Encoding: chunked\r\n\r\n" +
			fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(long), long),
		"with Expect":             body(asking+"Expect: 100-continue\r\n", "POST", envelope),
		"GET":                     "GET /service HTTP/1.1\r\nHost: h\r\n" + asking + "\r\n",
		"PUT":                     body(asking, "PUT", envelope),
		"HTTP/1.0":                strings.Replace(body(asking, "POST", envelope), "HTTP/1.1", "HTTP/1.0", 1),
		"another scheme":          body(strings.Replace(asking, "hhfr: 1", "hhfr: 2", 1), "POST", envelope),
		"without the field":       body(strings.Replace(asking, "hhfr: 1\r\n", "", 1), "POST", envelope),
		"without upgrade":         body("HHFR: 1\r\n", "POST", envelope),
		"another upgrade":         body("Connection: Upgrade\r\nUpgrade: websocket\r\nHHFR: 1\r\n", "POST", envelope),
		"OPTIONS":                 "OPTIONS /service HTTP/1.1\r\nhost: h\r\n\r\n",
		"OPTIONS *":               "OPTIONS * HTTP/1.1\r\nhost: h\r\n\r\n",
		"OPTIONS that asks badly": "OPTIONS /service HTTP/1.1\r\nhost: h\r\nHHFR: yes\r\n\r\n",
	}
	nobody := map[string]string{
		"POST": body(asking, "POST", envelope), "OPTIONS": "OPTIONS /service HTTP/1.1\r\nhost: h\r\n" + asking + "\r\n",
		"OPTIONS without upgrade": "OPTIONS /service HTTP/1.1\r\nhost: h\r\nHHFR: 1\r\n\r\n",
	}
	quiet := func(c *settings) {
		small(c)
		c.Transports = map[string]streamer.Transport{}
	}
	closed := func(c *settings) {
		quiet(c)
		c.Admit = func(*http.Request) error { return errors.New("nobody") }
	}
	try := func(name, request string, far, near func(*settings)) {
		t.Run(fmt.Sprint(name, " near=", near != nil), func(t *testing.T) {
			o := startOrigin(t, "127.0.0.1:0", server(echoReply))
			to := startProxy(t, "127.0.0.1:0", o.url(), far)
			if near != nil {
				to = startProxy(t, "127.0.0.1:0", to.url(), near)
			}
			c := connect(t, to.url())
			c.say(request)
			require.NoError(t, c.CloseWrite())
			got := c.rest()
			assert.True(t, strings.HasPrefix(got, "HTTP/1.1 200 "), "%.80q", got)
			all := allOf(o)
			require.Len(t, all, 1)
			assert.True(t, request == all[0], "%.300q became %.300q", request, all[0])
		})
	}
	for name, request := range requests {
		try(name, request, quiet, nil)
		try(name, request, quiet, small)
	}
	for name, request := range nobody {
		try("not admitted: "+name, request, closed, nil)
	}
	nearOnly := func(c *settings) { c.NearOnly = true }
	// nor does the proxy that receives it over the stream
	try("near only", body(asking, "POST", envelope), quiet, nearOnly)
}

// allOf is what connections sent, offers too.
func allOf(o *origin) (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range o.conns {
		c.mu.Lock()
		if s := c.got.String(); s != "" {
			all = append(all, s)
		}
		c.mu.Unlock()
	}
	return all
}

// TestUpgradesToSomethingElse: other upgrades are tunnels through one proxy and through two, also
// if the server knows hhfr by name.
func TestUpgradesToSomethingElse(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", func(c net.Conn) {
		r := &requests{conn: c}
		h, err := r.head()
		if err != nil || isOffer(&h) {
			return
		}
		_, _ = c.Write([]byte("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"))
		p := make([]byte, 5)
		for range 2 {
			n, _ := c.Read(p)
			_, _ = c.Write(p[:n])
		}
	})
	near, far := pair(t, o.url(), nil)
	for _, to := range []end{far, near} {
		c := connect(t, to.url())
		c.say("GET /service HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket, hhfr/2\r\n" +
			"HHFR: 1\r\n\r\n")
		c.hear("websocket\r\n\r\nhello")
		for _, s := range []string{"\x01HHFR", "again"} {
			c.say(s)
			assert.Equal(t, s, c.hear(s))
		}
	}
}

// TestClientGoneBeforeTheUpgrade: a client that resets its connection after asking harms nobody.
func TestClientGoneBeforeTheUpgrade(t *testing.T) {
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.WrapAccepted = func(conn net.Conn) net.Conn { return deaf{conn} }
	})
	for _, method := range []string{"POST", "OPTIONS"} {
		c := connect(t, far.url())
		c.say(method + " /service HTTP/1.1\r\nHost: h\r\n" + asking + "Content-Length: 4\r\n\r\n<a/>")
		_, _ = c.Read(make([]byte, 1))
	}
	c := connect(t, far.url())
	c.say(post("", envelope))
	c.hear(envelope)
}

// deaf is a connection that cannot be written to any more.
type deaf struct{ net.Conn }

func (deaf) Write([]byte) (int, error) { return 0, net.ErrClosed }

// TestQuestionOverTLS: a stream may begin inside the TLS of a connection, with a proxy whose
// clients use TLS.
func TestQuestionOverTLS(t *testing.T) {
	a := shared.NewAuthority(t)
	o := startOrigin(t, "127.0.0.1:0", server(echoReply))
	far := startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.ListenTLS = &tls.Config{Certificates: []tls.Certificate{a.Issue(time.Hour, "127.0.0.1")}}
	})
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	to := &url.URL{Scheme: "https", Host: far.url().Host, Path: "/service"}
	dialer := &tls.Dialer{Config: &tls.Config{RootCAs: a.Pool()}}
	s, err := session.Dial(t.Context(), to.String(), session.Config{
		Mode: negotiate.FirstCall, Store: store,
		HTTPClient: &http.Client{Transport: &http.Transport{DialTLSContext: dialer.DialContext}},
	})
	require.NoError(t, err)
	defer func() { _ = s.Close() }()
	for range 2 {
		reply, err := s.Call(t.Context(), streamer.NewMessage(nil, []byte(envelope)))
		_, body := read(t, reply, err)
		assert.Equal(t, envelope, body)
	}
	assert.True(t, s.Agreed().HHFR, s.Agreed().Why)
	for _, got := range o.received() {
		assert.NotContains(t, got, "HHFR")
		assert.NotContains(t, got, "Upgrade")
	}
}

package proxy_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/soap"
)

// heardConn keeps what it reads.
type heardConn struct {
	net.Conn
	to *heardLink
}

// heardLink is what came back over connections.
type heardLink struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (c heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.to.mu.Lock()
	defer c.to.mu.Unlock()
	c.to.got.Write(p[:n])
	return n, err
}

// take returns what came since the last time.
func (l *heardLink) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.got.Reset()
	return l.got.String()
}

// plainPair are two proxies with plain HTTP between them, and a common store.
type plainPair struct {
	near, far end
	link      *heardLink
}

func newPlainPair(t *testing.T, serve func(net.Conn)) plainPair {
	common := unchanging.CommonStore{URL: "http://127.0.0.1:2/", Store: memory.New(memory.Config{})}
	p := plainPair{link: &heardLink{}}
	o := startOrigin(t, "127.0.0.1:0", serve)
	p.far = startProxy(t, "127.0.0.1:0", o.url(), func(c *settings) {
		c.Common, c.PlainOnly = &common, true
	})
	named := common
	named.Headers = []soap.Name{{Space: "urn:example:tenant", Local: "Tenant"}}
	p.near = startProxy(t, "127.0.0.1:0", p.far.url(), func(c *settings) {
		c.Common, c.PlainOnly = &named, true
		c.WrapDialed = func(conn net.Conn) net.Conn { return heardConn{conn, p.link} }
	})
	return p
}

// postEmpty sends an empty envelope over a client's connection, and returns the reply's body.
func postEmpty(t *testing.T, client *http.Client, url string) (*http.Response, string) {
	t.Helper()
	const message = `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Body><op/></s:Body></s:Envelope>`
	resp, err := client.Post(url, "text/xml", strings.NewReader(message))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp, string(body)
}

// Between two proxies replies of any form refer to what recurs in them, and clients get them as
// they were.
func TestRepliesReferBetweenProxies(t *testing.T) {
	reply := `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header><t:Tenant xmlns:t="urn:example:tenant">` +
		strings.Repeat("of the service ", 60) + `</t:Tenant></s:Header><s:Body><ok/></s:Body></s:Envelope>`
	long := reply + strings.Repeat(" ", 500<<10)
	chunks := func(text string, size int) string {
		var b strings.Builder
		for len(text) > 0 {
			n := min(size, len(text))
			fmt.Fprintf(&b, "%x\r\n%s\r\n", n, text[:n])
			text = text[n:]
		}
		return b.String() + "0\r\n\r\n"
	}
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n"
	sized := func(text string) string {
		return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(text), text)
	}
	for name, c := range map[string]struct {
		raw, want string
		whole     bool // it has no reference
		closes    bool
	}{
		"length":       {raw: sized(reply), want: reply},
		"long":         {raw: sized(long), want: long},
		"chunked":      {raw: head + "Transfer-Encoding: chunked\r\n\r\n" + chunks(reply, 7), want: reply},
		"long chunked": {raw: head + "Transfer-Encoding: chunked\r\n\r\n" + chunks(long, 9999), want: long},
		"until close":  {raw: head + "\r\n" + reply, want: reply, closes: true},
		"a fault":      {raw: strings.Replace(sized(reply), "200 OK", "500 Oh", 1), want: reply},
		"after 100":    {raw: "HTTP/1.1 100 Continue\r\n\r\n" + sized(reply), want: reply},
		"compressed": {
			raw: strings.Replace(sized(reply), "\r\n", "\r\nContent-Encoding: br\r\n", 1), want: reply, whole: true,
		},
		"no SOAP":     {raw: strings.Replace(sized(reply), "text/xml", "text/html", 1), want: reply, whole: true},
		"no envelope": {raw: sized("sorry"), want: "sorry", whole: true},
		"empty":       {raw: head + "Content-Length: 0\r\n\r\n", whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var settled atomic.Bool
			p := newPlainPair(t, func(conn net.Conn) {
				server(func(*http1.Head, []byte) []byte {
					switch {
					case !settled.Load():
						return []byte(sized(reply))
					case c.closes:
						_, _ = conn.Write([]byte(c.raw))
						return nil
					}
					return []byte(c.raw)
				})(conn)
			})
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			client := &http.Client{Transport: transport}
			require.Eventually(t, func() bool {
				_, body := postEmpty(t, client, p.near.url().String())
				require.Equal(t, reply, body)
				return strings.Contains(p.link.take(), xmlns.Reference)
			}, patience, 5*time.Millisecond)
			settled.Store(true)
			for range 3 {
				resp, body := postEmpty(t, client, p.near.url().String())
				assert.Equal(t, c.want, body)
				assert.Equal(t, c.whole, !strings.Contains(p.link.take(), xmlns.Reference))
				if resp.ContentLength >= 0 {
					assert.EqualValues(t, len(c.want), resp.ContentLength)
				}
			}
		})
	}
}

// A far proxy refers in no reply to who names nothing, and a near proxy that gets a reference it
// has not named says so, and that the request was processed.
func TestRepliesBetweenProxiesThatAreNotAskedFor(t *testing.T) {
	block := `<t:Tenant xmlns:t="urn:example:tenant">` + strings.Repeat("of the service ", 60) + `</t:Tenant>`
	envelope := `<s:Envelope xmlns:s="` + xmlns.SOAP11 + `"><s:Header>%s</s:Header><s:Body><ok/></s:Body></s:Envelope>`
	var header atomic.Value
	header.Store(block)
	p := newPlainPair(t, server(func(*http1.Head, []byte) []byte {
		text := fmt.Sprintf(envelope, header.Load())
		const head = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nContent-Length: "
		return fmt.Appendf(nil, head+"%d\r\n\r\n%s", len(text), text)
	}))
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var travels string
	require.Eventually(t, func() bool {
		postEmpty(t, client, p.near.url().String())
		travels = p.link.take()
		return strings.Contains(travels, xmlns.Reference)
	}, patience, 5*time.Millisecond)
	_, body := postEmpty(t, client, p.far.url().String())
	assert.Equal(t, fmt.Sprintf(envelope, block), body)

	_, reference, _ := strings.Cut(travels[strings.Index(travels, xmlns.Reference):], ">")
	other := reference[:8] + strings.Repeat("0", 16) + reference[24:28]
	header.Store(`<r xmlns="` + xmlns.Reference + `">` + other + `</r>`)
	resp, body := postEmpty(t, client, p.near.url().String())
	assert.Equal(t, http.StatusBadGateway, resp.StatusCode)
	assert.Contains(t, body, other)
	assert.Contains(t, body, "which its request has not named; the request was processed")
}

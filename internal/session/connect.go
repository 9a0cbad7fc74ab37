package session

import (
	"bufio"
	"bytes"
	"context"
	cryptotls "crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/streamer"
	"github.com/hhfr/hhfr/pkg/streamer/tcp"
)

// connecting is a transport over TCP through the HTTP proxy that a client has for URLs of a scheme.
// It uses the method CONNECT (RFC 9110, section 9.3.6). Where the client has no proxy, it connects
// directly.
type connecting struct {
	tcp.Transport
	through *http.Transport // the proxy and its settings are taken from it
	scheme  string
}

// connectingOf returns tcp for the streams of URLs of a scheme, through the proxy of an HTTP client
// whose transport is one of net/http.
func connectingOf(client *http.Client, scheme string) streamer.Transport {
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	t, ok := transport.(*http.Transport)
	if !ok || t.Proxy == nil {
		return tcp.Transport{}
	}
	return connecting{through: t, scheme: scheme}
}

// Dial connects to addr.
func (c connecting) Dial(ctx context.Context, addr string) (net.Conn, error) {
	u, err := c.through.Proxy(&http.Request{
		Method: http.MethodPost,
		URL:    &url.URL{Scheme: c.scheme, Host: addr},
		Host:   addr,
		Header: http.Header{},
	})
	if err != nil {
		return nil, err
	}
	if u == nil {
		return c.Transport.Dial(ctx, addr)
	}
	conn, err := c.dialProxy(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("proxy %s: %w", u.Host, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := c.connect(ctx, conn, u, addr)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("proxy %s: %w", u.Host, err)
	}
	return tunnel, nil
}

// dialProxy opens the connection to a proxy.
func (c connecting) dialProxy(ctx context.Context, u *url.URL) (net.Conn, error) {
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	if port == "" {
		return nil, fmt.Errorf("streams go through proxies of http and https, not of %s", u.Scheme)
	}
	if u.Port() != "" {
		port = u.Port()
	}
	conn, err := dialerOf(c.through)(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme == "http" {
		return conn, err
	}
	config := &cryptotls.Config{}
	if c.through.TLSClientConfig != nil {
		config = c.through.TLSClientConfig.Clone()
	}
	config.ServerName, config.NextProtos = u.Hostname(), nil
	secure := cryptotls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

// connect asks the proxy for a tunnel.
func (c connecting) connect(ctx context.Context, conn net.Conn, u *url.URL, addr string) (net.Conn, error) {
	header := http.Header{}
	switch {
	case c.through.GetProxyConnectHeader != nil:
		own, err := c.through.GetProxyConnectHeader(ctx, u, addr)
		if err != nil {
			return nil, err
		}
		header = own.Clone()
	case c.through.ProxyConnectHeader != nil:
		header = c.through.ProxyConnectHeader.Clone()
	}
	if password, ok := u.User.Password(); ok && header.Get("Proxy-Authorization") == "" {
		header.Set("Proxy-Authorization",
			"Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: addr}, Host: addr, Header: header}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, errors.New(resp.Status)
	}
	if n := in.Buffered(); n > 0 {
		ahead, _ := in.Peek(n)
		return httpmsg.NewReadAheadConn(conn, io.MultiReader(bytes.NewReader(ahead), netconn.Of(conn))), nil
	}
	return conn, nil
}

func dialerOf(t *http.Transport) dialFunc {
	if t.DialContext != nil {
		return t.DialContext
	}
	return func(ctx context.Context, _, addr string) (net.Conn, error) { return tcp.Transport{}.Dial(ctx, addr) }
}

type dialFunc = func(ctx context.Context, network, addr string) (net.Conn, error)

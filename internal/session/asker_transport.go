package session

import (
	"context"
	cryptotls "crypto/tls"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/netconn"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

func newAsker(
	ctx context.Context, cfg *Config, nodes *nodes, by starter, transport http.RoundTripper,
) *asker {
	if transport == nil {
		transport = http.DefaultTransport
	}
	a := &asker{cfg: cfg, ctx: ctx, nodes: nodes, by: by, base: transport}
	t, ok := transport.(*http.Transport)
	if !ok {
		return a
	}
	a.own = true
	own := t.Clone()
	own.DialContext = directly(own)
	a.base = own
	defer func() { a.alone = oneByOne(own) }()
	if !nodes.may(selects) || t.DialTLS != nil { //nolint:staticcheck // who set it, dials by it
		return a
	}
	h2 := speaksH2(t)
	own.Protocols = new(http.Protocols)
	own.Protocols.SetHTTP1(true)
	own.Protocols.SetHTTP2(h2)
	own.TLSNextProto = map[string]func(string, *cryptotls.Conn) http.RoundTripper{
		negotiate.Protocol: func(_ string, conn *cryptotls.Conn) http.RoundTripper { return newSelected(a, conn) },
	}
	if t.DialTLSContext != nil {
		return a
	}
	dial := dialerOf(t)
	config := t.TLSClientConfig
	if config == nil {
		config = &cryptotls.Config{}
	}
	config = config.Clone()
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = cryptotls.NewLRUClientSessionCache(0)
	}
	own.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		cfg := config.Clone()
		cfg.NextProtos = []string{"http/1.1"}
		k, ok := ctx.Value(askKey{}).(*ask)
		if h2 && (!ok || !k.alone) {
			cfg.NextProtos = []string{"h2", "http/1.1"}
		}
		if AsksByALPN(ctx) {
			cfg.NextProtos = slices.Insert(cfg.NextProtos, 0, negotiate.Protocol)
		}
		if cfg.ServerName == "" {
			cfg.ServerName, _, _ = net.SplitHostPort(addr)
		}
		return handshake(ctx, dial, network, addr, cfg, t.TLSHandshakeTimeout)
	}
	return a
}

// oneByOne returns a copy of a transport that uses no connection twice and speaks HTTP/1.1.
func oneByOne(t *http.Transport) *http.Transport {
	t = t.Clone()
	t.DisableKeepAlives, t.ForceAttemptHTTP2 = true, false
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	delete(t.TLSNextProto, "h2")
	return t
}

// AsksByALPN reports whether a connection is for a request that asks for a stream. It is for the
// DialTLSContext of an [http.Transport] that a client of [Config].HTTPClient has. Then
// [negotiate.Protocol] may be offered before the protocols of HTTP. Where the server selects it,
// DialTLSContext must return the *tls.Conn itself.
func AsksByALPN(ctx context.Context) bool {
	k, ok := ctx.Value(askKey{}).(*ask)
	return ok && !k.plain.Load() && !k.declined.Load()
}

func handshake(
	ctx context.Context, dial func(context.Context, string, string) (net.Conn, error), network, addr string,
	cfg *cryptotls.Config, within time.Duration,
) (net.Conn, error) {
	raw, err := dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if within > 0 {
		limited, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ctx = limited
	}
	conn := cryptotls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// speaksH2 reports whether a transport would speak HTTP/2 to a server that selects it.
func speaksH2(t *http.Transport) bool {
	switch {
	case t.Protocols != nil:
		return t.Protocols.HTTP2()
	case t.TLSNextProto != nil:
		return t.TLSNextProto["h2"] != nil
	}
	return t.ForceAttemptHTTP2 ||
		t.TLSClientConfig == nil && t.DialContext == nil && t.Dial == nil //nolint:staticcheck // as above
}

// directly is the DialContext of a transport, whose connections over TCP cost less; nil if it has
// none.
func directly(t *http.Transport) dialFunc {
	dial := t.DialContext
	if dial == nil {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if t, ok := conn.(*net.TCPConn); ok && err == nil {
			return netconn.Of(t), nil
		}
		return conn, err // of a type that its owner may look for
	}
}

// CloseIdleConnections closes idle connections if they are the asker's own.
func (a *asker) CloseIdleConnections() {
	if own, ok := a.base.(*http.Transport); ok {
		own.CloseIdleConnections()
	}
}

package client

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/cmd/hhfr/internal/command"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/description"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/network"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/recording"
	"github.com/hhfr/hhfr/cmd/hhfr/internal/trust"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
)

// OpenedClient is what a command has open while it has a session. All connections are recorded, and
// their bytes counted.
type OpenedClient struct {
	Secure    *trust.Secured
	Store     ctxstore.Store
	Common    *unchanging.CommonStore // nil: none
	Described description.DescribedMessages
	Network   *network.Network
	Recording *recording.TrafficRecording // of nothing, until [OpenedClient.Record]

	command.Closers
	concurrency int
}

// Open opens all but the recording. The caller closes the result, also with an error.
func (o *ClientOptions) Open(ctx context.Context, g *command.Global) (c *OpenedClient, err error) {
	c = &OpenedClient{Recording: &recording.TrafficRecording{}, concurrency: o.Concurrency}
	if c.Secure, err = o.TLS.Open(g.System, o.Record.Keys); err != nil {
		return c, err
	}
	c.Ends(c.Secure.Close)
	if c.Store, err = o.Store.Open(ctx, g); err != nil {
		return c, err
	}
	c.Ends(func() { _ = c.Store.Close() })
	var closeCommon func()
	if c.Common, closeCommon, err = o.Common.Open(ctx, g, &o.Store); err != nil {
		return c, err
	}
	c.Ends(closeCommon)
	if c.Described, err = description.Read(ctx, g, o.Schema); err != nil {
		return c, err
	}
	if c.Network, err = network.Open(o.Link, o.Transport); err != nil {
		return c, err
	}
	c.Ends(func() { _ = c.Network.Close() })
	return c, nil
}

// Record begins the recording that --record asks for, if it does.
func (c *OpenedClient) Record(o *ClientOptions, g *command.Global) (err error) {
	if c.Recording, err = o.Record.Open(c.Store, g.Logger()); err == nil {
		c.Closes(c.Recording.Close)
		c.Secure.Keys.Record(c.Recording.Secrets())
	}
	return err
}

// Session notes a session's facts in the recording, and which part of an HTTP connection is its
// stream.
func (c *OpenedClient) Session(f negotiate.Facts, conn net.Conn) {
	c.Recording.Facts(f, conn)
	c.Network.Plain.Leave(conn)
}

// open opens connections whose bytes are counted.
func (c *OpenedClient) open() func(ctx context.Context, network, addr string) (net.Conn, error) {
	dialTCP := c.Network.DialContext((&net.Dialer{}).DialContext)
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialTCP(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return c.Network.Plain.Count(conn), nil
	}
}

// Dialer opens connections that are counted and recorded.
func (c *OpenedClient) Dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	return c.Recording.Over(c.open())
}

// HTTP sends negotiation and plain SOAP; a redirection is a reply.
func (c *OpenedClient) HTTP() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = c.concurrency
	transport.DisableCompression = true
	transport.IdleConnTimeout = 5 * time.Second
	open := c.open()
	transport.TLSClientConfig = c.Secure.Config // for servers behind a proxy from the environment
	transport.DialContext = c.Recording.Over(open)
	// A recording has the cleartext. If the server turns a connection into a stream, the recording
	// has it like every stream.
	secure := c.Secure.Over(open)
	transport.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := secure(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		if conn.ConnectionState().NegotiatedProtocol == negotiate.Protocol {
			c.Network.Plain.Drop(conn.NetConn())
			return conn, nil
		}
		return c.Recording.Dial(conn), nil
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

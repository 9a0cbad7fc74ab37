package session

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// rejoin opens a stream of a session that was met before. It waits only for the connection.
func (n *negotiation) rejoin(ctx context.Context, c *negotiate.Context) error {
	transport, _ := strings.CutPrefix(c.Transport, negotiate.TransportPrefix)
	addr, err := n.dialer.streamAddr(transport, c.Address, n.url)
	if err != nil {
		return &refusal{err: err}
	}
	o := streamOpening{
		facts:     c.Facts,
		transport: transport,
		addr:      addr,
		token:     c.Token,
		early:     c.Limits,
		names:     true,
		stages:    &c.Stages,
	}
	o.facts.Path = c.Path
	if n.careful {
		o.early = nil
	}
	err = n.openStream(ctx, &o)
	var refused *refusal
	switch {
	case err == nil:
		n.met = c
	// An address that drops packets is not tried repeatedly.
	case errors.As(err, &refused) && refused.unsent && !refused.silent, isFull(err):
		n.dialer.putMetBack(ctx, n.url, c)
	}
	return err
}

// earlyDialer is a transport that can send what is written to a connection before the peer has
// answered its dial. Where the dial fails, the connection ends with its error, a *[net.OpError] of
// the operation "dial".
type earlyDialer interface {
	DialEarly(ctx context.Context, addr string) (net.Conn, error)
}

// connect opens the connection of a stream. One of a session that was met does not wait for the
// peer if its messages stand in a sequence that outlives streams: what such a connection loses is
// sent again, and not processed twice.
func (n *negotiation) connect(ctx context.Context, o *streamOpening) (net.Conn, error) {
	t := n.dialer.cfg.Transports[o.transport]
	if e, ok := t.(earlyDialer); ok && o.early != nil && n.dialer.cfg.kept() {
		return e.DialEarly(ctx, o.addr)
	}
	return t.Dial(ctx, o.addr)
}

// dialError is that of a connection that was dialed early, if a stream ended by it; else nil.
func dialError(err error) *net.OpError {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return op
	}
	return nil
}

// isNobody reports whether nobody listens where a connection was dialed early: nobody has spent the
// token.
func isNobody(err error) bool {
	op := dialError(err)
	return op != nil && !op.Timeout()
}

// isFull reports whether a peer had no slot for a stream, before the peer accepted it: then it has
// not used up the token.
func isFull(err error) bool {
	var e *streamer.Error
	return errors.As(err, &e) && e.Remote && e.Code == streamer.BeyondLimits
}

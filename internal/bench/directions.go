package bench

import (
	"context"
	"crypto/tls"
	"io"
	"net"

	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// directions are what the lines carried.
type directions struct{ up, down link.Direction }

// since is the difference to before.
func (d directions) since(before directions) directions {
	less := func(now, before link.Direction) link.Direction {
		return link.Direction{Octets: now.Octets - before.Octets, Wire: now.Wire - before.Wire,
			Packets: now.Packets - before.Packets, Busy: now.Busy - before.Busy}
	}
	return directions{less(d.up, before.up), less(d.down, before.down)}
}

// lines are what the connections of a session go over.
type lines interface {
	connect(ctx context.Context, addr string) (net.Conn, error)
	// streams is the transport of the session's streams; secure is the configuration of streams in
	// TLS.
	streams(secure *tls.Config) streamer.Transport
	stats() directions
	io.Closer
}

package proxy

import (
	"net"
	"sync/atomic"

	"github.com/hhfr/hhfr/pkg/clock"
)

// firstWord writes what a server sends to its client, unless the client has sent first, and not to
// the server.
type firstWord struct {
	relayedReply
	raw   *rawConn
	clock clock.Clock
	whose atomic.Int32
}

const (
	nobodys int32 = iota
	servers
	clients
)

// take reports whether the server has sent nothing and not ended; from then on it is not read.
func (w *firstWord) take() bool { return w.whose.CompareAndSwap(nobodys, clients) }

// isServers reports whether what the server sends or does is for the client.
func (w *firstWord) isServers() bool {
	return w.whose.CompareAndSwap(nobodys, servers) || w.whose.Load() == servers
}

// Write implements [io.Writer].
func (w *firstWord) Write(b []byte) (int, error) {
	if !w.isServers() {
		return 0, net.ErrClosed
	}
	w.raw.reply(w.clock.Now())
	return w.relayedReply.Write(b)
}

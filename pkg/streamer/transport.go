package streamer

import (
	"context"
	"net"
)

// Transport makes connections that streams can run over: reliable, ordered, with deadlines. Folders
// below this one hold one each; none imports this package, and this package knows none of them. All
// methods may be called concurrently.
//
// A connection that has CloseWrite() error, as TCP's has, ends more gently; one that has
// Await(reply bool) is told when calls wait for replies, and when none does any more, so that it
// can look after a silent peer meanwhile; one that has Abort() error ends at once. A connection
// that wraps another one and lacks some of these methods has NetConn() net.Conn, as a
// *[crypto/tls.Conn] does: what it gives is then asked. One that has TryWrite(b []byte) (n int),
// which writes without waiting what it can, saves calls and replies a goroutine; a *[net.TCPConn]
// needs none, and a wrapper that passes on what is written has its own, as nobody writes past it.
type Transport interface {
	// Dial connects to addr, whose form is the transport's own. ctx bounds the dialling only.
	Dial(ctx context.Context, addr string) (net.Conn, error)
	// Listen waits for connections at addr. ctx bounds the setting up only; closing the listener
	// ends it.
	Listen(ctx context.Context, addr string) (net.Listener, error)
}

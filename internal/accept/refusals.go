package accept

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/netconn"
)

const (
	// maxRefusals is the maximum number of connections that are told at once that there are too
	// many.
	maxRefusals = 64
	// RefusalTime is how long each may take to say something, and to take the reply.
	RefusalTime = time.Second
	// retryAfter is when a client that is refused may call again, in seconds.
	retryAfter = 5

	refusalText = "hhfr: there are too many connections; the request was not processed\n"
)

// Refusals tell clients that there is no slot for them: those of HTTP by status 503. So few at a
// time are told, and of one peer half of them, that it costs little; others are closed. The zero
// value is ready. All methods are safe for concurrent use.
type Refusals struct {
	once sync.Once
	room Room
}

// Enter takes the slot of a refusal, to be released by leave, once; false: there is none.
func (r *Refusals) Enter(addr net.Addr) (leave func(), ok bool) {
	r.once.Do(func() { r.room.Max, r.room.PerPeer = maxRefusals, maxRefusals/2 })
	return r.room.Enter(addr)
}

// Refuse replies to a client that begins to speak HTTP, and closes the connection, or aborts it
// when ctx is done. It reads for a moment what the client still sends, who is to see the reply and
// no reset.
func Refuse(ctx context.Context, conn net.Conn) {
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = netconn.Abort(conn) })()
	_ = conn.SetDeadline(time.Now().Add(RefusalTime))
	start := make([]byte, 256)
	n, err := conn.Read(start)
	if err != nil || !http1.LooksLikeStart(start[:n]) {
		return
	}
	const status = http.StatusServiceUnavailable
	_, err = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Retry-After: %d\r\nConnection: close\r\n\r\n%s", status, http.StatusText(status), len(refusalText), retryAfter,
		refusalText)
	if err == nil && netconn.CloseWrite(conn) == nil {
		_ = conn.SetDeadline(time.Now().Add(RefusalTime))
		_, _ = io.Copy(io.Discard, conn)
	}
}

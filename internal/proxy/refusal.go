package proxy

import (
	"context"
	"fmt"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

const (
	noRoomText   = "hhfr: the far proxy has no free slot; the request was not processed"
	tooManyText  = "hhfr: this proxy has its maximum number of connections; the request was not sent"
	drainingText = "hhfr: this proxy is shutting down; the request was not sent"
)

// busyReply is the reply to a request that is refused for now: nothing of it was processed.
func busyReply(text string) []byte {
	return errorReply(http.StatusServiceUnavailable, text, fmt.Sprintf("Retry-After: %d\r\n", retryAfter))
}

// refuseClient tells a client beyond the maximum number that it is one, unless as many are being
// told as may be: those are closed.
func (p *Proxy) refuseClient(conn net.Conn) {
	if !p.refusals.enter() {
		closeConn(conn)
		return
	}
	p.wait.Go(func() {
		defer p.refusals.leave()
		defer context.AfterFunc(p.ctx, func() { sock.Reset(conn) })()
		in := p.newSource(conn)
		if _, err := in.Wait(p.ctx, 0, refusalTime); err == nil {
			defer p.cfg.Clock.AfterFunc(refusalTime, func() { sock.Reset(conn) }).Stop()
			_, _ = conn.Write(busyReply(tooManyText))
		}
		sock.Finish(p.ctx, in)
	})
}

func closeConn(conn net.Conn) { _ = conn.Close() }

// isDraining reports whether no further call is to begin.
func (p *Proxy) isDraining() bool { return p.draining.Load() }

// turnAway refuses a call of a near proxy, or of an endpoint that speaks hhfr itself.
func turnAway(ctx context.Context, x *streamer.Exchange, text string, itself bool) {
	head, body := line(ended), busyReply(text)
	if h, n, err := http1.ParseHead(body, 0); itself && err == nil {
		if trimmed, err := httpmsg.TrimHead(h.Octets); err == nil {
			head, body = trimmed, body[n:]
		}
	}
	_ = x.Reply(ctx, streamer.NewMessage(head, body))
}

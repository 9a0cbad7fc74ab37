package proxy

import (
	"context"

	"github.com/hhfr/hhfr/internal/frame"
	"github.com/hhfr/hhfr/internal/sock"
)

// isLateStream waits for the client's first bytes, and reports whether they begin a stream of this
// proxy, if there may be any. Segments lost on slow links arrive later than the time for which a
// server that speaks first can be delayed.
func (f *front) isLateStream(ctx context.Context, in *sock.Source) bool {
	if f.responder == nil {
		return false
	}
	start, err := in.Wait(ctx, 0, 0)
	for err == nil {
		own, more := false, frame.MayOpen(start)
		if frame.BeginsStream(start) {
			own, more = f.own(ctx, start)
		}
		if !more {
			return own
		}
		start, err = in.Wait(ctx, len(start), f.p.cfg.Timeout)
	}
	return false
}

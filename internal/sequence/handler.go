package sequence

import (
	"context"
	"log/slog"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// Handler hands messages that have a place in the sequence to it, and all others on. What does not
// arrive is sent again by the peer.
func (q *Sequence) Handler(others streamer.ExchangeHandler, logger *slog.Logger) streamer.ExchangeHandler {
	return func(ctx context.Context, x *streamer.Exchange) {
		if x.Message().Place.Number == 0 {
			others(ctx, x)
			return
		}
		if err := q.Arrived(ctx, x.Message()); err != nil && ctx.Err() == nil {
			logger.Warn("message of a sequence not taken", "number", x.Message().Place.Number, "err", err)
		}
	}
}

package replay

import (
	"context"
	"net/url"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Alone returns a recording of one exchange: a request, and its reply, nil if that is not recorded.
// path is that of the service of a request without a head. Errors: Nothing, if the request is not
// sent again (see [Recording.Skipped]).
func Alone(request, reply *capture.Decoded, path string) (*Recording, error) {
	x, ok := exchange(request, path)
	if !ok {
		return nil, &Error{Code: Nothing}
	}
	if reply != nil && reply.Whole() {
		x.answer(reply)
	}
	return &Recording{Exchanges: []RecordedExchange{*x}, CutAt: -1}, nil
}

// Once sends the first request to a URL: over a stream, or as plain SOAP. Errors: those of
// [Recording.Target], of a negotiation that finds no hhfr, and of sending.
func (r *Recording) Once(ctx context.Context, to *url.URL, hhfr bool) (out Outcome, err error) {
	if err := r.Target(to); err != nil {
		return out, err
	}
	cfg := session.Config{RequireHHFR: hhfr}
	if !hhfr {
		cfg.Transports = map[string]streamer.Transport{}
	}
	s, err := session.Dial(ctx, r.Offer(to).String(), cfg)
	if err != nil {
		return out, err
	}
	for out = range r.Run(ctx, s, RunConfig{InFlight: 1}) {
		break
	}
	if err := s.Close(); out.Incoming == nil {
		if err == nil {
			err = context.Cause(ctx)
		}
		return out, err
	}
	return out, out.Err
}

package session

import (
	"context"

	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// judge classifies the outcome of an exchange on a stream that had a body; nil: none that is kept.
// unsent: the exchange did not take place, and the next path is to be tried.
func (r *runner) judge(
	ctx context.Context, l *sessionStream, body *httpmsg.KeptBody, err error,
) (unsent bool, _ error) {
	switch {
	case err == nil:
		r.carried()
		return false, nil
	case ctx.Err() != nil:
		return false, err
	case streamFailed(err, streamer.FateUnknown):
		if l.stream.Over() {
			r.lost(l)
		}
		return false, coded(negotiate.FateUnknown, err)
	case streamFailed(err, streamer.Unsent) && body != nil && body.Failed():
		return false, coded(negotiate.Unsent, err) // no fault of the stream
	case streamFailed(err, streamer.Unsent):
		r.lost(l)
		return true, nil
	}
	return false, err
}

// carried records that a stream carried a message.
func (r *runner) carried() {
	if !r.failing.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.step(machine.Carried{})
}

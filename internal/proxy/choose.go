package proxy

import (
	"errors"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// choose waits for the next request of a client, which may be the first one of its connection. Who
// goes there leaves the upstream. Without one there is no request, or it goes nowhere: refusal is
// the reply to it then, if there is to be one.
func (f *front) choose(in *sock.Source, first bool) (to *upstream, j journey, refusal []byte) {
	for f.p.ctx.Err() == nil {
		raw := false
		if to = f.routes().only(); to == nil {
			if to, raw, refusal = f.chooseByHead(in, first); to == nil {
				return nil, j, refusal
			}
		}
		if to.use.enter() {
			stays := func(h *http1.Head) bool { return !f.p.isDraining() && f.routes().take(h) == to }
			byHead := func() bool { return f.routes().areByHead() }
			return to, journey{stays, byHead, f.p.isDraining, !f.p.routed.Load(), raw}, nil
		}
	}
	return nil, j, nil
}

// chooseByHead waits for the whole head of the next request of a client, and returns its upstream.
// A connection that begins with what is no HTTP goes as it is where no other route leads: raw.
func (f *front) chooseByHead(in *sock.Source, first bool) (to *upstream, raw bool, refusal []byte) {
	if said, _ := in.Wait(f.p.ctx, 0, f.p.cfg.Idle); len(said) == 0 {
		return nil, false, nil
	}
	ctx, cancel := f.p.headTime()
	defer cancel()
	h, _, st, err := readHead(ctx, in, 0, f.p.cfg.Pause, false)
	if st == statePaused && http1.MayBeRequest(in.Peek()) && !f.p.isDraining() {
		h, _, st, err = readHead(ctx, in, 0, 0, false)
	}
	if st == stateWhole && isFramed(&h) {
		if to = f.routes().take(&h); to == nil {
			return nil, false, unreachable(f.p.noRoute(destination(&h)))
		}
		return to, false, nil
	}
	status, text := http.StatusBadRequest, "the head of this request is not valid"
	switch isRequest := http1.MayBeRequest(in.Peek()); {
	case first && !isRequest:
		return f.routes().others(), true, nil
	case !isRequest:
		return nil, false, nil
	case st == stateWhole:
		text = "it is not clear where this request ends"
	case st == statePaused:
		status, text = http.StatusRequestTimeout, "the head of this request did not come in time"
	case st == stateEnded:
		text = "the connection ended in the head of this request"
	case errors.Is(err, &http1.Error{Code: http1.TooLarge}):
		status, text = http.StatusRequestHeaderFieldsTooLarge, "the head of this request is too long"
	}
	return nil, false, errorReply(status, "hhfr: "+text+"; it was not sent")
}

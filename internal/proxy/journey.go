package proxy

import (
	"context"
	"errors"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
)

// journey is where the next request of a client goes.
type journey struct {
	to *upstream // left by who goes there
	// stays reports whether a further request goes there, too; nil: all do.
	stays func(*http1.Head) bool
	// byHead reports whether that depends on its head; nil: never.
	byHead func() bool
	// ends reports whether no further request goes anywhere; nil: never.
	ends func() bool
	// whole: all bytes of the connection go there, if they go plainly.
	whole bool
	// raw: what comes is no HTTP, and goes there as it is.
	raw bool
}

// isByHead reports whether each request goes where its head says: nothing but a request goes to the
// upstream then, since what follows it may be for another one, with credentials.
func (j *journey) isByHead() bool { return !j.raw && j.byHead != nil && j.byHead() }

// isOver reports whether what has come next is not to go there, or not known to.
func (j *journey) isOver(st waitResult, h *http1.Head, in *sock.Source) bool {
	switch {
	case st == stateWhole && j.isByHead() && !isFramed(h):
		return true
	case st == stateWhole:
		return j.stays != nil && !j.stays(h)
	}
	return len(in.Peek()) > 0 && (j.isByHead() || j.ends != nil && j.ends())
}

// isFramed reports whether it is known where a request with this head ends.
func isFramed(h *http1.Head) bool {
	_, err := http1.RequestFraming(h)
	return err == nil
}

// choose waits for the next request of a client, which may be the first one of its connection.
// Without an upstream there is no request, or it goes nowhere: refusal is the reply to it then, if
// there is to be one.
func (f *front) choose(in *sock.Source, first bool) (j journey, refusal []byte) {
	for f.p.ctx.Err() == nil {
		to, raw := f.routes().only(), false
		if to == nil {
			if to, raw, refusal = f.chooseByHead(in, first); to == nil {
				return j, refusal
			}
		}
		if to.use.enter() {
			stays := func(h *http1.Head) bool { return !f.p.isDraining() && f.routes().take(h) == to }
			return journey{to, stays, f.isByHead, f.p.isDraining, !f.p.routed.Load(), raw}, nil
		}
	}
	return j, nil
}

// headTime is the time of a head as a whole, however slowly it comes: waits that last longer end
// like those that pause.
func (p *core) headTime() (ctx context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(p.ctx)
	timer := p.cfg.Clock.AfterFunc(p.cfg.HeadTime, func() { end(sock.ErrPaused) })
	return ctx, func() {
		timer.Stop()
		end(nil)
	}
}

// isByHead reports whether each request goes where its head says; in a listener without routes none
// goes anywhere.
func (f *front) isByHead() bool { return f.routes().only() == nil }

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

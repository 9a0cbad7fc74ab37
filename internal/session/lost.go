package session

import (
	"context"
	"errors"
	"slices"

	"github.com/hhfr/hhfr/internal/session/machine"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// lost records that a stream takes no more messages: it is replaced, or plain SOAP comes next.
func (r *runner) lost(l *sessionStream) {
	err := l.stream.Err()
	why := "the stream ended"
	if err != nil {
		why += ": " + err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != l || r.machine.Phase() != machine.Streaming {
		return
	}
	r.nodes.leave(l.url)
	r.agreed.Why = why
	for _, a := range r.step(l.ending(err, r.outbox)) {
		switch a.Do {
		case machine.Undo:
			r.log.Info("session not joined again", "err", err)
			r.unmet()
			r.link = nil
		case machine.Leave:
			r.link = nil
			r.wait.Go(func() { l.used.keep(r.dialer, r.url) })
		case machine.Replace:
			again, found := context.WithCancel(context.Background())
			r.again, r.found = again.Done(), found
			r.wait.Go(func() { r.reconnect(a.Careful, found) })
		default:
			r.plain(a, errors.New(why))
		}
	}
}

// ending is what the machine knows of the end of a stream.
func (l *sessionStream) ending(err error, q *outbox) machine.Lost {
	e := machine.Lost{
		Stream:      l.number,
		Met:         isMet(l.stream),
		Refused:     isRefused(err),
		Unconnected: dialError(err) != nil,
		Beyond:      streamFailed(err, streamer.BeyondLimits),
		Broken:      err != nil && !streamFailed(err, streamer.GoingAway),
		Declared:    l.agreed.Mode == negotiate.Declared,
		ByCalls:     l.onePath,
	}
	if q != nil {
		st := q.sequence().Status()
		e.Progress = int64(st.Done+st.Received) - st.GivenUp
	}
	return e
}

// unmet undoes what was agreed for a stream that the peer never accepted. mu is locked.
func (r *runner) unmet() {
	tried := slices.Clone(r.agreed.Tried)
	if len(tried) > 0 {
		tried[len(tried)-1].Why = r.agreed.Why
	}
	if r.machine.Met() {
		r.agreed.Tried = tried // it had a stream before
		return
	}
	r.agreed = negotiate.Agreed{Why: r.agreed.Why, Tried: tried}
}

// reconnect continues the session over another stream, or turns it to plain SOAP. It calls found
// when that is done.
func (r *runner) reconnect(careful bool, found func()) {
	r.mu.Lock()
	broken := r.link
	r.mu.Unlock()
	if broken != nil {
		broken.used.keep(r.dialer, r.url)
	}
	n, end, err := r.attempt(r.ctx, careful, true)
	if err == nil {
		r.install(n)
		n.log.Info("a stream again", "session", n.agreed.Facts.Session.String())
		return
	}
	r.adopt(n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if end.Do == 0 { // the session is closed, or a call that was in flight has opened a stream
		found()
		return
	}
	r.agreed.Why += "; " + err.Error()
	r.agreed.Answer, r.agreed.Refused = n.agreed.Answer, n.agreed.Refused
	r.plain(end, errors.New(r.agreed.Why))
}

// plain reports, beside what goes on, that plain SOAP is spoken from now on, or ends the sequence.
// mu is locked.
func (r *runner) plain(a machine.Task, why error) {
	r.agreed.Why = why.Error()
	if a.Do == machine.Settle {
		r.log.Info("plain SOAP", "why", why)
	}
	found := r.found
	r.wait.Go(func() {
		switch a.Do {
		case machine.EndSequence:
			r.outbox.close()
		case machine.Fall:
			r.log.Warn("plain SOAP from now on", "why", why)
			fallthrough
		default:
			r.tell()
			if a.Remember {
				ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Timeout)
				r.dialer.remember(ctx, r.url, why)
				cancel()
			}
		}
		found()
	})
}

package proxy

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/oneport"
	"github.com/hhfr/hhfr/internal/sock"
)

// serveClient serves one connection of a client to its end: offers are answered, all else is
// forwarded. A connection that was silent for long may still become a stream.
func (f *front) serveClient(conn net.Conn) {
	if stream := f.serveHTTP(conn); stream != nil {
		f.serveStream(stream)
	}
}

// serveHTTP serves a connection of a client to its end, nil, or until it becomes a stream.
func (f *front) serveHTTP(conn net.Conn) (stream net.Conn) {
	p := f.p
	in := p.newSource(conn)
	p.clients.add(in)
	defer p.clients.remove(in)
	defer func() {
		if stream == nil {
			_ = in.Conn.Close()
		}
	}()
	// A client in the middle of a reply when the proxy closes must not see an orderly end: this
	// ends the waiting, and the writer ends the connection. A stream ends in order.
	undo := context.AfterFunc(p.ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer undo()
	silence := p.cfg.Silence
	if oneport.Silent(conn) {
		silence = -1 // that is over
	}
	switch said, err := in.Wait(p.ctx, 0, silence); {
	case errors.Is(err, sock.ErrPaused):
		if stream, over := f.silent(in); over || stream != nil {
			return stream
		}
	case len(said) == 0: // nobody opens a connection to the upstream for it
		return nil
	}
	if p.ctx.Err() != nil {
		return nil
	}
	if f.contexts.serve(in) {
		return nil
	}
	for answered := f.responder != nil; answered; {
		var last bool
		var err error
		taken := func() {
			undo()
			p.clients.remove(in)
		}
		if answered, last, err = f.answer(in, taken); err != nil {
			return nil
		}
		if last {
			sock.Finish(p.ctx, in)
			return nil
		}
		if answered {
			// A peer that makes offers keeps its connection open, and may send nothing more on it.
			if data, _ := in.Wait(p.ctx, 0, p.cfg.Idle); len(data) == 0 {
				return nil
			}
		}
	}
	f.forward(in, true)
	return nil
}

// silent serves a client that has sent nothing for long. Its server may speak first, if one route
// takes everything; with several it is not known which server that is. It returns the connection if
// it is a stream after all, and reports whether it is over.
func (f *front) silent(in *sock.Source) (stream net.Conn, over bool) {
	if to := f.routes().only(); to != nil && !to.cfg.RequireStream && to.use.enter() {
		defer to.use.leave()
		return to.plain.plainOrStream(in, nil, plainSilent, f.isLateStream), true
	}
	if f.isLateStream(f.p.ctx, in) {
		return oneport.GiveBack(in), true
	}
	return nil, false
}

// forward sends a connection's bytes to the upstreams of its requests. first: what comes next is
// what the client began with.
func (f *front) forward(in *sock.Source, first bool) {
	for again := true; again; first = false {
		to, j, refusal := f.choose(in, first)
		if f.p.isDraining() { // it may not have been looked where this goes
			f.drained(in, to)
			return
		}
		if to == nil {
			if said := in.Peek(); len(refusal) > 0 && len(said) > 0 {
				f.p.countRefused(f.p.cfg.Meter.Near.Upstream(meter.Other), plainNoRoute, in, said, refusal)
			}
			_, _ = in.Conn.Write(refusal)
			sock.Finish(f.p.ctx, in)
			return
		}
		again = to.carry(in, j)
		to.use.leave()
	}
}

// drained tells a client whose next request came while the proxy shuts down; to is where it would
// have gone, nil if that is not known.
func (f *front) drained(in *sock.Source, to *upstream) {
	f.p.refused.Add(1)
	count := f.p.cfg.Meter.Near.Upstream(meter.Other)
	if to != nil {
		count = to.near
		to.use.leave()
	}
	if said, _ := in.Wait(f.p.ctx, 0, f.p.cfg.Silence); http1.LooksLikeStart(said) {
		reply := busyReply(drainingText)
		f.p.countRefused(count, plainDraining, in, said, reply)
		_, _ = in.Conn.Write(reply)
	}
	sock.Finish(f.p.ctx, in)
}

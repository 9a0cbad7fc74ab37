package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// write writes the replies to the client, and says how the connection ended; it goes on if its next
// request goes elsewhere.
func (c *caller) write() fate {
	over := c.l.stream.Done()
	ready := c.ready
	var held *upstreamEnd
	var late <-chan time.Time
	for {
		if held != nil {
			if c.progress.mayEnd(held) {
				_, err := c.in.Conn.Write(held.octets)
				return inOrder(err == nil && !held.broken)
			}
			if held.idle {
				held = nil
			}
		}
		select {
		case <-ready:
			more, end, isOver := c.serveReady()
			switch {
			case isOver:
				return end
			case more:
				continue
			}
			// the client has ended its direction, and waits for the upstream's reaction
			if c.progress.calls() == 0 {
				return inOrder(c.progress.close()) // there is none
			}
			timer := c.p.cfg.Clock.NewTimer(c.p.cfg.Idle)
			defer timer.Stop()
			ready, late = nil, timer.C()
		case e := <-c.over:
			held = &e
		case <-over:
			if ready == nil {
				return endBroken
			}
			over = nil // the next call detects it
		case <-late:
			return inOrder(c.progress.close())
		case <-c.ctx.Done():
			return inOrder(c.progress.close())
		}
	}
}

// serveReady completes the calls that have begun; more: others may. over: the connection ends.
func (c *caller) serveReady() (more bool, end fate, over bool) {
	c.quick.completing.Lock()
	defer c.quick.completing.Unlock()
	if x := c.quick.taken; x != nil {
		c.quick.taken = nil
		if end := c.complete(x); end != goOn {
			return true, end, true
		}
	}
	for {
		select {
		case x, more := <-c.calls:
			switch {
			case !more && c.readEnd.moves:
				return false, goOn, true
			case !more && c.readEnd.inOrder:
				return false, inOrder(c.progress.close()), true
			case !more:
				return false, goOn, false
			}
			if end := c.complete(x); end != goOn {
				return true, end, true
			}
		default:
			return true, goOn, false
		}
	}
}

// complete serves a call to its end.
func (c *caller) complete(x *pendingCall) fate {
	serve := c.serve
	if x.delivered {
		serve = c.deliverRest
	}
	end := serve(x)
	if end != goOn {
		x.seen.told(c.told)
		x.ended(x.replied)
		x.decide()
		return end
	}
	c.completed(x)
	return goOn
}

// completed is called when a call is complete, and the connection goes on.
func (c *caller) completed(x *pendingCall) {
	x.ended(x.replied)
	x.decide()
	ends := c.progress.finish()
	c.p.calls.Add(-1)
	if ends {
		c.wake()
	}
	select {
	case c.done <- struct{}{}:
	default:
	}
}

// serve completes one call.
func (c *caller) serve(x *pendingCall) fate {
	if x.err != nil {
		return c.failed(x, x.err)
	}
	for {
		m, err := x.next(c.ctx)
		if err != nil {
			return c.failed(x, err)
		}
		x.seen.since = c.p.cfg.Clock.Now()
		end := c.deliver(x, m)
		closeBody(m.Body)
		if !m.Interim || end != goOn {
			return end
		}
	}
}

// deliver writes one reply to the client.
func (c *caller) deliver(x *pendingCall, m *streamer.Message) fate {
	what, err := parse(m.Head)
	switch {
	case err != nil || what.kind == none:
		c.p.cfg.Log.Warn("reply of the far proxy", "lane", c.number, "err", err)
		return c.tellWhy(errorReply(http.StatusBadGateway, "hhfr: the far proxy replied with what is no reply; "+
			"whether the request was processed is unknown"))
	case m.Interim:
		if _, err := x.out.Write(what.head.Octets); err != nil {
			return endBroken
		}
		x.interim = true
		return goOn
	case what.kind != whole && what.kind != rest:
		x.decide()
		x.out.odd = true
		err := copyMessage(&x.out, nil, m, nil)
		switch {
		case err != nil || what.kind == broken:
			return endBroken
		case x.method == "":
			return c.outlive()
		}
		return endInOrder
	}
	f, err := http1.ReplyFraming(&what.head, x.method)
	x.becomes = err == nil && f.Kind == http1.Tunnel
	x.decide()
	return c.reply(x, m, &what, f)
}

// reply writes the final reply. If it is not whole, or is delimited by the end of the connection,
// it ended with the upstream's connection, and so does the client's.
func (c *caller) reply(x *pendingCall, m *streamer.Message, what *controlMessage, f http1.Framing) fate {
	c.progress.reply()
	x.seen.replies(&what.head, len(what.head.Octets))
	if what.coding != nil { // it is coded again as it is written
		x.seen.reply.head = 0
		m.Body = &lookedBody{m.Body, &x.seen}
	}
	if what.isMade() {
		err := copyFramed(&x.out, what, m, c.p.cfg.MaxBuffer+maxWhole)
		if x.replied = err == nil || c.isLeft(err); err != nil {
			return endBroken
		}
		return c.behindReply(&what.head)
	}
	b := http1.NewBody(f)
	err := copyRest(&x.out, what, m, b)
	if err != nil {
		x.replied = c.isLeft(err)
		return endBroken
	}
	x.replied = b.Done() || f.Kind == http1.UntilClose
	switch {
	case f.Kind == http1.Tunnel:
		return c.outlive()
	case b.Done():
		return c.behindReply(&what.head)
	}
	return endInOrder
}

// isLeft reports whether a reply came to its end because the client took no more of it: many close
// when they have understood it, before its last chunk. Nothing has failed then. One that stood
// still has not left.
func (c *caller) isLeft(err error) bool {
	return c.p.ctx.Err() == nil && !c.out.HasStalled() && (c.ctx.Err() != nil || errors.Is(err, errUntaken))
}

// behindReply ends the connection after a reply that says so, if no other call is in progress: the
// far end does not report that the upstream has closed then.
func (c *caller) behindReply(h *http1.Head) fate {
	if isLast(h) && c.progress.closeBehind() {
		return endInOrder
	}
	return goOn
}

// outlive ends a tunnel whose server sends no more: the client may still send for a while.
func (c *caller) outlive() fate {
	_ = sock.CloseWrite(c.in.Conn)
	defer c.p.cfg.Clock.AfterFunc(halfOpen, c.halt).Stop()
	for x := range c.calls {
		_ = x.giveUp(c.ctx)
		x.ended(false)
	}
	return endInOrder
}

// failed ends the connection after a call that failed on the stream, or continues plainly if
// nothing of it was sent.
func (c *caller) failed(x *pendingCall, err error) fate {
	if c.ctx.Err() != nil {
		return endBroken
	}
	c.p.cfg.Log.Info("call not through", "lane", c.number, "err", err)
	switch {
	case x.invalid:
		return c.tellWhy(errorReply(http.StatusBadRequest, invalidText))
	case x.interim:
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		c.l.retire()
		return c.plainly(x)
	case errors.Is(err, &streamer.Error{Code: streamer.Unprocessed}),
		errors.Is(err, &streamer.Error{Code: streamer.Busy}):
		return c.tellWhy(busyReply(noRoomText))
	}
	return c.tellWhy(errorReply(http.StatusBadGateway, unknownText))
}

// plainly sends to the upstream, as plain HTTP, everything of which nothing was sent, and all that
// the client sends from now on. If that is not possible for one of the calls, all of them end.
func (c *caller) plainly(x *pendingCall) fate {
	c.halt()
	calls := []*pendingCall{x}
	for x := range c.calls { // pipelined requests were not sent either: the stream ended before them
		calls = append(calls, x)
	}
	for i, x := range calls {
		excuse := ""
		switch {
		case i > 0 && !errors.Is(x.giveUp(c.ctx), &streamer.Error{Code: streamer.Unsent}):
			excuse = unknownText
		case x.err == nil && x.raw == nil:
			excuse = unsentText
		default:
			continue
		}
		c.cancel() // nobody waits for those behind it
		end := c.tellWhy(errorReply(http.StatusBadGateway, excuse))
		for j, x := range calls {
			if j > i {
				_ = x.giveUp(c.ctx)
			}
			x.seen.told(c.told)
			x.ended(false)
		}
		return end
	}
	for _, x := range calls {
		x.seen.Drop() // it counts as forwarded plainly
	}
	if c.l.u.plainly(c.in, calls, plainLost, c.way) {
		return goOn
	}
	return endInOrder
}

const unknownText = "hhfr: the connection to the far proxy ended before the reply; " +
	"whether the request was processed is unknown, and it is not sent again"

const unsentText = "hhfr: the connection to the far proxy ended; the request was not sent"

// tellWhy tells the client why there is no reply, and ends its connection.
func (c *caller) tellWhy(reply []byte) fate {
	c.told = reply
	if _, err := c.in.Conn.Write(reply); err != nil {
		return endBroken
	}
	return endInOrder
}

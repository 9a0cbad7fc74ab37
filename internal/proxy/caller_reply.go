package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// write writes the replies to the client. It reports whether the connection ended in order.
func (c *caller) write() (inOrder bool) {
	over := c.l.stream.Done()
	calls := c.calls
	var held *upstreamEnd
	var late <-chan time.Time
	for {
		if held != nil {
			if c.mayEnd(held) {
				_, err := c.in.Conn.Write(held.octets)
				return err == nil && !held.broken
			}
			if held.idle {
				held = nil
			}
		}
		select {
		case x, more := <-calls:
			if !more { // the client has ended its direction, and waits for the upstream's reaction
				if !c.hasCalled() {
					return c.idle() // there is none
				}
				timer := c.p.cfg.Clock.NewTimer(c.p.cfg.Idle)
				defer timer.Stop()
				calls, late = nil, timer.C()
				continue
			}
			end := c.serve(x)
			x.decide()
			if end != goOn {
				return end == endInOrder
			}
			c.mu.Lock()
			c.finished++
			c.mu.Unlock()
			c.p.calls.Add(-1)
		case e := <-c.over:
			held = &e
		case <-over:
			if calls == nil {
				return false
			}
			over = nil // the next call detects it
		case <-late:
			return c.idle()
		case <-c.ctx.Done():
			return c.idle()
		}
	}
}

// mayEnd reports whether the connection must end because the upstream has: not while a call is in
// progress, nor if one was in transit when the far end reported it. The far end has then opened
// another connection for that call.
func (c *caller) mayEnd(e *upstreamEnd) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = c.finished == c.begun && (e.idle || e.calls == c.begun)
	return c.closing
}

// idle reports whether no call is in progress, and lets none begin: a connection that the proxy
// then closes ends in order.
func (c *caller) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	return c.finished == c.begun
}

// fate is the outcome for the connection after a call.
type fate uint8

const (
	goOn fate = iota
	endInOrder
	endBroken
)

// serve completes one call.
func (c *caller) serve(x *pendingCall) fate {
	if x.err != nil {
		return c.failed(x, x.err)
	}
	for {
		m, err := x.pending.Next(c.ctx)
		if err != nil {
			return c.failed(x, err)
		}
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
		return c.excuse(http.StatusBadGateway, "hhfr: the far proxy replied with what is no reply; "+
			"whether the request was processed is unknown")
	case m.Interim:
		if _, err := c.p.patient(c.in.Conn).Write(what.head.Octets); err != nil {
			return endBroken
		}
		x.interim = true
		return goOn
	case what.kind != whole && what.kind != rest:
		x.decide()
		err := copyBody(c.p.patient(c.in.Conn), m.Body, nil)
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
	return c.reply(m, &what, f)
}

// reply writes the final reply. If it is not whole, or is delimited by the end of the connection,
// it ended with the upstream's connection, and so does the client's.
func (c *caller) reply(m *streamer.Message, what *controlMessage, f http1.Framing) fate {
	client := c.p.patient(c.in.Conn)
	if what.framing != nil {
		entity, err := m.ReadAll(int64(c.p.cfg.MaxBuffer) + maxWhole)
		if err == nil {
			_, err = client.Write(what.framing.AppendTo(what.head.Octets, entity))
		}
		if err != nil {
			return endBroken
		}
		return goOn
	}
	if _, err := client.Write(what.head.Octets); err != nil {
		return endBroken
	}
	b := http1.NewBody(f)
	if err := copyBody(client, m.Body, b); err != nil {
		return endBroken
	}
	switch {
	case f.Kind == http1.Tunnel:
		return c.outlive()
	case b.Done():
		return goOn
	}
	return endInOrder
}

// outlive ends a tunnel whose server sends no more: the client may still send for a while.
func (c *caller) outlive() fate {
	_ = sock.CloseWrite(c.in.Conn)
	defer c.p.cfg.Clock.AfterFunc(halfOpen, c.halt).Stop()
	for x := range c.calls {
		_ = c.giveUp(x)
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
	case x.interim:
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		c.l.retire()
		return c.plainly(x)
	case errors.Is(err, &streamer.Error{Code: streamer.Unprocessed}),
		errors.Is(err, &streamer.Error{Code: streamer.Busy}):
		return c.excuse(http.StatusServiceUnavailable, noRoomText)
	}
	return c.excuse(http.StatusBadGateway, unknownText)
}

// plainly sends to the upstream, as plain HTTP, everything of which nothing was sent, and all that
// the client sends from now on.
func (c *caller) plainly(x *pendingCall) fate {
	c.halt()
	var raw []byte
	calls := []*pendingCall{x}
	for x := range c.calls { // pipelined requests were not sent either: the stream ended before them
		calls = append(calls, x)
	}
	for i, x := range calls {
		if i > 0 {
			if err := c.giveUp(x); !errors.Is(err, &streamer.Error{Code: streamer.Unsent}) {
				return c.excuse(http.StatusBadGateway, unknownText)
			}
		}
		if x.err == nil && x.raw == nil {
			return c.excuse(http.StatusBadGateway, unsentText)
		}
		raw = append(raw, x.raw...)
	}
	c.p.plain(c.in, raw)
	return endInOrder
}

const unknownText = "hhfr: the connection to the far proxy ended before the reply; " +
	"whether the request was processed is unknown, and it is not sent again"

const unsentText = "hhfr: the connection to the far proxy ended; the request was not sent"

// excuse tells the client why there is no reply, and ends its connection.
func (c *caller) excuse(status int, text string) fate {
	if _, err := c.in.Conn.Write(errorReply(status, text)); err != nil {
		return endBroken
	}
	return endInOrder
}

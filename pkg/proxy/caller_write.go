package proxy

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/pkg/streamer"
)

// write writes the replies to the client. It tells whether the connection ended in order.
func (c *caller) write() (inOrder bool) {
	stream := c.l.stream.Done()
	calls := c.calls
	var held *upstreamEnd
	var late <-chan time.Time
	for {
		if held != nil {
			if c.mayEnd(held) {
				_, err := c.in.conn.Write(held.octets)
				return err == nil && !held.broken
			}
			if held.idle {
				held = nil
			}
		}
		select {
		case x, more := <-calls:
			if !more { // the client has ended its direction, and waits for what the upstream makes of it
				if !c.hasCalled() {
					return c.idle() // there is none
				}
				timer := c.p.cfg.Clock.NewTimer(c.p.cfg.Idle)
				defer timer.Stop()
				calls, late = nil, timer.C()
				continue
			}
			if end := c.serve(x); end != goOn {
				return end == endInOrder
			}
			c.mu.Lock()
			c.finished++
			c.mu.Unlock()
			c.p.calls.end(1)
		case e := <-c.over:
			held = &e
		case <-stream:
			if calls == nil || len(c.calls) == 0 && c.in.over() {
				return false
			}
			stream = nil // the next call finds out
		case <-late:
			return c.idle()
		case <-c.ctx.Done():
			return c.idle()
		}
	}
}

// mayEnd tells whether the connection is to end since the upstream has: not while a call is under way, nor if one was on its way when the far end said so, which has opened
// another connection for it.
func (c *caller) mayEnd(e *upstreamEnd) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = c.finished == c.begun && (e.idle || e.calls == c.begun)
	return c.closing
}

// idle tells whether no call is under way, and lets none begin: a connection that the proxy closes then ends in order.
func (c *caller) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closing = true
	return c.finished == c.begun
}

// fate is what becomes of the connection after a call.
type fate uint8

const (
	goOn fate = iota
	endInOrder
	endBroken
)

// serve sees one call through.
func (c *caller) serve(x *call) fate {
	if x.err != nil {
		return c.failed(x, x.err)
	}
	m, err := x.reply(c.ctx)
	if err != nil {
		return c.failed(x, err)
	}
	if x.tunnel {
		if k, end := c.deliver(x, m); end != goOn || k != void {
			return end
		}
		return c.poll(x, true)
	}
	k, end := c.deliver(x, m)
	if end == goOn && (k == piece || k == interim || k == switched) {
		return c.poll(x, k == switched)
	}
	return end
}

// deliver writes one reply, or piece of one, to the client.
func (c *caller) deliver(x *call, m *streamer.Message) (kind, fate) {
	defer closeBody(m.Body)
	what, err := parse(m.Head)
	if err != nil || what.kind == none {
		c.p.cfg.Log.Warn("reply of the far proxy", "lane", c.number, "err", err)
		return 0, c.excuse(http.StatusBadGateway, "hhfr: the far proxy replied with what is no reply; whether the request was processed is unknown")
	}
	if what.kind != void || x.tunnel {
		x.decide(what.kind)
	}
	client := c.p.patient(c.in.conn)
	if _, err := client.Write(what.head); err != nil {
		return what.kind, endBroken
	}
	next := goOn
	if what.kind == whole && x.untilClose(what.head) {
		next = endInOrder
	}
	if what.framing != nil {
		entity, err := m.ReadAll(int64(c.p.cfg.MaxBuffer) + maxWhole)
		if err == nil {
			_, err = client.Write(what.framing.appendTo(nil, entity))
		}
		if err != nil {
			return what.kind, endBroken
		}
		return what.kind, next
	}
	if m.Body != nil {
		if _, err := io.Copy(client, m.Body); err != nil {
			return what.kind, endBroken
		}
	}
	switch what.kind {
	case ended:
		return what.kind, endInOrder
	case broken:
		return what.kind, endBroken
	}
	return what.kind, next
}

// poll asks for the rest of a reply, piece by piece, until it is through; of a tunnel until it ends. It asks ahead, so more polls may be under way than the reply has pieces: those are
// kept, since the far end may have the next reply's pieces for them by the time they come there.
func (c *caller) poll(x *call, forever bool) fate {
	early := len(c.polls) // begun before this reply, and void if they came before it
	for ahead := 1; ; {
		for len(c.polls) < ahead {
			p, err := c.lane.Begin(c.ctx, &streamer.Message{Head: line(poll)})
			if err != nil {
				return c.failed(x, err)
			}
			c.polls = append(c.polls, p)
		}
		p := c.polls[0]
		c.polls = c.polls[1:]
		m, err := p.Reply(c.ctx)
		if err != nil {
			return c.failed(x, err)
		}
		k, end := c.deliver(x, m)
		early--
		switch {
		case end != goOn:
			return end
		case k == switched && !forever:
			forever = true
		case k == piece:
			ahead = window // more than one round trip's worth may be there
		case k == interim:
		case k == void && early >= 0:
		case k == void: // the far end has given up the reply, so what comes next is not its rest
			return c.abandoned(x)
		case forever:
			return endInOrder
		default:
			return goOn
		}
	}
}

// failed ends the connection for a call that the stream did not see through, or goes on plainly if nothing of it was sent.
func (c *caller) failed(x *call, err error) fate {
	if c.ctx.Err() != nil {
		return endBroken
	}
	c.p.cfg.Log.Info("call not through", "lane", c.number, "err", err)
	x.mu.Lock()
	begun, interim := x.final, x.interim
	x.mu.Unlock()
	switch {
	case begun: // the client has some of the reply
		return endBroken
	case interim: // what failed is a poll; the request went before
	case errors.Is(err, &streamer.Error{Code: streamer.Unsent}):
		c.l.retire()
		return c.plainly(x)
	case errors.Is(err, &streamer.Error{Code: streamer.Unprocessed}), errors.Is(err, &streamer.Error{Code: streamer.Busy}):
		return c.excuse(http.StatusServiceUnavailable, noRoomText)
	}
	return c.excuse(http.StatusBadGateway, unknownText)
}

// abandoned ends the connection for a call whose reply will not come, or not as a whole.
func (c *caller) abandoned(x *call) fate {
	x.mu.Lock()
	begun := x.final
	x.mu.Unlock()
	if begun {
		return endBroken
	}
	return c.excuse(http.StatusBadGateway, unknownText)
}

// plainly has the upstream get, as plain HTTP, what no octet was sent of, and all that the client sends from now on.
func (c *caller) plainly(x *call) fate {
	c.halt()
	var raw []byte
	calls := []*call{x}
	for x := range c.calls { // requests on its heels were not sent either: the stream was over before them
		calls = append(calls, x)
	}
	for _, x := range calls {
		if x.err != nil {
			continue // its octets lie in the inlet still
		}
		if x != calls[0] && !errors.Is(c.giveUp(x), &streamer.Error{Code: streamer.Unsent}) {
			return c.excuse(http.StatusBadGateway, unknownText)
		}
		if x.raw == nil {
			return c.excuse(http.StatusBadGateway, unsentText)
		}
		raw = append(raw, x.raw...)
	}
	c.p.plain(c.in, raw)
	return endInOrder
}

const unknownText = "hhfr: the connection to the far proxy ended before the reply; whether the request was processed is unknown, and it is not sent again"

const unsentText = "hhfr: the connection to the far proxy ended; the request was not sent"

// excuse tells the client why there is no reply, and ends its connection.
func (c *caller) excuse(status int, text string) fate {
	if _, err := c.in.conn.Write(errorReply(status, text)); err != nil {
		return endBroken
	}
	return endInOrder
}

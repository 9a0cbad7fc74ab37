package proxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/principal"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// request begins the exchange of one request whose head is in the source; false: there is no next
// one.
func (c *caller) request(h *http1.Head, n int) bool {
	f, err := http1.RequestFraming(h)
	if err != nil {
		c.tunnel()
		return false
	}
	if without := withoutHTTP2(h); without != nil {
		h = without
	}
	_, upgrade := h.Get("Upgrade")
	upgrade = upgrade || string(h.Method()) == http.MethodConnect
	expects := f.Kind != http1.NoBody && slices.Contains(h.Tokens("Expect"), "100-continue")
	x := c.newCall(string(h.Method()), upgrade || expects)
	there := c.in.Peek()[n:]
	switch {
	case upgrade:
	case f.Kind == http1.NoBody:
		return c.whole(x, h, n, "\n", nil, 0)
	case f.Kind == http1.Length && f.Length <= int64(len(there)):
		return c.whole(x, h, n, "\n", [][]byte{there[:f.Length]}, int(f.Length))
	}
	own, g, st := h.Clone(), gathered{}, stateFull // what follows may wait
	var release func()
	if !upgrade && !expects {
		g, st, release = c.p.gather(c.reading, c.in, n, &own, f)
		defer release()
		if st == stateWhole {
			return c.whole(x, &own, n, g.line(), g.entity(), g.octets)
		}
	}
	line := "\n"
	if upgrade || f.Kind == http1.Chunked {
		line = restLineOf(g.size)
	}
	a := c.p.arriving(&own, f, line, g.size, st)
	a.drained = release
	return c.open(x, &own, n, line, a, upgrade, expects)
}

// whole begins a call whose body of n raw bytes is complete.
func (c *caller) whole(x *pendingCall, h *http1.Head, n int, line string, entity [][]byte, octets int) bool {
	head, entity := partsOf(c.coded, h, line, entity)
	if sizeOf(entity) <= inlineBody {
		body := joined(entity)
		x.seen.look(h, body)
		raw := bytes.Clone(c.in.Peek()[:n+octets])
		begin := c.lane.BeginNow
		if len(c.in.Peek()) > len(raw) {
			begin = c.lane.Begin // the client sends several at once, which go together
		}
		c.begin(x, func() (err error) {
			if x.pending, err = begin(c.ctx, streamer.NewMessage(head, body)); err == nil {
				x.raw = raw
				x.seen.Request(len(raw))
				c.in.Take(len(raw))
			}
			return err
		})
		return x.err == nil
	}
	x.seen.look(h, entity[0])
	first := min(len(entity[0]), inlineBody)
	w := c.start(x, head, entity[0][:first], -1, false)
	if w == nil {
		return false
	}
	entity[0] = entity[0][first:]
	var err error
	for i := 0; i < len(entity) && err == nil; i++ {
		_, err = w.Write(entity[i])
	}
	endWriter(w, err)
	x.seen.Request(n + octets)
	c.in.Take(n + octets)
	return c.sent(err)
}

// open begins a call whose body is sent as it arrives.
func (c *caller) open(x *pendingCall, h *http1.Head, n int, line string, a arriving, upgrade, expects bool) bool {
	x.seen.look(h, c.in.Peek()[n:])
	flush := expects || a.headGoes(true, len(c.in.Peek())-n)
	w := c.start(x, withHead(h.Octets, line), nil, a.length(), flush)
	if w == nil {
		return false
	}
	x.seen.Request(n)
	c.in.Take(n)
	if expects && !c.continues(x) {
		_ = w.Close()
		return c.behind()
	}
	to, end := unframing(w, a.size)
	err := stream(c.reading, c.in, requestBodyMeter{to, x.pending, &x.seen}, a)
	end()
	switch {
	case err == nil && upgrade:
		return c.decided(x, w)
	case errors.Is(err, errOdd) && c.way.isByHead():
		x.invalid = true
		w.Abort(err)
		c.readEnd.inOrder = true
		return false
	}
	endWriter(w, err)
	return c.sent(err)
}

// continues waits for the beginning of a body whose client waits for 100 Continue. It is false if
// the final reply came instead: what the client sends now may be the body nevertheless, or the next
// request.
func (c *caller) continues(x *pendingCall) bool {
	_, _ = c.in.Wait(x.undecided, 0, 0)
	return x.undecided.Err() == nil || c.reading.Err() != nil || x.interim
}

// behind passes on bytes whose meaning is unknown: a body or a request.
func (c *caller) behind() bool {
	data, err := c.in.Wait(c.reading, 0, 0)
	switch {
	case len(data) == 0:
		c.clientEnded(err)
	case c.way.isByHead():
		c.readEnd.inOrder = true
	default:
		c.tunnel()
	}
	return false
}

// decided waits, where a request may turn the connection into a tunnel, for the outcome. A client
// that does not wait may speak HTTP or something else: what it sends is passed on unchanged, since
// the server may wait for it, or waits if it may be for another upstream.
func (c *caller) decided(x *pendingCall, w *streamer.Writer) bool {
	if err := w.Flush(); err != nil {
		return c.sent(errors.Join(errUntaken, err))
	}
	data, err := c.in.Wait(x.undecided, 0, 0)
	if len(data) > 0 && c.way.isByHead() {
		<-x.undecided.Done()
	}
	switch {
	case c.reading.Err() != nil:
		w.Abort(err)
		return false
	case x.undecided.Err() == nil:
		_ = w.Close()
		return c.behind()
	case x.becomes:
		err = stream(c.reading, c.in, requestBodyMeter{w, x.pending, &x.seen}, arriving{})
		endWriter(w, err)
		return c.sent(err)
	}
	_ = w.Close()
	return true
}

// sent continues after a body, according to its outcome; false: there is no next request.
func (c *caller) sent(err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, errOdd):
		c.tunnel()
	case errors.Is(err, errUntaken):
		c.p.cfg.Log.Debug("body not taken", "lane", c.number, "err", err)
		c.over.put(upstreamEnd{calls: c.progress.calls()}) // after the reply, if there is one
	case c.reading.Err() == nil:
		c.clientEnded(err)
	}
	return false
}

// start begins a call whose body is written, possibly with its first bytes; length is that of the
// body, -1 if it is not known. flush: this is sent to the far end at once. It is nil if that
// failed; what was to be sent is in the source still.
func (c *caller) start(x *pendingCall, head, first []byte, length int64, flush bool) (w *streamer.Writer) {
	c.begin(x, func() (err error) {
		if x.pending, w, err = c.lane.Start(c.ctx, head, length); err != nil {
			return err
		}
		if _, err = w.Write(first); err == nil && flush {
			err = w.Flush()
		}
		return err
	})
	if x.err != nil {
		return nil
	}
	return w
}

// begin begins a call. Its err, and errors of the writer, show whether that failed.
func (c *caller) begin(x *pendingCall, send func() error) {
	if x.err = c.enter(); x.err != nil {
		x.seen.Drop()
		return
	}
	if x.err = c.introduce(); x.err == nil {
		x.err = send()
	}
	if x.pending != nil {
		x.seen.bound(x.pending)
		x.seen.passed()
	}
	select {
	case c.calls <- x:
		if x.err == nil {
			x.pending.Notify(c.wake, c.quick.now)
		} else {
			c.wake()
		}
	case <-c.ctx.Done():
		_ = x.giveUp(c.ctx)
		x.ended(false)
	}
}

// tunnel sends all further bytes unchanged, and makes all further replies so.
func (c *caller) tunnel() {
	c.client.Key = principal.Key{} // anything may come, and nobody goes on behind it
	if c.progress.calls() > 0 {
		c.place.owner = principal.Key{}
	}
	x := c.newCall("", false)
	w := c.start(x, line(tunnel), nil, -1, true)
	if w == nil {
		return
	}
	err := stream(c.reading, c.in, requestBodyMeter{w, x.pending, &x.seen}, arriving{})
	endWriter(w, err)
	c.sent(err)
}

// newCall creates a call; waits: what comes after it depends on its reply.
func (c *caller) newCall(method string, waits bool) *pendingCall {
	x := &pendingCall{method: method, undecided: c.reading, decide: func() {}}
	x.seen.begin(c.l.u.near, c.p.cfg.Clock, c.in.Conn.RemoteAddr())
	x.out = replyMeter{to: c.out, measured: &x.seen}
	if waits {
		x.undecided, x.decide = context.WithCancel(c.reading)
	}
	return x
}

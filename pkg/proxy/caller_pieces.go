package proxy

import (
	"bytes"
	"errors"
	"io"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// expecting sends the head of a request whose client waits for a word before it sends the body.
func (c *caller) expecting(h *http1.Head, n int, f http1.Framing) bool {
	x := c.headAlone(h, n)
	if x == nil {
		return false
	}
	data, err := c.in.wait(c.reading, 0, 0)
	if c.reading.Err() != nil {
		return false
	}
	x.mu.Lock()
	refused := x.final && !x.interim
	x.raw = nil
	x.mu.Unlock()
	switch {
	case len(data) == 0 && errors.Is(err, io.EOF):
		c.tell(shut, nil)
		return false
	case refused:
		// The upstream did not want the body. What comes now may be the body all the same, or the next request: that is between the two.
		c.tunnel()
		return false
	}
	g, st, release, _ := c.p.gather(c.reading, c.in, 0, f, false)
	if st == stateWhole && takes(c.l.stream, int64(len(g.entity))) {
		ok := c.ack(c.lane.Begin(c.ctx, &streamer.Message{Head: append(line(body), g.line(f)...), Body: bytes.NewReader(g.entity)}))
		release()
		if !ok {
			return false
		}
		c.in.take(g.octets)
		return c.goesOn(h, x)
	}
	release()
	return c.pieces(x, http1.NewBody(f))
}

// pieces sends a body as it comes.
func (c *caller) pieces(x *call, b *http1.Body) bool {
	x.mu.Lock()
	x.raw = nil
	x.mu.Unlock()
	for !b.Done() {
		data, err := c.in.wait(c.reading, 0, 0)
		n, bad := pass(b, data[:min(len(data), pieceOctets)])
		switch {
		case bad != nil:
			c.tunnel()
			return false
		case n > 0:
			if !c.tell(piece, data[:n]) {
				return false
			}
			c.in.take(n)
		case errors.Is(err, io.EOF):
			c.tell(shut, nil)
			return false
		case err != nil:
			c.cancel()
			return false
		}
	}
	return true
}

// tunnel sends all further octets as they are, and has all further replies taken so.
func (c *caller) tunnel() {
	if c.enter() != nil {
		return
	}
	data := c.in.peek()
	data = data[:min(len(data), pieceOctets)]
	x := &call{tunnel: true, raw: bytes.Clone(data)}
	pending, err := c.lane.Begin(c.ctx, &streamer.Message{Head: line(tunnel), Body: bytes.NewReader(data)})
	if x.err = err; err == nil {
		x.reply = pending.Reply
	}
	c.put(x)
	if err != nil {
		return
	}
	c.in.take(len(data))
	c.relay()
}

// relay sends octets until the client has no more.
func (c *caller) relay() {
	for {
		data, err := c.in.wait(c.reading, 0, 0)
		switch {
		case len(data) > 0:
			data = data[:min(len(data), pieceOctets)]
			if !c.tell(piece, data) {
				return
			}
			c.in.take(len(data))
		case errors.Is(err, io.EOF):
			c.tell(shut, nil)
			return
		default:
			c.cancel()
			return
		}
	}
}

// tell sends octets, maybe none, that no reply but an acknowledgement is wanted for.
func (c *caller) tell(k kind, octets []byte) bool {
	return c.ack(c.lane.Begin(c.ctx, &streamer.Message{Head: line(k), Body: bytes.NewReader(octets)}))
}

// ack takes one more acknowledgement to wait for, and waits while there are too many: so a slow upstream slows its client down. A failure
// is one of the stream, and the writer's to tell the client.
func (c *caller) ack(pending *streamer.Pending, err error) bool {
	if err == nil {
		c.acks = append(c.acks, pending)
		if len(c.acks) > window {
			pending, c.acks = c.acks[0], c.acks[1:]
			err = c.acked(pending)
		}
	}
	if err != nil {
		c.p.cfg.Log.Debug("piece not sent", "lane", c.number, "err", err)
	}
	return err == nil
}

func (c *caller) acked(pending *streamer.Pending) error {
	m, err := pending.Reply(c.ctx)
	if err == nil {
		closeBody(m.Body)
	}
	return err
}

// settle takes the acknowledgements that nobody waited for. A stream that ends in order waits for those, so this must not wait for the stream's end.
func (c *caller) settle() {
	for _, pending := range c.acks {
		_ = c.acked(pending)
	}
}

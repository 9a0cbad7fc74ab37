package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// rest is the reply to one call as far as it is not delivered yet. One goroutine at a time works on it: that of the call, then those of the polls.
type rest struct {
	l      *lane
	up     *upstream
	method string
	mine   chan struct{} // closed when the reply is through
	once   sync.Once
	tunnel bool
	body   *http1.Body // of a reply that goes in pieces
}

// finish says that the reply is through.
func (r *rest) finish() {
	r.once.Do(func() {
		r.l.mu.Lock()
		if r.l.rest == r {
			r.l.rest = nil
		}
		r.l.mu.Unlock()
		close(r.mine)
		r.l.finished()
	})
}

// poll answers a poll with what comes next of the reply that is under way.
func (l *lane) poll(ctx context.Context, x *streamer.Exchange) {
	l.mu.Lock()
	r := l.rest
	l.mu.Unlock()
	if r == nil {
		_ = x.Reply(ctx, streamer.NewMessage(line(void), nil))
		return
	}
	r.next(ctx, x)
}

// next answers an exchange with what comes next of the reply.
func (r *rest) next(ctx context.Context, x *streamer.Exchange) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(r.up.ctx, cancel)()
	switch {
	case r.body != nil:
		r.piece(ctx, x)
	case r.tunnel:
		r.octets(ctx, x)
	default:
		r.reply(ctx, x)
	}
}

// deliver replies with octets and a kind. More follows some kinds: who polls first must find the rest, and may be there already.
func (r *rest) deliver(ctx context.Context, x *streamer.Exchange, k kind, octets []byte) {
	octets = bytes.Clone(octets)
	r.up.in.take(len(octets))
	r.l.mu.Lock()
	switch k {
	case piece, interim, switched, tunnel:
		r.l.rest = r
	case ended, broken:
		r.l.lost = true
	}
	r.l.mu.Unlock()
	m := &streamer.Message{Head: line(k), Body: bytes.NewReader(octets)}
	switch k {
	case tunnel: // there is nothing to say yet
		m = &streamer.Message{Head: line(void)}
	case switched:
		m = &streamer.Message{Head: withHead(octets, switched, nil)}
	}
	_ = x.Reply(ctx, m)
	switch k {
	case last, ended, broken:
		r.finish()
	}
}

// lose tells how the upstream ended before the reply was through, with what there is of it.
func (r *rest) lose(ctx context.Context, x *streamer.Exchange, err error) {
	if ctx.Err() != nil {
		r.finish()
		return
	}
	data := r.up.in.peek()
	switch {
	case len(data) > pieceOctets:
		r.tunnel, r.body = true, nil
		r.deliver(ctx, x, piece, data[:pieceOctets])
	case errors.Is(err, io.EOF):
		r.deliver(ctx, x, ended, data)
	default:
		r.deliver(ctx, x, broken, data)
	}
}

// reply waits for the reply and sends it as one message, if it comes as one.
func (r *rest) reply(ctx context.Context, x *streamer.Exchange) {
	in, cfg := r.up.in, &r.l.f.p.cfg
	h, n, st, err := readHead(ctx, in, 0, cfg.Pause, true)
	switch {
	case st == stateEnded:
		r.lose(ctx, x, err)
		return
	case st != stateWhole:
		r.tunnel = true
		r.octets(ctx, x)
		return
	case h.Status()/100 == 1 && h.Status() != 101:
		r.deliver(ctx, x, interim, h.Octets)
		return
	}
	f, err := http1.ReplyFraming(&h, r.method)
	if err != nil {
		r.tunnel = true
		r.octets(ctx, x)
		return
	}
	if f.Kind == http1.Tunnel {
		r.tunnel = true
		r.deliver(ctx, x, switched, h.Octets)
		return
	}
	g, st, release, err := r.l.f.p.gather(ctx, in, n, f, true)
	defer release()
	stream := r.l.f.opened(ctx)
	if stream == nil {
		r.finish()
		return
	}
	switch {
	case st == stateWhole && takes(stream, int64(len(g.entity))):
		in.take(n + g.octets)
		_ = x.Reply(ctx, streamer.NewMessage(withHead(h.Octets, whole, g.line(f)), g.entity))
		r.finish()
	case st == stateEnded:
		r.lose(ctx, x, err)
	case st == stateFull && f.Kind == http1.Length && takes(stream, f.Length):
		in.take(n)
		body := newLengthReader(ctx, in, f.Length)
		_ = x.Reply(ctx, &streamer.Message{Head: withHead(h.Octets, whole, []byte{'\n'}), Body: body})
		if body.left > 0 {
			reset(in.conn)
		}
		r.finish()
	case st == stateOdd:
		r.tunnel = true
		r.octets(ctx, x)
	default:
		r.body = http1.NewBody(f)
		in.take(n)
		r.first(ctx, x, h.Octets)
	}
}

// first delivers the head of a reply that goes in pieces, and what is there of its body.
func (r *rest) first(ctx context.Context, x *streamer.Exchange, head []byte) {
	data := r.up.in.peek()
	n, bad := pass(r.body, data[:min(len(data), pieceOctets)])
	if bad != nil {
		r.tunnel, r.body = true, nil
	}
	octets := append(bytes.Clone(head), data[:n]...)
	r.up.in.take(n)
	r.l.mu.Lock()
	r.l.rest = r
	r.l.mu.Unlock()
	_ = x.Reply(ctx, streamer.NewMessage(line(piece), octets))
}

// piece delivers the next octets of a reply's body.
func (r *rest) piece(ctx context.Context, x *streamer.Exchange) {
	if r.body.Done() {
		r.deliver(ctx, x, last, nil)
		return
	}
	data, err := r.up.in.wait(ctx, 0, 0)
	n, bad := pass(r.body, data[:min(len(data), pieceOctets)])
	switch {
	case bad != nil:
		r.tunnel, r.body = true, nil
		r.octets(ctx, x)
	case r.body.Done():
		r.deliver(ctx, x, last, data[:n])
	case n > 0:
		r.deliver(ctx, x, piece, data[:n])
	default:
		r.lose(ctx, x, err)
	}
}

// octets delivers what comes, as it comes.
func (r *rest) octets(ctx context.Context, x *streamer.Exchange) {
	data, err := r.up.in.wait(ctx, 0, 0)
	if len(data) == 0 {
		r.lose(ctx, x, err)
		return
	}
	r.deliver(ctx, x, piece, data[:min(len(data), pieceOctets)])
}

package proxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/sock"
)

// plainRelay forwards the requests of a client as they are, one after another, so that the next one
// may go elsewhere. One goroutine forwards requests, another the replies.
type plainRelay struct {
	u       *plainWay
	in, up  *sock.Source
	to, out *sock.StallWriter // the server, the client
	seen    *observer
	ctx     context.Context
	cancel  context.CancelFunc
	back    sync.WaitGroup
	// Of the goroutine that forwards requests:
	finishes bool   // the connection of the client ends in order, after its last reply
	refusal  []byte // the reply to its last request, if the server has sent none of it

	mu   sync.Mutex
	call *plainCall // in progress; nil: none
	told bool       // the server has sent something of the reply to it
	late bool       // the proxy ends before the reply
}

// plainCall is a request whose reply is not whole.
type plainCall struct {
	method string
	done   context.Context // ends with the reply
	finish context.CancelFunc
	// expects: the client waits before it sends the body. Then turned ends with done, or where a
	// refusal begins, before the client knows of it.
	expects bool
	turned  context.Context
	turn    context.CancelFunc
	becomes bool // the reply makes the connection a tunnel; valid once done has ended
	// references are those that the request has; refused, valid as becomes is: the reply says that
	// they could not be put back.
	references []string
	refused    bool
	refer      replyReferences
}

// plainly sends to the upstream, as plain HTTP, first, which was read from the client already, and
// what the client sends from now on. It reports whether its next request goes elsewhere. why is the
// reason, for the meter.
func (u *plainWay) plainly(in *sock.Source, first []*pendingCall, why string, j journey) (moves bool) {
	var raw []byte
	for _, x := range first {
		raw = append(raw, x.raw...)
	}
	if u.p.late.Err() != nil {
		u.refuse(in, raw, plainDraining, errLate)
		return false
	}
	if u.cfg.RequireStream {
		u.hasNoPartner(why, u.p.cfg.Clock.Now())
		u.refuse(in, raw, plainRequired, &noStream{why})
		return false
	}
	if j.whole {
		_ = u.plainOrStream(in, raw, why, nil)
		return false
	}
	conn, err := u.dialPlain(u.p.ctx)
	if err != nil {
		u.reach.failed(err)
		u.refuse(in, raw, why, err)
		return false
	}
	conn = u.p.recorded(conn)
	r := &plainRelay{u: u, in: in, up: u.p.newSource(conn), to: u.p.patient(conn), out: u.p.patient(in.Conn),
		seen: u.observed(why, in)}
	defer r.seen.end(false)
	r.ctx, r.cancel = context.WithCancel(u.p.late)
	defer context.AfterFunc(u.p.ctx, func() { sock.Reset(conn) })()
	r.back.Go(r.replies)
	moves = r.requests(first, j)
	if moves {
		r.cancel()
	}
	unwatch := r.out.WhenQuiet(u.p.cfg.Idle, r.giveUp)
	r.back.Wait()
	unwatch()
	r.cancel()
	if r.call != nil { // it was begun when the server was gone
		r.finish(r.call)
	}
	_ = conn.Close()
	switch {
	case !moves && u.p.ctx.Err() != nil:
		sock.Reset(in.Conn)
	case r.late && r.told:
		sock.Reset(in.Conn)
	case r.late:
		_, _ = in.Conn.Write(errorReply(http.StatusBadGateway, lateText))
		sock.Finish(u.p.ctx, in)
	case !moves && u.p.late.Err() != nil && len(in.Peek()) > 0:
		u.refuse(in, nil, plainDraining, errLate)
	case r.finishes:
		if !r.told {
			_, _ = in.Conn.Write(r.refusal)
		}
		sock.Finish(u.p.ctx, in)
	}
	return moves
}

// requests forwards requests until the connection ends, or the next one goes elsewhere.
func (r *plainRelay) requests(first []*pendingCall, j journey) (moves bool) {
	for _, x := range first {
		if x.raw == nil {
			continue // it is in the source still
		}
		c := r.begin(&plainCall{method: x.method})
		if err := r.send(x.raw); err != nil || !r.wait(c) {
			return false
		}
	}
	if j.raw {
		return r.tunnel()
	}
	for {
		h, n, st, err := readHead(r.ctx, r.in, r.u.p.cfg.Idle, r.u.p.cfg.Pause, false)
		switch {
		case r.ctx.Err() != nil:
			return false
		case j.isOver(st, &h, r.in):
			return true
		case st == stateWhole:
			if !r.request(&h, n, j.isByHead()) {
				return false
			}
		case st == statePaused && len(r.in.Peek()) == 0:
			_ = sock.CloseWrite(r.up.Conn) // the reaction of the server ends the connection
			r.u.p.cfg.Clock.AfterFunc(halfOpen, r.cancel)
			return false
		case errors.Is(err, sock.ErrDismissed):
			r.finishes = true
			r.cancel()
			return false
		case st == stateEnded && len(r.in.Peek()) == 0 && !errors.Is(err, io.EOF):
			sock.Reset(r.up.Conn)
			return false
		default:
			r.tunnel()
			return false
		}
	}
}

// request forwards a request, and waits for its reply; false: there is no next one. alone: nothing
// but requests may go to the server.
func (r *plainRelay) request(h *http1.Head, n int, alone bool) bool {
	f, err := http1.RequestFraming(h)
	if err != nil {
		r.tunnel()
		return false
	}
	if done, goesOn := r.referred(h, n, f); done {
		return goesOn
	}
	expects := f.Kind != http1.NoBody && slices.Contains(h.Tokens("Expect"), "100-continue")
	c := r.begin(&plainCall{method: string(h.Method()), expects: expects})
	if err := r.send(h.Octets); err != nil {
		r.back.Wait() // there may be a reply nevertheless
		return false
	}
	r.in.Take(n)
	if expects {
		if data, _ := r.in.Wait(c.turned, 0, 0); c.turned.Err() != nil && (alone || len(data) == 0) {
			_, _ = r.in.Wait(r.ctx, 0, 0)
			if !alone { // a body or a request: nobody knows
				return r.tunnel()
			}
			<-c.done.Done()
			r.finishes = true
			r.cancel()
			return false
		}
	}
	if err := r.body(http1.NewBody(f), alone); err != nil {
		if errors.Is(err, errOdd) {
			r.finishes, r.refusal = true, errorReply(http.StatusBadRequest, invalidText)
		}
		return false
	}
	if !r.wait(c) {
		return false
	}
	return !c.becomes || r.tunnel()
}

// send sends the server what the client sent.
func (r *plainRelay) send(b []byte) error {
	r.seen.request(b)
	_, err := r.to.Write(b)
	return err
}

// body forwards the body of a request. Its error is errOdd if that is not valid, and nothing but
// requests may go to the server.
func (r *plainRelay) body(b *http1.Body, alone bool) error {
	for !b.Done() {
		data, err := r.in.Wait(r.ctx, 0, 0)
		if len(data) == 0 {
			sock.Reset(r.up.Conn) // a request cut short must not look whole
			return err
		}
		n, bad := pass(b, data)
		if bad != nil && alone {
			r.cancel()
			sock.Reset(r.up.Conn)
			return errOdd
		}
		if bad != nil {
			r.tunnel()
			return bad
		}
		if err := r.send(data[:n]); err != nil {
			return err
		}
		r.in.Take(n)
	}
	return nil
}

// tunnel forwards all further bytes of the client; false.
func (r *plainRelay) tunnel() bool {
	if err := copyUp(r.ctx, r.up.Conn, r.to, r.in, r.seen.request); errors.Is(err, sock.ErrDismissed) {
		r.giveUp()
	}
	return false
}

func (r *plainRelay) begin(c *plainCall) *plainCall {
	c.done, c.finish = context.WithCancel(r.ctx)
	if c.expects {
		c.turned, c.turn = context.WithCancel(c.done)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.call, r.told = c, false
	r.u.p.calls.Add(1)
	return c
}

// wait waits for the reply; false: the connection ends without one, or with it. What the client
// sends meanwhile is read, to learn whether it is gone; one that has ended its direction may wait,
// as long as something comes for it.
func (r *plainRelay) wait(c *plainCall) bool {
	for ahead, err := r.in.Peek(), error(nil); len(ahead) < maxAhead && c.done.Err() == nil; {
		if ahead, err = r.in.Wait(c.done, len(ahead), 0); err == nil || c.done.Err() != nil {
			continue
		}
		if !errors.Is(err, io.EOF) {
			r.giveUp()
			return false
		}
		defer r.out.WhenQuiet(r.u.p.cfg.Idle, r.giveUp)()
		break
	}
	<-c.done.Done()
	return r.ctx.Err() == nil
}

// giveUp ends both connections: the client is gone.
func (r *plainRelay) giveUp() {
	r.cancel()
	sock.Reset(r.up.Conn)
	sock.Reset(r.in.Conn)
}

// replies forwards what the server sends.
func (r *plainRelay) replies() {
	written := int64(0)
	to := relayedReply{r.out, r.seen, &r.u.reach}
	for {
		data, err := r.up.Wait(r.ctx, 0, 0)
		if len(data) == 0 {
			r.ends(err, written)
			return
		}
		r.mu.Lock()
		c := r.call
		r.told = c != nil
		r.mu.Unlock()
		n, err := r.reply(to, c)
		if written += n; err != nil {
			r.ends(err, written)
			return
		}
	}
}

// reply forwards one reply, interim ones before it included; without a call all that comes. Its
// error says that nothing more comes.
func (r *plainRelay) reply(to io.Writer, c *plainCall) (written int64, err error) {
	if c == nil {
		return r.copy(to, nil)
	}
	h, n, st, _ := readHead(r.ctx, r.up, 0, r.u.p.cfg.Pause, true)
	if st != stateWhole {
		return r.copy(to, nil)
	}
	f, bad := http1.ReplyFraming(&h, c.method)
	status := h.Status()
	if bad != nil {
		return r.copy(to, nil)
	}
	if c.references != nil {
		h = h.Clone()
		if r.refuses(&h, n, f, c) {
			return 0, nil
		}
	}
	if c.refer != (replyReferences{}) && status/100 != 1 && f.Kind != http1.NoBody {
		h = h.Clone()
		if written, done, err := r.referringReply(to, &h, n, f, c); done {
			return written, err
		}
	}
	if c.expects && status/100 > 2 {
		c.turn()
	}
	if _, err := to.Write(h.Octets); err != nil {
		return 0, err
	}
	r.up.Take(n)
	switch {
	case status/100 == 1 && status != 101:
		return int64(n), nil
	case f.Kind == http1.Tunnel:
		c.becomes = true
		r.finish(c)
		return r.copy(to, nil)
	}
	b := http1.NewBody(f)
	if written, err = r.copy(to, b); err == nil {
		r.finish(c)
	}
	return written + int64(n), err
}

// finish ends a call.
func (r *plainRelay) finish(c *plainCall) {
	r.mu.Lock()
	r.call = nil
	r.mu.Unlock()
	r.u.p.calls.Add(-1)
	c.finish()
}

// copy forwards a body of the server, as it is; nil: all that comes.
func (r *plainRelay) copy(to io.Writer, b *http1.Body) (written int64, err error) {
	for b == nil || !b.Done() {
		data, err := r.up.Wait(r.ctx, 0, 0)
		if len(data) == 0 {
			return written, err
		}
		n := len(data)
		if b != nil {
			if n, err = pass(b, data); err != nil {
				b, n = nil, len(data)
			}
		}
		if _, err := to.Write(data[:n]); err != nil {
			return written, err
		}
		r.up.Take(n)
		written += int64(n)
	}
	return written, nil
}

// ends ends the client's connection as the server's has ended.
func (r *plainRelay) ends(err error, written int64) {
	r.mu.Lock()
	c := r.call
	r.mu.Unlock()
	if c != nil {
		r.finish(c)
	}
	r.late = c != nil && r.u.p.late.Err() != nil
	if r.ctx.Err() != nil {
		return
	}
	if written == 0 && session.TroubleOf(err) != 0 {
		r.u.reach.failed(err)
		_, _ = r.in.Conn.Write(unreachable(err))
		err = io.EOF
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.seen.end(err == nil)
	r.u.p.endBack(err, r.in, r.cancel)
}

package proxy

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
)

const (
	// maxObserved is how many calls of one connection that have no whole reply are counted. With
	// more of them it is no longer looked at what passes.
	maxObserved = 1000
	// maxLooked is how much of the beginning of a body is looked at for its operation, in bytes.
	maxLooked = 16 << 10
)

// observer counts the calls of a connection that is forwarded without a stream, by the bytes that
// pass. It changes and delays nothing: what it does not understand is not looked at any more.
type observer struct {
	count *meter.Plain
	clock clock.Clock
	from  net.Addr
	begun func(now time.Time) // is called for each call

	mu      sync.Mutex
	asking  passing
	replies passing
	latest  *observed   // the call whose request passes, or passed last
	serving *observed   // the call whose reply passes, or passed last
	calls   []*observed // without a whole reply, in the order of the requests
	left    bool        // the client takes no more of it
}

// observed is a call that has no whole reply.
type observed struct {
	measured
	method  string
	action  []byte // names its operation if its body does not
	waits   bool   // its client does not send the body before it is asked to
	replied bool   // its final reply has begun
}

// request takes what is about to be sent to the server.
func (o *observer) request(b []byte) {
	o.count.Request(len(b))
	o.look(b)
}

// look looks at what is sent to the server, or would be.
func (o *observer) look(b []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking.feed(b, o.asked, func(start []byte, over bool) bool {
		o.latest.waits = false
		name := soap.OperationName(start)
		if len(name) == 0 && over {
			name = o.latest.action
		}
		if len(name) > 0 {
			o.latest.Name(name)
		}
		return over || len(name) > 0
	}, func(n int) { o.latest.Request(n) })
}

// asked begins a call.
func (o *observer) asked(h *http1.Head) *http1.Body {
	f, err := http1.RequestFraming(h)
	if err != nil || h.IsReply() || len(o.calls) == maxObserved {
		return nil
	}
	call := &observed{method: string(h.Method())}
	call.waits = f.Kind != http1.NoBody && slices.Contains(h.Tokens("Expect"), "100-continue")
	now := o.clock.Now()
	o.count.Begin(&call.Call, now)
	call.From(o.from)
	o.begun(now)
	if call.action = bytes.Clone(actionOf(h)); f.Kind == http1.NoBody || f.Kind == http1.Length && f.Length == 0 {
		call.Name(call.action)
	}
	o.calls, o.latest = append(o.calls, call), call
	return http1.NewBody(f)
}

// reply takes what the server has sent.
func (o *observer) reply(b []byte) {
	o.count.Reply(len(b))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.replies.feed(b, o.answered, func(start []byte, over bool) bool {
		look := o.serving.reply // of more, which has all that was looked at
		fault := look.fault(start)
		if fault != nil {
			o.serving.Fault(fault)
		}
		return over || fault != nil
	}, func(n int) { o.serving.Reply(n) })
	if o.replies.dark {
		o.asking.dark = true
		o.endLocked(false)
	}
}

// answered begins, or ends, the reply to the call that waits longest.
func (o *observer) answered(h *http1.Head) *http1.Body {
	if len(o.calls) == 0 || !h.IsReply() {
		return nil
	}
	call := o.calls[0]
	o.serving = call
	if status := h.Status(); status/100 == 1 && status != 101 {
		return http1.NewBody(http1.Framing{Kind: http1.NoBody})
	}
	f, err := http1.ReplyFraming(h, call.method)
	if err != nil {
		return nil
	}
	call.replied = true
	call.replies(h, 0)
	o.replies.end = o.over
	if f.Kind == http1.Tunnel || call.waits { // what comes now is a body, a request, or no HTTP
		o.asking.dark = true
	}
	if f.Kind == http1.Tunnel {
		o.over()
		return nil
	}
	return http1.NewBody(f)
}

// over ends the call that waits longest: its reply is whole.
func (o *observer) over() {
	o.calls[0].Done(o.clock.Now(), true)
	o.calls = o.calls[1:]
}

// sentAgain forgets the call that began last: it is sent once more, and its reply was not passed
// on.
func (o *observer) sentAgain() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if last := len(o.calls) - 1; last >= 0 {
		o.calls[last].Drop()
		o.calls = o.calls[:last]
	}
}

// end ends the calls that have no whole reply, with the connection. orderly: the server has ended
// that in order, which makes a reply whole that is as long as the connection lasts.
func (o *observer) end(orderly bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asking.dark, o.replies.dark = true, true
	o.endLocked(orderly)
}

func (o *observer) endLocked(orderly bool) {
	for i, call := range o.calls {
		begun := i == 0 && call.replied
		call.Done(o.clock.Now(), begun && (o.left || orderly && o.replies.body.Close() == nil))
	}
	o.calls = nil
}

// leave notes that the client takes no more of a reply: nothing has failed then.
func (o *observer) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left = true
}

// passing finds the messages in the bytes of one direction.
type passing struct {
	dark  bool // nothing is looked at any more
	held  []byte
	body  *http1.Body // nil: a head comes next
	start []byte      // of the body, until it was looked at
	next  int         // how long start is to be for the next look
	end   func()      // is called when the message is whole
}

// feed takes bytes. begin is called for each head, and returns what its body is read with; nil: it
// is no longer looked at what passes. look is given the beginning of a body, the more of it the
// more has passed, until it returns true; over: there is no more. count is given the number of
// bytes of the message.
func (p *passing) feed(
	b []byte, begin func(*http1.Head) *http1.Body, look func(start []byte, over bool) bool, count func(int),
) {
	for len(b) > 0 && !p.dark {
		if p.body == nil {
			b = p.head(b, begin, count)
			continue
		}
		entity, n, err := p.body.Write(b)
		b = b[n:]
		if p.dark = err != nil; p.dark {
			return
		}
		count(n)
		p.look(entity, look)
		p.whole()
	}
}

// head takes bytes of a head, and returns those behind it.
func (p *passing) head(b []byte, begin func(*http1.Head) *http1.Body, count func(int)) (rest []byte) {
	before := len(p.held)
	all := b
	if before > 0 {
		p.held = append(p.held, b...)
		all = p.held
	}
	h, n, err := http1.ParseHead(all, maxHeadOctets)
	switch {
	case err == nil:
		p.end, p.next = nil, 1
		p.body = begin(&h)
		p.held, p.dark = nil, p.body == nil
		if !p.dark {
			count(n)
			p.whole()
		}
		return b[n-before:]
	case !errors.Is(err, http1.ErrIncomplete):
		p.dark, p.held = true, nil
	case before == 0:
		p.held = bytes.Clone(b)
	}
	return nil
}

// look has the beginning of a body looked at, each time there is twice as much of it.
func (p *passing) look(entity []byte, look func([]byte, bool) bool) {
	if p.next == 0 || len(entity) == 0 {
		return
	}
	start, over := entity, p.body.Done()
	if len(p.start) > 0 {
		p.start = append(p.start, entity[:min(len(entity), maxLooked-len(p.start))]...)
		start = p.start
	}
	over = over || len(start) >= maxLooked
	if len(start) < p.next && !over {
		p.start = append(p.start[:0], start...)
		return
	}
	if look(start, over) {
		p.start, p.next = nil, 0
		return
	}
	if len(p.start) == 0 {
		p.start = bytes.Clone(start)
	}
	p.next = 2 * len(start)
}

// whole goes on to the next message, if this one is whole.
func (p *passing) whole() {
	if !p.body.Done() {
		return
	}
	end := p.end
	p.body, p.end, p.start, p.next = nil, nil, nil, 0
	if end != nil {
		end()
	}
}

// countRefused counts the call that begins with what a client said, which goes nowhere; why is the
// reason in a word.
func (p *core) countRefused(up *meter.Upstream, why string, in *sock.Source, said, reply []byte) {
	o := observer{count: up.Plain(why), clock: p.cfg.Clock, from: in.Conn.RemoteAddr(), begun: func(time.Time) {}}
	o.look(said)
	for _, call := range o.calls {
		call.told(reply)
	}
	o.end(false)
}

// relayedReply passes on what a server sends to a client without a stream, and counts it.
type relayedReply struct {
	to    io.Writer
	seen  *observer
	reach *reach
}

// Write implements [io.Writer].
func (w relayedReply) Write(b []byte) (int, error) {
	w.reach.worked()
	n, err := w.to.Write(b)
	if err != nil {
		w.seen.leave()
	}
	w.seen.reply(b[:n])
	return n, err
}

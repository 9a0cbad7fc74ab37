package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// forwardMessage forwards a request of an endpoint that speaks hhfr itself, whose head is as in
// docs/negotiation.md. The proxy turns it into an HTTP request on a connection of its own, since
// exchanges of such endpoints may overtake one another.
func (f *far) forwardMessage(ctx context.Context, x *streamer.Exchange) {
	var s measured
	replied := false
	defer func() {
		x.Count(s.Wire())
		s.Done(f.p.cfg.Clock.Now(), replied)
	}()
	reply, done, err := f.exchange(ctx, x, &s)
	if done != nil {
		defer done()
	}
	if x.OneWay() {
		replied = err == nil
		return
	}
	failed := err != nil
	if failed {
		f.p.cfg.Log.Info("message not through", "err", err)
		status, text := http.StatusBadGateway,
			"hhfr: the upstream did not reply; whether the request was processed is unknown"
		switch {
		case errors.Is(err, &Error{Code: Malformed}):
			status, text = http.StatusBadRequest,
				"hhfr: the message's head cannot be sent on over HTTP; it was not sent"
		case errors.Is(err, &Error{Code: Unreachable}):
			text = "hhfr: no connection to the upstream; the request was not sent"
		case errors.Is(err, &Error{Code: NoRoute}):
			status, text = http.StatusNotFound, "hhfr: "+errors.Unwrap(err).Error()
		case errors.Is(err, &Error{Code: NoRoom}):
			status, text = http.StatusServiceUnavailable, noRoomText
		}
		head := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n", status,
			http.StatusText(status))
		if status == http.StatusServiceUnavailable {
			head = fmt.Appendf(head, "Retry-After: %d\r\n", retryAfter)
		}
		head = http1.AppendEnd(head)
		reply = streamer.NewMessage(head, []byte(text+"\n"))
	}
	err = x.Reply(ctx, reply)
	replied = err == nil && !failed
}

// exchange makes one HTTP exchange. done ends it after the reply is read.
func (f *far) exchange(
	ctx context.Context, x *streamer.Exchange, s *measured,
) (reply *streamer.Message, done func(), err error) {
	m := x.Message()
	u, err := f.upstreamOf(m)
	s.begin(f.p.farMeter(u), f.p.cfg.Clock, f.peer)
	if err != nil {
		return nil, nil, err
	}
	method, head, err := httpmsg.ForwardedHead(m, &f.facts, u.cfg.URL)
	if err != nil {
		u.use.leave()
		return nil, nil, malformed("%w", err)
	}
	up, err := u.open(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	in := up.in
	stop := context.AfterFunc(ctx, func() { _ = in.Conn.Close() })
	done = func() {
		stop()
		up.close()
	}
	s.since = s.clock.Now()
	if err := f.p.send(&requestMeter{to: up.out, x: x, measured: s}, method, head, m); err != nil {
		return nil, done, err
	}
	for {
		h, n, st, err := readHead(ctx, in, 0, 0, true)
		if st != stateWhole {
			return nil, done, fmt.Errorf("reply of the upstream: %w", err)
		}
		h = h.Clone()
		in.Take(n)
		s.Reply(n)
		if h.Status()/100 == 1 {
			continue
		}
		s.replies(&h, 0)
		framing, err := http1.ReplyFraming(&h, method)
		if err != nil {
			return nil, done, err
		}
		head, err := httpmsg.TrimHead(h.Octets)
		body := &entityReader{ctx: ctx, in: in, body: http1.NewBody(framing), seen: s}
		return &streamer.Message{Head: head, Body: body}, done, err
	}
}

// upstreamOf returns the upstream of a request of an endpoint that speaks hhfr itself. The caller
// leaves it. Errors: NoRoute.
func (f *far) upstreamOf(m *streamer.Message) (*upstream, error) {
	host, path := f.destination(m.Head)
	for f.p.ctx.Err() == nil {
		u := f.at.routes().find(host, path)
		switch {
		case u == nil:
			return nil, f.p.noRoute(host, path)
		case u.use.enter():
			return u, nil
		}
	}
	return nil, &Error{Code: Closed}
}

// destination is what a request of an endpoint that speaks hhfr itself is for; without a head, what
// the session is for.
func (f *far) destination(head []byte) (host, path string) {
	if head == nil {
		head = negotiate.DefaultRequestHead(f.facts.Path)
	}
	if h, _, err := http1.ParseHead(head, 0); err == nil { // its other errors are reported later
		host, path = destination(&h)
	}
	if origin, err := url.Parse(f.facts.Origin); err == nil && host == "" {
		host = origin.Host
	}
	return host, path
}

// send writes a request whose head lacks the fields for its body.
func (p *core) send(conn io.Writer, method string, head []byte, m *streamer.Message) (err error) {
	var start []byte
	if m.Body != nil {
		if start, err = io.ReadAll(io.LimitReader(m.Body, int64(p.cfg.MaxBuffer)+1)); err != nil {
			return err
		}
	}
	if len(start) <= p.cfg.MaxBuffer {
		if len(start) > 0 || method != http.MethodGet {
			head = fmt.Appendf(head, "Content-Length: %d\r\n", len(start))
		}
		_, err = conn.Write(append(http1.AppendEnd(head), start...))
		return err
	}
	head = http1.AppendEnd(append(head, "Transfer-Encoding: chunked\r\n"...))
	if _, err = conn.Write(http1.AppendChunk(head, start)); err != nil {
		return err
	}
	if err = copyMessage(chunks{conn}, nil, m, nil); err == nil {
		_, err = conn.Write(http1.AppendLastChunk(nil))
	}
	return err
}

// chunks writes each write as one chunk.
type chunks struct{ to io.Writer }

func (c chunks) Write(p []byte) (int, error) { return c.to.Write(http1.AppendChunk(nil, p)) }

// entityReader reads the entity of an HTTP message from a source.
type entityReader struct {
	ctx  context.Context
	in   *sock.Source
	body *http1.Body
	seen *measured
}

// Read returns bytes as they arrive; a body cut short is io.ErrUnexpectedEOF.
func (r *entityReader) Read(p []byte) (int, error) {
	for !r.body.Done() {
		data, err := r.in.Wait(r.ctx, 0, 0)
		if len(data) == 0 {
			if errors.Is(err, io.EOF) && r.body.Close() == nil {
				break
			}
			return 0, errors.Join(io.ErrUnexpectedEOF, err)
		}
		entity, n, err := r.body.Write(data[:min(len(data), len(p))])
		if err != nil {
			return 0, err
		}
		r.seen.lookAtReply(entity)
		n, k := copy(p, entity), n
		r.in.Take(k)
		r.seen.Reply(k)
		if n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/httpmsg"
	"github.com/hhfr/hhfr/internal/sock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// forwardMessage forwards a request of an endpoint that speaks hhfr itself, whose head is as in
// docs/negotiation.md. The proxy turns it into an HTTP request on a connection of its own, since
// exchanges of such endpoints may overtake one another.
func (p *Proxy) forwardMessage(ctx context.Context, facts *negotiate.Facts, x *streamer.Exchange) {
	reply, done, err := p.exchange(ctx, facts, x.Message())
	if done != nil {
		defer done()
	}
	if x.OneWay() {
		return
	}
	if err != nil {
		p.cfg.Log.Info("message not through", "err", err)
		status, text := http.StatusBadGateway,
			"hhfr: the upstream did not reply; whether the request was processed is unknown"
		switch {
		case errors.Is(err, &Error{Code: Malformed}):
			status, text = http.StatusBadRequest,
				"hhfr: the message's head cannot be sent on over HTTP; it was not sent"
		case errors.Is(err, &Error{Code: Unreachable}):
			text = "hhfr: no connection to the upstream; the request was not sent"
		case errors.Is(err, &Error{Code: NoRoom}):
			status, text = http.StatusServiceUnavailable, noRoomText
		}
		head := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n", status,
			http.StatusText(status))
		reply = streamer.NewMessage(head, []byte(text+"\n"))
	}
	_ = x.Reply(ctx, reply)
}

// exchange makes one HTTP exchange. done ends it after the reply is read.
func (p *Proxy) exchange(
	ctx context.Context, facts *negotiate.Facts, m *streamer.Message,
) (reply *streamer.Message, done func(), err error) {
	method, head, err := httpmsg.ForwardedHead(m, facts, p.cfg.Upstream)
	if err != nil {
		return nil, nil, malformed("%w", err)
	}
	up, err := p.openUpstream(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	in := up.in
	stop := context.AfterFunc(ctx, func() { _ = in.Conn.Close() })
	done = func() {
		stop()
		up.close()
	}
	if err := p.send(in.Conn, method, head, m.Body); err != nil {
		return nil, done, err
	}
	for {
		h, n, st, err := readHead(ctx, in, 0, 0, true)
		if st != stateWhole {
			return nil, done, fmt.Errorf("reply of the upstream: %w", err)
		}
		in.Take(n)
		if h.Status()/100 == 1 {
			continue
		}
		f, err := http1.ReplyFraming(&h, method)
		if err != nil {
			return nil, done, err
		}
		head, err := httpmsg.TrimHead(h.Octets)
		return &streamer.Message{Head: head, Body: &entityReader{ctx: ctx, in: in, body: http1.NewBody(f)}}, done, err
	}
}

// send writes a request whose head lacks the fields for its body.
func (p *Proxy) send(to net.Conn, method string, head []byte, from io.Reader) (err error) {
	conn := p.patient(to)
	var start []byte
	if from != nil {
		if start, err = io.ReadAll(io.LimitReader(from, int64(p.cfg.MaxBuffer)+1)); err != nil {
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
	if err = copyBody(chunks{conn}, from, nil); err == nil {
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
		n, k := copy(p, entity), n
		if r.in.Take(k); n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}

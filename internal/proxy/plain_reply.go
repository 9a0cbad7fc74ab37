package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/unchanging"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// replyReferences are what a reply of plain SOAP may refer to: as it comes from the upstream, and
// as it goes to the client.
type replyReferences struct {
	referrer *unchanging.Referrer // makes replies whole; nil: it makes none
	taken    *unchanging.Taken    // what the request named to the upstream; nil: nothing
	reply    *unchanging.Reply    // what the client's request has named; nil: nothing
}

// ask sets what the reply to a request may refer to, and returns the head of the request, which
// names that to the upstream.
func (f *replyReferences) ask(p *core, h *http1.Head) (octets []byte) {
	if field, ok := h.Get(negotiate.FragmentsField); ok {
		f.reply = p.restorer.Reply(string(field), p.startReading)
		return h.Octets
	}
	if f.referrer == nil {
		return h.Octets
	}
	if f.taken = f.referrer.Take(); f.taken == nil {
		return h.Octets
	}
	end := bytes.LastIndexByte(h.Octets[:len(h.Octets)-1], '\n')
	before := h.Octets[:end]
	before = append(before[:len(before):len(before)], "\n"+negotiate.FragmentsField+": "+f.taken.Field()+"\r"...)
	return append(before, h.Octets[end:]...)
}

// startReading runs something beside the calls, which Close ends and waits for; false: it is
// closed.
func (p *core) startReading(read func(context.Context)) bool {
	if p.ctx.Err() != nil {
		return false
	}
	p.wait.Go(func() { read(p.ctx) })
	return true
}

// mayReferReply reports whether a reply may have references.
func mayReferReply(h *http1.Head) bool {
	_, coded := h.Get("Content-Encoding")
	_, trailed := h.Get("Trailer")
	kind, _ := h.Get("Content-Type")
	return !coded && !trailed && soap.ParseContentType(string(kind)).Version() != soap.None
}

// referringReply forwards a reply whose references are put back, or that gets some; not done: it
// has none, and is to be forwarded as it is.
func (r *plainRelay) referringReply(
	to io.Writer, h *http1.Head, n int, f http1.Framing, c *plainCall,
) (written int64, done bool, err error) {
	if !mayReferReply(h) {
		return 0, false, nil
	}
	pause := r.u.p.cfg.Pause
	if c.refer.taken != nil {
		pause = 0 // it may have references, and must not go on with them
	}
	body := http1.NewBody(f)
	start, taken := r.beginning(n, body, pause)
	if start == nil {
		return 0, false, nil
	}
	by := start
	if c.refer.referrer != nil {
		whole, fragments, err := c.refer.referrer.RestoreReply(c.refer.taken, start)
		if err != nil {
			text := fmt.Sprintf("hhfr: %v; the request was processed", err)
			_, _ = r.out.Write(errorReply(http.StatusBadGateway, text)) // which is not the server's
			r.u.p.cfg.Log.Warn("reply not made whole", "upstream", r.u.cfg.Name, "err", err)
			return 0, true, io.EOF
		}
		if fragments > 0 {
			by = whole
		}
	}
	if c.refer.reply != nil {
		if shorter, references := c.refer.reply.Refer(by); references > 0 {
			by = shorter
		}
	}
	if bytes.Equal(by, start) {
		return 0, false, nil
	}
	head, chunked := h.Octets, f.Kind == http1.Chunked
	if f.Kind == http1.Length {
		head = withLength(head, int(f.Length)+len(by)-len(start))
	}
	w := &rewrittenReply{to: to, chunked: chunked}
	w.write(head)
	w.entity(by)
	r.up.Take(n + taken)
	if err = r.rest(w, body); err == nil {
		r.finish(c)
	}
	return w.written, true, err
}

// beginning waits for what stands before the Body of a reply, after a head of skip bytes, and
// returns it, with the bytes that it takes as it came. nil: it does not come within a pause, or is
// odd.
func (r *plainRelay) beginning(skip int, body *http1.Body, pause time.Duration) (start []byte, taken int) {
	start = []byte{}
	for !body.Done() && !unchanging.Begun(start) {
		data, err := r.up.Wait(r.ctx, skip+taken, pause)
		for data = data[min(skip+taken, len(data)):]; len(data) > 0 && !body.Done(); {
			entity, n, bad := body.Write(data)
			if bad != nil {
				return nil, 0
			}
			start = append(start, entity...)
			data, taken = data[n:], taken+n
		}
		switch {
		case errors.Is(err, io.EOF):
			return start, taken
		case err != nil:
			return nil, 0
		}
	}
	return start, taken
}

// rest forwards what follows the beginning of a reply.
func (r *plainRelay) rest(w *rewrittenReply, body *http1.Body) error {
	for !body.Done() {
		data, err := r.up.Wait(r.ctx, 0, 0)
		if len(data) == 0 {
			return err
		}
		entity, n, bad := body.Write(data)
		if bad != nil {
			return bad
		}
		w.entity(entity)
		r.up.Take(n)
		if w.err != nil {
			return w.err
		}
	}
	w.end()
	return w.err
}

// rewrittenReply is a reply that is forwarded with another beginning.
type rewrittenReply struct {
	to      io.Writer
	chunked bool
	written int64
	err     error
}

func (w *rewrittenReply) write(b []byte) {
	if w.err == nil && len(b) > 0 {
		var n int
		n, w.err = w.to.Write(b)
		w.written += int64(n)
	}
}

// entity writes a part of the body.
func (w *rewrittenReply) entity(b []byte) {
	if w.chunked && len(b) > 0 {
		b = append(append(append(strconv.AppendInt(nil, int64(len(b)), 16), "\r\n"...), b...), "\r\n"...)
	}
	w.write(b)
}

// end writes the end of the body.
func (w *rewrittenReply) end() {
	if w.chunked {
		w.write([]byte("0\r\n\r\n"))
	}
}

// withLength returns a head whose Content-Length is another.
func withLength(head []byte, length int) []byte {
	var out []byte
	for line := range bytes.Lines(head) {
		name, value, ok := bytes.Cut(line, []byte(":"))
		if ok && bytes.EqualFold(name, []byte("Content-Length")) {
			digits := bytes.TrimSpace(value)
			line = bytes.Replace(line, digits, strconv.AppendInt(nil, int64(length), 10), 1)
		}
		out = append(out, line...)
	}
	return out
}

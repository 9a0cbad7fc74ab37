package proxy

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// measured is what a call shows the meter.
type measured struct {
	meter.Call
	clock clock.Clock
	named bool
	reply replyLook
	since time.Time // when the message that is passed on now was here; zero: it has been passed on
}

func (s *measured) begin(up *meter.Upstream, c clock.Clock, from net.Addr) {
	s.clock, s.since = c, c.Now()
	up.Begin(&s.Call, s.since)
	s.From(from)
}

// replies is called with the head of the final reply, of which so many bytes pass before the body.
func (s *measured) replies(h *http1.Head, passes int) {
	s.reply.begins(h, passes)
	s.Status(h.Status())
}

// told notes the status of a reply of bytes; there may be none.
func (s *measured) told(reply []byte) {
	if h, _, err := http1.ParseHead(reply, 0); err == nil && h.IsReply() {
		s.Status(h.Status())
	}
}

// look finds the operation in the head, if it is given, and the beginning of the body of a request.
func (s *measured) look(h *http1.Head, body []byte) {
	if s.named {
		return
	}
	name := soap.OperationName(body)
	if len(name) == 0 && h != nil {
		name = actionOf(h)
	}
	if s.named = len(name) > 0; s.named {
		s.Name(name)
	}
}

// replyLook finds out whether a final reply is a fault, by its beginning.
type replyLook struct {
	head   int    // bytes of the head that pass before the body
	coding string // of the body, if it may be that of a fault
	looks  bool
}

// begins is called with the head of a final reply, of which so many bytes pass before the body.
func (l *replyLook) begins(h *http1.Head, passes int) {
	*l = replyLook{head: passes, looks: true}
	if codings := h.Tokens("Content-Encoding"); len(codings) == 1 && h.Status() >= 400 {
		l.coding = codings[0]
	}
}

// fault returns the beginning of the fault that the reply is, if what passes now shows it.
func (l *replyLook) fault(b []byte) []byte {
	if !l.looks {
		return nil
	}
	n := min(l.head, len(b))
	if l.head -= n; n == len(b) {
		return nil
	}
	l.looks = false
	start := b[n:]
	if !soap.IsFault(start) && l.coding != "" {
		start = inflated(l.coding, start)
	}
	if !soap.IsFault(start) {
		return nil
	}
	return start
}

// maxInflated is how much of a compressed reply is looked at, in bytes.
const maxInflated = 4 << 10

// inflated is the beginning of a compressed body; empty if the coding is not known.
func inflated(coding string, start []byte) []byte {
	var r io.Reader
	var err error
	switch coding {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(start))
	case "deflate":
		r, err = zlib.NewReader(bytes.NewReader(start))
	}
	if r == nil || err != nil {
		return nil
	}
	plain := make([]byte, maxInflated)
	n, _ := io.ReadFull(r, plain) // the rest is not there
	return plain[:n]
}

// lookAtReply looks at a part of the final reply.
func (s *measured) lookAtReply(b []byte) {
	if start := s.reply.fault(b); start != nil {
		s.Fault(start)
	}
}

// bound has the frames of the call count for its operation, once that is known. Earlier ones wait
// until then, whether they are on the wire yet or not, so that both ends count the same.
func (s *measured) bound(x interface{ Count(to *streamer.WireBytes) }) {
	if s.named {
		x.Count(s.Wire())
	}
}

// passed counts the time until now, at which the message that was here is passed on.
func (s *measured) passed() {
	if !s.since.IsZero() {
		s.Added(s.clock.Since(s.since))
		s.since = time.Time{}
	}
}

// actionOf is the last part of the action of a request, which most services name their operations
// by; empty if it shows none.
func actionOf(h *http1.Head) []byte {
	action, ok := h.Get("SOAPAction")
	if !ok {
		media, _ := h.Get("Content-Type")
		_, action, _ = bytes.Cut(media, []byte("action="))
		action, _, _ = bytes.Cut(action, []byte{';'})
	}
	action = bytes.TrimRight(bytes.Trim(action, "\" \t"), "/")
	return action[bytes.LastIndexAny(action, "/#:")+1:]
}

// lookedBody is the body of a reply that is looked at as it is read.
type lookedBody struct {
	io.Reader
	seen *measured
}

// Read implements [io.Reader].
func (b *lookedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.seen.lookAtReply(p[:n])
	return n, err
}

// Close implements [io.Closer].
func (b *lookedBody) Close() error {
	closeBody(b.Reader)
	return nil
}

// replyMeter passes on the reply to a call, and counts it.
type replyMeter struct {
	to  io.Writer
	odd bool // what passes may be a reply of the far proxy's own
	*measured
}

// Write implements [io.Writer].
func (w *replyMeter) Write(b []byte) (int, error) {
	w.lookAtReply(b)
	if w.odd {
		w.told(b)
	}
	n, err := w.to.Write(b)
	w.Reply(n)
	w.passed()
	return n, err
}

// requestMeter passes on a request from a stream, and counts it.
type requestMeter struct {
	to   io.Writer
	head *http1.Head // nil: it is written, or not known apart
	x    *streamer.Exchange
	*measured
}

// Write implements [io.Writer]. The head comes first.
func (w *requestMeter) Write(b []byte) (int, error) {
	if !w.named {
		body := b
		if w.head != nil {
			body = b[min(len(b), len(w.head.Octets)):]
		}
		w.look(w.head, body)
		w.head = nil
		w.bound(w.x)
	}
	n, err := w.to.Write(b)
	w.Request(n)
	w.passed()
	return n, err
}

// requestBodyMeter writes the body of a request to a stream, and counts it.
type requestBodyMeter struct {
	bodyWriter
	x    interface{ Count(to *streamer.WireBytes) }
	seen *measured
}

// Write implements [io.Writer].
func (w requestBodyMeter) Write(b []byte) (int, error) {
	if !w.seen.named {
		w.seen.look(nil, b)
		w.seen.bound(w.x)
	}
	w.seen.Request(len(b))
	return w.bodyWriter.Write(b)
}

// replyBodyMeter writes the body of a reply to a stream, and counts it.
type replyBodyMeter struct {
	bodyWriter
	seen *measured
}

// Write implements [io.Writer].
func (w replyBodyMeter) Write(b []byte) (int, error) {
	w.seen.lookAtReply(b)
	w.seen.Reply(len(b))
	return w.bodyWriter.Write(b)
}

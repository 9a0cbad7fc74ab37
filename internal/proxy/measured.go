package proxy

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/meter"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/pkg/clock"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Why something went to the upstream without a stream, beside the reasons of reasonOf.
const (
	plainSilent = "silent"  // the client waits for the server to speak first
	plainLane   = "no_lane" // the stream has no lane to spare
	plainLost   = "lost"    // the stream ended before anything of the call was sent
	// Calls that go nowhere:
	plainRequired = "required" // they are to go over a stream, and there is none
	plainNoRoute  = "no_route" // no route takes them
	plainDraining = "draining" // the proxy ends
	// toward an upstream that wants WS-ReliableMessaging:
	plainInSequence = "in_sequence" // in a sequence of this proxy
	plainOwn        = "own"         // as it is, in a sequence of its client or in none
)

// reasonOf is why there is no stream, in a word for counters.
func reasonOf(err error) string {
	var answered *noSession
	switch {
	case errors.Is(err, errNever):
		return "no_offer"
	case errors.Is(err, ErrTrying):
		return "not_yet"
	case errors.Is(err, errNoPartner):
		return "no_proxy"
	case schemeError(err) != nil:
		return "wrong_scheme"
	case session.TroubleOf(err) != 0:
		return "certificate"
	case errors.As(err, &answered) && answered.agreed.NoStream != "":
		return "blocked"
	case errors.As(err, &answered) && answered.agreed.NoRoom():
		return "no_room"
	case answered != nil && len(answered.agreed.Refused) > 0:
		return "refused"
	case answered != nil:
		return "no_partner"
	case errors.Is(err, &negotiate.Error{Code: negotiate.Unreachable}):
		return "unreachable"
	}
	return "failed"
}

// meterName is the name of an upstream for counters: its URL without what may be secret.
func meterName(u *url.URL) string {
	c := Canonical(u)
	return (&url.URL{Scheme: c.Scheme, Host: c.Host, Path: c.Path}).String()
}

// Canonical returns an http or https URL as all have it that lead to the same place: the host in
// lower case, without the usual port, and with a path (RFC 9110, section 4.2.3).
func Canonical(u *url.URL) *url.URL {
	c := *u
	c.Host = strings.TrimSuffix(strings.ToLower(u.Host), map[string]string{"http": ":80", "https": ":443"}[u.Scheme])
	c.Path = cmp.Or(u.Path, "/")
	return &c
}

// told notes the result of an attempt to open a stream.
func (u *upstream) told(l *link, err error) {
	u.teller.tell(l, err)
	if l != nil {
		u.alone.met()
		u.near.Opened(l.stream, u.p.cfg.Clock.Now())
	} else {
		u.near.Failed(reasonOf(err), err.Error(), u.p.cfg.Clock.Now())
	}
}

// farMeter is where what streams bring for an upstream counts; nil: no route leads anywhere.
func (p *core) farMeter(u *upstream) *meter.Upstream {
	if u == nil {
		return p.cfg.Meter.Far.Upstream(meter.Other)
	}
	return u.far
}

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

// bodyWriter writes the body of a message to a stream.
type bodyWriter interface {
	io.Writer
	Flush() error
}

// bodyMeter writes the body of a request, or of a reply, to a stream and counts it.
type bodyMeter struct {
	bodyWriter
	request *pendingCall // nil: it is a reply
	reply   *served
}

// Write implements [io.Writer].
func (w bodyMeter) Write(b []byte) (int, error) {
	if w.request == nil {
		w.reply.seen.lookAtReply(b)
		w.reply.seen.Reply(len(b))
		return w.bodyWriter.Write(b)
	}
	x := w.request
	if !x.seen.named {
		x.seen.look(nil, b)
		x.seen.bound(x.pending)
	}
	x.seen.Request(len(b))
	return w.bodyWriter.Write(b)
}

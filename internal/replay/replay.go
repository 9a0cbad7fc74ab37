// Package replay sends the requests of a recording or capture again, as messages of a new session,
// and compares the replies with the recorded ones: [Load], then [Recording.Run]. It sends messages,
// not packets: TCP, sequence numbers and tokens are those of the new session.
package replay

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"time"

	"github.com/hhfr/hhfr/internal/session"

	"github.com/hhfr/hhfr/internal/capture"
	"github.com/hhfr/hhfr/internal/http1"
	"github.com/hhfr/hhfr/internal/proxy"
	"github.com/hhfr/hhfr/internal/sender"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/soap"
)

// RecordedExchange is one recorded request and its reply.
type RecordedExchange struct {
	// Number is that of [capture.Decode]: exchanges in sending order from 1.
	Number int
	// Operation is the local name of the request's operation, empty if it has none.
	Operation string
	// Head is the HTTP head to send, without the fields of one connection; Body is the envelope.
	Head, Body []byte
	// At is when it was sent; zero: that is not known.
	At time.Time
	// Answered reports whether the whole reply is recorded: Status is that of its head, Reply its
	// body.
	Answered bool
	Status   int
	Reply    []byte
}

// Recording is what can be sent again.
type Recording struct {
	// Exchanges are in sending order.
	Exchanges []RecordedExchange
	// Skipped counts requests that are not sent again: incomplete ones, one-how messages, what
	// proxies pass on in parts, HTTP requests that are no SOAP, and requests on a stream that was
	// declined, since they were then sent elsewhere. Messages between proxies do not count.
	Skipped int
	// Found lists what a capture without any exchange has instead.
	Found map[string]int
	// Partial reports whether the capture lacks something, as in [capture.Result.Partial]; CutAt is
	// the offset at which it is cut off or damaged, -1 if it is not.
	Partial bool
	CutAt   int64
	// StoreFailure is that of [capture.Summary].
	StoreFailure error
}

// Load reads a capture. store has shapes that it lacks; nil: none. Errors: those of
// [capture.Decode]; Nothing if there is no request; the recording is returned with it.
func Load(ctx context.Context, r io.Reader, store ctxstore.Store) (*Recording, error) {
	decoded, err := capture.Decode(ctx, r, capture.DecodeConfig{Store: store})
	if err != nil {
		return nil, err
	}
	rec := &Recording{Found: decoded.Others, Partial: decoded.Partial(), CutAt: -1,
		StoreFailure: decoded.StoreFailure}
	rec.Skipped = decoded.Others[capture.OtherRequests]
	if decoded.Stats.Truncated {
		rec.CutAt = decoded.Stats.TruncatedAt
	}
	byNumber := map[int]*RecordedExchange{}
	var replies []*capture.Decoded
	for _, m := range decoded.Messages {
		switch {
		case m.Number == 0: // a negotiation: the new session has its own
		case m.Interim: // it answers nothing
		case m.Reply:
			replies = append(replies, m)
		case m.HHFR && proxy.Control(m.Head) != "":
			if proxy.Control(m.Head) == proxy.Tunnel {
				rec.Skipped++ // the begin of one; its further parts belong to it
			}
		default:
			path := ""
			if m.Stream > 0 {
				path = decoded.Streams[m.Stream-1].Service.Path
			}
			x, ok := exchange(m, path)
			if !ok {
				if rec.Skipped++; m.OneWay && !m.HHFR {
					rec.Found["messages over UDP"]++
				}
				continue
			}
			byNumber[m.Number] = x
		}
	}
	for _, m := range replies {
		if x := byNumber[m.Number]; x != nil && m.Whole() {
			x.answer(m)
		}
	}
	for _, x := range byNumber {
		rec.Exchanges = append(rec.Exchanges, *x)
	}
	slices.SortStableFunc(rec.Exchanges, func(a, b RecordedExchange) int { return cmp.Compare(a.Number, b.Number) })
	if len(rec.Exchanges) == 0 {
		return rec, &Error{Code: Nothing}
	}
	return rec, nil
}

// ofConnection are the fields that concern one connection, or its host.
var ofConnection = []string{"Host", "Content-Length", "Connection", "Transfer-Encoding", "Expect", "Upgrade",
	negotiate.Field, negotiate.FragmentsField}

// exchange converts a recorded request to one that can be sent again.
func exchange(m *capture.Decoded, path string) (*RecordedExchange, bool) {
	if !m.Whole() || m.OneWay || m.Declined {
		return nil, false
	}
	head, ok := RequestHead(m, path)
	return &RecordedExchange{Number: m.Number, Operation: m.Operation.Local, At: m.First, Head: head,
		Body: m.Body}, ok
}

// RequestHead is the HTTP head of a request as it can be sent again, without the fields of one
// connection. path is that of its stream's service. It reports whether there is one: not for parts
// of a request that proxies pass on, and not for what is no HTTP request.
func RequestHead(m *capture.Decoded, path string) ([]byte, bool) {
	octets := m.Head
	if octets == nil {
		octets = negotiate.DefaultRequestHead(cmp.Or(path, "/"))
	}
	h, n, err := http1.ParseHead(octets, 0)
	if err != nil || h.IsReply() || framed(octets[n:]) {
		return nil, false
	}
	drop := func(f http1.FieldLine) bool {
		if f.Is("Content-Encoding") && (!m.HHFR || isUncoded(octets[n:])) || f.Is("Accept-Encoding") && !m.HHFR {
			return true // the decoder has undone the coding, and the replies to compare with are not coded either
		}
		return slices.ContainsFunc(ofConnection, f.Is)
	}
	return http1.AppendEdited(nil, &h, drop, nil), true
}

// framed reports whether the line after an HTTP head says that its body has its framing, or a part
// of it, between two proxies (docs/proxy.md, section 3).
func framed(behind []byte) bool {
	return bytes.HasPrefix(behind, []byte("=r")) || bytes.HasPrefix(behind, []byte("=u"))
}

// isUncoded reports whether it says that the body is as it was before it was coded.
func isUncoded(behind []byte) bool { return bytes.HasPrefix(behind, []byte("=d")) }

func (x *RecordedExchange) answer(m *capture.Decoded) {
	x.Answered, x.Status, x.Reply = true, 200, m.Body
	if m.Head == nil {
		return
	}
	if h, n, err := http1.ParseHead(m.Head, 0); err == nil && h.IsReply() && !framed(m.Head[n:]) {
		x.Status = h.Status()
		if own, _, err := http1.ParseHead(x.Head, 0); err == nil && isUncoded(m.Head[n:]) {
			x.Head = http1.AppendEdited(nil, &own, func(f http1.FieldLine) bool { return f.Is("Accept-Encoding") }, nil)
		}
	} else {
		x.Answered = false
	}
}

// Target sets the path and query of all requests to those of a URL, if that has a path. Errors:
// BadTarget.
func (r *Recording) Target(to *url.URL) error {
	if pathless(to) {
		return nil
	}
	return r.eachHead(func(head []byte, h *http1.Head) ([]byte, error) {
		line, err := http1.AppendRequestLine(nil, string(h.Method()), to.RequestURI(), "HTTP/1.1")
		return append(line, head[bytes.IndexByte(head[len(h.Before()):], '\n')+len(h.Before())+1:]...), err
	})
}

// eachHead changes the heads of all requests.
func (r *Recording) eachHead(change func(head []byte, h *http1.Head) ([]byte, error)) error {
	for i := range r.Exchanges {
		x := &r.Exchanges[i]
		h, _, err := http1.ParseHead(x.Head, 0)
		if err == nil {
			x.Head, err = change(x.Head, &h)
		}
		if err != nil {
			return &Error{Code: BadTarget, Err: err}
		}
	}
	return nil
}

// SetFields sets HTTP fields in the heads of all requests, in the place of recorded ones of these
// names.
func (r *Recording) SetFields(fields []soap.Field) error {
	var add []byte
	for _, f := range fields {
		var err error
		if add, err = http1.AppendField(add, f.Name, f.Value); err != nil {
			return &Error{Code: BadTarget, Err: err}
		}
	}
	given := func(f http1.FieldLine) bool {
		return slices.ContainsFunc(fields, func(g soap.Field) bool { return f.Is(g.Name) })
	}
	return r.eachHead(func(_ []byte, h *http1.Head) ([]byte, error) {
		return http1.AppendEdited(nil, h, given, add), nil
	})
}

// Offer is the URL at which to negotiate for requests to a URL: that URL, or, if it has no path and
// each request goes to its own, that of the first request.
func (r *Recording) Offer(to *url.URL) *url.URL {
	if !pathless(to) || len(r.Exchanges) == 0 {
		return to
	}
	if h, _, err := http1.ParseHead(r.Exchanges[0].Head, 0); err == nil {
		if first, err := url.ParseRequestURI(string(h.Target())); err == nil && first.Host == "" {
			return to.ResolveReference(first)
		}
	}
	return to
}

func pathless(to *url.URL) bool {
	return to.EscapedPath() == "" || to.EscapedPath() == "/" && to.RawQuery == ""
}

// Outcome is the outcome of one request.
type Outcome struct {
	Exchange *RecordedExchange
	// Incoming is what arrived; its Err is why there is no reply.
	*sender.Incoming
	// Difference is how the reply differs from the recorded one; nil if it does not, or none is
	// recorded.
	Difference *Difference
}

// RunConfig is how requests are sent again, and replies compared.
type RunConfig struct {
	// InFlight is how many requests wait for their replies at once, at most.
	InFlight int
	// Pace 1 keeps the times between requests that the recording has, 2 halves them, and so on; 0:
	// each request is sent as soon as it may be.
	Pace float64
	// Stamp, if given, makes the body of a request new: what of it is good for a time only.
	Stamp   func(body []byte) []byte
	Compare Comparison
}

// wait waits until an exchange is due that came so long after the first one in the recording.
func (w *RunConfig) wait(ctx context.Context, begun time.Time, after time.Duration) {
	if w.Pace <= 0 {
		return
	}
	due := time.NewTimer(time.Until(begun.Add(time.Duration(float64(after) / w.Pace))))
	defer due.Stop()
	select {
	case <-due.C:
	case <-ctx.Done():
	}
}

// Run sends the requests over a session, and yields the outcome of each, in order. It ends when all
// are sent, or ctx is done.
func (r *Recording) Run(ctx context.Context, sess *session.Session, how RunConfig) iter.Seq[Outcome] {
	messages := func(yield func(sender.MessageToSend, error) bool) {
		begun := time.Now()
		for i := range r.Exchanges {
			x := &r.Exchanges[i]
			how.wait(ctx, begun, x.At.Sub(r.Exchanges[0].At))
			body := x.Body
			if how.Stamp != nil {
				body = how.Stamp(body)
			}
			if !yield(
				sender.MessageToSend{Name: fmt.Sprintf("exchange %d", x.Number), Head: x.Head, Body: body},
				nil,
			) {
				return
			}
		}
	}
	return func(yield func(Outcome) bool) {
		for in := range sender.Send(ctx, sess, messages, how.InFlight) {
			x := &r.Exchanges[in.Number-1]
			out := Outcome{Exchange: x, Incoming: in}
			if in.Err == nil && x.Answered {
				out.Difference = how.Compare.Compare(x.Status, x.Reply, in.Status(), in.Body)
			}
			if !yield(out) {
				return
			}
		}
	}
}

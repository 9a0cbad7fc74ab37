package capture

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/capture/flow"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer/frame"
)

// DecodeConfig is what [Decode] and [DecodeStreams] need beside their input. The zero value works.
type DecodeConfig struct {
	// Store has shapes that the input lacks, and the contexts of sessions: which are known, and
	// what unchanging headers they have; nil: none.
	Store ctxstore.Store
	// MaxMessage is the longest joined message, in octets; 0 means 1 GiB.
	MaxMessage int64
	// Limits are those of reassembly.
	Limits flow.Limits
	// EachRun, if given, is told every contiguous run of every hhfr direction, with the number of its stream, from 1, and 0 for the direction of who opened the connection.
	EachRun func(stream, direction int, r *flow.Run) error
}

// Result is all that was found.
type Result struct {
	// Messages are in the order of their first octets.
	Messages []*Decoded
	Streams  []*Stream
	Stats    flow.Stats
	// Others says what was found instead of SOAP and hhfr, by kind, in connections or datagrams.
	Others map[string]int
}

// Counts are what people want to know of the messages.
type Counts struct{ Messages, Verified, Unverified, Withdrawn, Incomplete, Cancelled, Undecodable, Unchecked int }

// Counts counts messages by state.
func (r *Result) Counts() (c Counts) {
	for _, m := range r.Messages {
		c.Messages++
		*map[State]*int{Verified: &c.Verified, Unverified: &c.Unverified, Withdrawn: &c.Withdrawn, Incomplete: &c.Incomplete,
			Cancelled: &c.Cancelled, Undecodable: &c.Undecodable, Unchecked: &c.Unchecked}[m.State]++
	}
	return c
}

// Partial tells that something is missing: octets, the end of the capture, shapes, or messages that failed their check. Messages that nothing covers yet do not count.
func (r *Result) Partial() bool {
	c := r.Counts()
	if r.Stats.Truncated || r.Stats.Gaps > 0 || r.Stats.Evicted > 0 || r.Stats.Dropped > 0 || c.Withdrawn+c.Incomplete+c.Undecodable > 0 {
		return true
	}
	return slices.ContainsFunc(r.Streams, func(s *Stream) bool { return s.Cut || len(s.Problems) > 0 })
}

type decoder struct {
	cfg      DecodeConfig
	shapes   *shapes
	contexts contexts
	result   *Result
}

func newDecoder(ctx context.Context, cfg DecodeConfig) *decoder {
	if cfg.MaxMessage == 0 {
		cfg.MaxMessage = defaultMaxMessage
	}
	return &decoder{cfg: cfg, result: &Result{Others: map[string]int{}}, shapes: newShapes(ctx, cfg.Store),
		contexts: contexts{store: cfg.Store, agreed: map[[16]byte][]string{}, stored: map[[16]byte][]string{}}}
}

// Decode reads a whole capture and gives its messages: those of hhfr streams, found by content, and plain SOAP in HTTP. A capture that is cut off or lacks packets is
// no error; [Result.Partial] tells. Errors are [Error], those of the store's context, and those of EachRun.
func Decode(ctx context.Context, r io.Reader, cfg DecodeConfig) (*Result, error) {
	f, err := flow.Open(r)
	if err != nil {
		return nil, err
	}
	dec := newDecoder(ctx, cfg)
	var flows []*flow.Flow
	grams := newDatagrams(cfg.Limits)
	dec.result.Stats, err = flow.Flows(f, flow.Config{Limits: cfg.Limits, Flow: func(f *flow.Flow) error { flows = append(flows, f); return ctx.Err() }, Datagram: grams.take})
	if err != nil {
		return nil, err
	}
	flows = append(flows, grams.flows(&dec.result.Stats, dec.result.Others)...)
	for _, f := range flows {
		if isStream(f) {
			dec.survey([2][]flow.Run{f.Dirs[0].Runs, f.Dirs[1].Runs})
		}
	}
	for _, f := range flows {
		if err := dec.flow(f); err != nil {
			return nil, err
		}
	}
	dec.putHeadersBack(ctx)
	dec.number()
	return dec.result, ctx.Err()
}

// isStream tells flows that carry an hhfr stream by their content.
func isStream(f *flow.Flow) bool {
	for _, d := range f.Dirs {
		for i := range d.Runs {
			if i == 0 && frame.BeginsStream(d.Runs[i].Data) || frame.HasSync(d.Runs[i].Data) {
				return true
			}
		}
	}
	return false
}

func (dec *decoder) flow(f *flow.Flow) error {
	if isStream(f) {
		if s, messages := dec.decodeStream([2][]flow.Run{f.Dirs[0].Runs, f.Dirs[1].Runs}); s != nil {
			s.Src, s.Dst, s.Facts = f.Src, f.Dst, facts(f)
			s.Cut = s.Cut || f.Dirs[0].GapAfter > 0 || f.Dirs[1].GapAfter > 0
			dec.add(f.ID, f, messages)
			dec.result.Streams = append(dec.result.Streams, s)
			return dec.eachRun(f)
		}
		dec.result.Others["streams without a sync frame to trust"]++
		if f.ID > dec.result.Stats.TCPFlows {
			return nil // over datagrams, which carry nothing else
		}
	}
	h := flow.HTTP(f, flow.HTTPConfig{Body: dec.cfg.MaxMessage})
	plain := dec.plain(f, h)
	switch {
	case len(plain) > 0:
		dec.add(f.ID, f, plain)
	case len(h.Exchanges) > 0:
		dec.result.Others["HTTP connections without SOAP"]++
	default:
		kind := unsynced(f)
		if kind == "" {
			kind = kindOf(f)
		}
		dec.result.Others[kind]++
	}
	return nil
}

// kindOf names a connection that is neither HTTP nor hhfr.
func kindOf(f *flow.Flow) string {
	for _, d := range f.Dirs {
		if len(d.Runs) == 0 {
			continue
		}
		b := d.Runs[0].Data
		switch {
		case len(b) > 3 && b[0] == 22 && b[1] == 3:
			return "TLS connections (record inside TLS, or give its keys to another tool first)"
		case strings.HasPrefix(string(b[:min(len(b), 16)]), "PRI * HTTP/2.0"):
			return "HTTP/2 connections"
		}
		return "other TCP connections"
	}
	return "TCP connections without data"
}

func (dec *decoder) eachRun(f *flow.Flow) error {
	if dec.cfg.EachRun == nil {
		return nil
	}
	for i := range f.Dirs {
		for k := range f.Dirs[i].Runs {
			if err := dec.cfg.EachRun(len(dec.result.Streams), i, &f.Dirs[i].Runs[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// facts is the first packet comment that is JSON.
func facts(f *flow.Flow) string {
	for _, d := range f.Dirs {
		for _, r := range d.Runs {
			for _, m := range r.Marks {
				for _, c := range m.Comments {
					if strings.HasPrefix(c, "{") {
						return c
					}
				}
			}
		}
	}
	return ""
}

// OtherRequests is the kind in [Result.Others] of HTTP requests with a body that is no SOAP, over
// connections that carry SOAP, too.
const OtherRequests = "HTTP requests without SOAP"

// plain gives the SOAP messages among the HTTP messages of a flow.
func (dec *decoder) plain(f *flow.Flow, h flow.HTTPResult) (messages []*Decoded) {
	others := 0
	for i, x := range h.Exchanges {
		request, reply := decodePlain(x.Request), decodePlain(x.Reply)
		if !isSOAP(request) && !isSOAP(reply) {
			if request != nil && len(request.Body) > 0 {
				others++
			}
			continue
		}
		for _, d := range []*Decoded{request, reply} {
			if d != nil {
				d.Exchange, d.origin, d.Reply = uint64(i+1), h.Requests, d == reply
				messages = append(messages, d)
			}
		}
	}
	if len(messages) > 0 && others > 0 {
		dec.result.Others[OtherRequests] += others
	}
	return messages
}

func isSOAP(d *Decoded) bool { return d != nil && d.Version != soap.None }

func decodePlain(m *flow.Message) *Decoded {
	if m == nil {
		return nil
	}
	d := &Decoded{Head: m.Octets, Body: m.Body, Wire: m.Wire, First: m.First, Last: m.Last, Packet: m.FirstPacket, State: Unchecked}
	if len(m.Head.Octets) > 0 {
		d.Head = m.Head.Octets
	}
	if !m.Complete() {
		d.State, d.Why = Incomplete, m.Why.String()
	}
	d.recognize()
	if contentType, ok := m.Head.Get("Content-Type"); ok && d.Version == soap.None {
		d.Version = soap.ParseContentType(string(contentType)).BinaryVersion()
	}
	if m.CodingErr != nil {
		d.Why = strings.TrimSpace(d.Why + " content coding " + m.Coding + ": " + m.CodingErr.Error())
	}
	return d
}

// add notes where messages come from.
func (dec *decoder) add(id int, f *flow.Flow, messages []*Decoded) {
	for _, m := range messages {
		m.flow = id
		if m.Src, m.Dst = f.Src, f.Dst; (m.origin == 1) != m.Reply {
			m.Src, m.Dst = f.Dst, f.Src
		}
	}
	dec.result.Messages = append(dec.result.Messages, messages...)
}

// negotiation tells the messages by which two ends agree on a session; they are listed, but not counted.
func (d *Decoded) negotiation() bool {
	return !d.HHFR && (d.Operation.Space == xmlns.HHFRNegotiation)
}

// ErrNothing says that an input has neither hhfr nor SOAP.
var ErrNothing = errors.New("no hhfr stream and no SOAP")

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hhfr/hhfr/internal/codec/binary"
	"github.com/hhfr/hhfr/internal/link"
	"github.com/hhfr/hhfr/internal/session"
	"github.com/hhfr/hhfr/internal/wire"
	"github.com/hhfr/hhfr/pkg/ctxstore"
	"github.com/hhfr/hhfr/pkg/ctxstore/memory"
	"github.com/hhfr/hhfr/pkg/ctxstore/wscontext"
	"github.com/hhfr/hhfr/pkg/negotiate"
	"github.com/hhfr/hhfr/pkg/schema"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/streamer"
)

// Overhead is one of the papers' costs beside the messages (paper 2, sections 5.1 and 5.3).
type Overhead struct {
	// Name is Oa-set and Oa-get (a context of 847 bytes in the context store, each over a new
	// connection), Ob (negotiation with a schema of 326 bytes, and opening the stream), or Oc (what
	// the first message with a shape takes more than the second).
	Name     string  `json:"name"`
	Link     string  `json:"link"`           // the profile; empty: the network to a peer
	Repeat   int     `json:"repeat"`         // from 1
	Millis   float64 `json:"ms"`             // time of the link
	Request  int     `json:"request_octets"` // of the SOAP request, without its HTTP head; Oc: none
	Sent     int64   `json:"sent_octets"`    // on the link, with 40 for the headers of each packet
	Received int64   `json:"received_octets"`
	Compute  float64 `json:"compute_ms,omitempty"`           // Oc: computing time of learning or compiling, once
	Paper    float64 `json:"paper_ms,omitempty"`             // what the papers measured
	PaperReq int     `json:"paper_request_octets,omitempty"` // the size of their request, in bytes
}

// Wired is the profile beside which overheads are measured: a host with a wire, as in the papers.
const Wired = "wifi,rate=100M,rtt=1ms"

// sampleHeader is a header of WS-ReliableMessaging of 847 bytes, the size of that of the papers.
const sampleHeader = `<wsrm:Reliability xmlns:wsrm="http://schemas.xmlsoap.org/ws/2005/02/rm" ` +
	`xmlns:wsa="http://schemas.xmlsoap.org/ws/2004/08/addressing"><wsrm:Sequence>` +
	`<wsrm:Identifier>http://services.example.org/sequences/6f1c3c62-9d0f-4c5e-8a55-0f2d6f0e7b41</wsrm:Identifier>` +
	`<wsrm:MessageNumber>17</wsrm:MessageNumber><wsrm:LastMessage/></wsrm:Sequence>` +
	`<wsrm:Expires>2026-06-11T04:31:40.000Z</wsrm:Expires><wsrm:AckRequested>` +
	`<wsrm:Identifier>http://services.example.org/sequences/6f1c3c62-9d0f-4c5e-8a55-0f2d6f0e7b41</wsrm:Identifier>` +
	`</wsrm:AckRequested><wsrm:SequenceAcknowledgement>` +
	`<wsrm:Identifier>http://services.example.org/sequences/metering-head-end-of-t/` +
	`0d4bb5c1-21a9-4a4f-9b65-1c0f7a55e0d2</wsrm:Identifier>` +
	`<wsrm:AcknowledgementRange Lower="1" Upper="16"/><wsrm:AcknowledgementRange Lower="18" Upper="21"/>` +
	`</wsrm:SequenceAcknowledgement></wsrm:Reliability>`

// sampleSchema is an HHFR Schema of 326 bytes, the size of that of the papers.
const sampleSchema = `<xs:element name="concat" targetNamespace="urn:hhfr:services:1">
  <xs:complexType>
    <xs:element name="InputString1" type="string"/>
    <xs:element name="InputString2" type="string"/>
    <xs:element name="InputString3" type="string"/>
    <xs:element name="InputString4" type="string"/>
  </xs:complexType>
</xs:element>
`

// overheads measures all of them on a link, or, without a name, to the peer.
func (r *Results) overheads(ctx context.Context, cfg *SessionConfig, name string) error {
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	s, err := cfg.trial("concat", Explicit, 4, 2, newKnown(store))
	if err != nil {
		return err
	}
	if s.transport = "tcp"; name != "" {
		profile, err := link.ParseProfile(name)
		if err != nil {
			return err
		}
		s.on(profile.Reliable())
		s.speed = min(s.profile.Speed(), 4)
	}
	for repeat := range cfg.Repeat {
		for _, measure := range []func(context.Context) ([]Overhead, error){s.storeAccess, s.negotiationAndShape} {
			rows, err := measure(ctx)
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, errNoStore):
				if repeat == 0 {
					r.LeftOut = append(r.LeftOut, LeftOut{"Oa", err.Error()})
				}
				continue
			case err != nil:
				return err
			}
			for _, row := range rows {
				row.Link, row.Repeat = name, repeat+1
				row.Paper, row.PaperReq = paperOverhead(row.Name, name)
				r.Overheads = append(r.Overheads, row)
				if cfg.EachOverhead != nil {
					if err := cfg.EachOverhead(row); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// errNoStore says that the peer serves no context store.
var errNoStore = errors.New("the peer serves no context store at /context: hhfr serve --context does")

// paperOverhead is what the papers have: on a phone at 14.4 kbit/s, and on a wired host.
func paperOverhead(name, link string) (ms float64, request int) {
	if link == "" {
		link = "14k4" // a phone stands beside theirs
	}
	times := map[string]map[string]float64{
		"Oa-set": {"14k4": 4120, Wired: 20}, "Oa-get": {"14k4": 4120, Wired: 20}, "Ob": {"14k4": 4800},
	}
	requests := map[string]int{"Oa-set": 1580, "Ob": 1070}
	return times[name][link], requests[name]
}

// measured is the cost of what do does, on a link of its own for each.
func (c *nearEnd) measured(l lines, do func() error) (o Overhead, err error) {
	before, began := l.stats(), c.clock.Now()
	err = do()
	o.Millis = millis(c.clock.Since(began))
	d := l.stats().since(before)
	o.Sent, o.Received = d.up.Wire, d.down.Wire
	return o, err
}

// storeAccess measures Oa: a context is set, and read.
func (s *trial) storeAccess(ctx context.Context) (rows []Overhead, err error) {
	c := &nearEnd{trial: s, clock: s.clock()}
	ends := newSockets(c.clock)
	defer ends.close()
	at, end, err := s.contextStore(ctx, ends)
	if err != nil {
		return nil, err
	}
	defer end()
	l, err := c.lines(ends)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	sizes := &requestSizes{base: &http.Transport{
		DisableKeepAlives:  true,
		DialContext:        func(ctx context.Context, _, addr string) (net.Conn, error) { return l.connect(ctx, addr) },
		DisableCompression: true,
	}}
	h, err := wscontext.NewContextServiceHandler(at, wscontext.ClientConfig{Transport: sizes, Timeout: s.timeout()})
	if err != nil {
		return nil, err
	}
	const uri = "urn:example:header"
	set, err := c.measured(l, func() error { return h.SetContent(ctx, uri, []byte(sampleHeader)) })
	if err != nil && s.peer != nil {
		return nil, fmt.Errorf("%w (%w)", errNoStore, err)
	}
	if err != nil {
		return nil, err
	}
	set.Name, set.Request = "Oa-set", sizes.last
	get, err := c.measured(l, func() error {
		content, err := h.GetContent(ctx, uri)
		if err == nil && string(content) != sampleHeader {
			err = fmt.Errorf("another context than was set: %.80q", content)
		}
		return err
	})
	get.Name, get.Request = "Oa-get", sizes.last
	return []Overhead{set, get}, err
}

// contextStore is the URL of the peer's context store, or of one that is served here until end.
func (s *trial) contextStore(ctx context.Context, ends *sockets) (at string, end func(), err error) {
	if s.peer != nil {
		return s.peer.url + "/context", func() {}, nil
	}
	store := memory.New(memory.Config{})
	service, err := wscontext.New(wscontext.Config{Store: store})
	if err != nil {
		return "", nil, errors.Join(err, store.Close())
	}
	listener, err := ends.listen(ctx, plainAddr)
	if err != nil {
		return "", nil, errors.Join(err, store.Close())
	}
	server := &http.Server{Handler: service, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(listener) }()
	return "http://" + plainAddr + "/", func() {
		_ = server.Close()
		_ = store.Close()
	}, nil
}

// requestSizes notes the length of request bodies.
type requestSizes struct {
	base http.RoundTripper
	last int
}

// RoundTrip implements [http.RoundTripper].
func (r *requestSizes) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.ContentLength > 0 {
		r.last = int(req.ContentLength)
	}
	return r.base.RoundTrip(req)
}

// negotiationAndShape measures Ob, and Oc by the first two messages of that session.
func (s *trial) negotiationAndShape(ctx context.Context) (rows []Overhead, err error) {
	described, err := schema.Parse([]byte(sampleSchema))
	if err != nil {
		return nil, err
	}
	messages, err := s.messages()
	if err != nil {
		return nil, err
	}
	c := &nearEnd{trial: s, clock: s.clock()}
	ends := newSockets(c.clock)
	defer ends.close()
	server, err := s.server(ctx, c.clock, ends)
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.close() }()
	l, err := c.lines(ends)
	if err != nil {
		return nil, err
	}
	defer func() { _ = l.Close() }()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) { return l.connect(ctx, addr) },
	}
	defer transport.CloseIdleConnections()
	sizes := &requestSizes{base: transport}
	store := memory.New(memory.Config{})
	defer func() { _ = store.Close() }()
	var opened *session.Session
	ob, err := c.measured(l, func() (err error) {
		opened, err = session.Dial(ctx, server.url+"/"+s.service, session.Config{
			HTTPClient: &http.Client{Transport: sizes},
			Transports: map[string]streamer.Transport{"tcp": l.streams(nil)},
			Mode:       negotiate.Explicit, Store: store, Coders: newKnown(store).coders, RequireHHFR: true,
			RequestSchema: described, Clock: c.clock, Timeout: s.timeout(),
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = opened.Close() }()
	ob.Name, ob.Request = "Ob", sizes.last
	var both [2]Overhead
	for i := range both {
		if both[i], err = c.measured(l, func() error { return call(ctx, opened, messages[i]) }); err != nil {
			return nil, err
		}
	}
	oc := Overhead{Name: "Oc", Millis: max(both[0].Millis-both[1].Millis, 0), Sent: both[0].Sent - both[1].Sent,
		Received: both[0].Received - both[1].Received}
	oc.Compute, err = learning(messages[0])
	return []Overhead{ob, oc}, err
}

func call(ctx context.Context, s *session.Session, message []byte) error {
	reply, err := s.Call(ctx, streamer.NewMessage(nil, message))
	if err != nil {
		return err
	}
	body, err := reply.ReadAll(maxReply)
	if err == nil && soap.Recognize(body).Fault {
		err = fmt.Errorf("not a reply: %.200s", body)
	}
	return err
}

// learning is the computing time of the shape of a message: it is found, compiled and stored.
func learning(message []byte) (ms float64, err error) {
	const rounds, segment = 20, 16 << 10
	best := time.Hour
	for range rounds {
		store := memory.New(memory.Config{})
		coder := binary.NewBook(ctxstore.Shapes{Store: store}).Coder(binary.Options{})
		began := time.Now()
		split := coder.Split(0, segment, func(bool, wire.Part) error { return nil })
		err := split.All(message)
		best = min(best, time.Since(began))
		split.Free()
		if err = errors.Join(err, store.Close()); err != nil {
			return 0, err
		}
	}
	return float64(best.Nanoseconds()) / 1e6, nil
}

package sequenced

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
	"github.com/hhfr/hhfr/pkg/wsrm/soaprm"
)

// ForwardedReply is the reply to a request, for its client.
type ForwardedReply struct {
	Status int
	Fields http.Header // without those of framing
	Body   []byte
}

// forwardedCall is a request under way.
type forwardedCall struct {
	id, action string
	version    soap.Version
	addressing string // the namespace of its client, or that of the version of sequences
	principal  string // who asks, and in which way
	addressed  bool   // its client uses WS-Addressing
	oneWay     bool
	envelope   []byte
	fields     http.Header // of its client, from end to end

	mu   sync.Mutex
	last *ForwardedReply // as it came
}

// credentials are the fields that say who asks.
var credentials = []string{"Authorization", "Cookie", "Proxy-Authorization"}

func newForwardedCall(version soaprm.Protocol, fields http.Header, message []byte) (*forwardedCall, error) {
	a, err := soap.Split(message, soap.Limits{})
	if err != nil {
		return nil, err
	}
	p, err := addressing.Read(&a.Envelope)
	if err != nil {
		return nil, err
	}
	c := &forwardedCall{version: a.Version, addressing: version.Addressing(), addressed: p != nil,
		action: soap.ParseAction(fields.Get("SOAPAction")), envelope: message, fields: endToEnd(fields)}
	if a.Version == soap.V12 {
		c.action = soap.ParseContentType(fields.Get("Content-Type")).Action
	}
	if p != nil {
		c.id, c.addressing = p.MessageID, p.Space
		c.oneWay = p.ReplyTo != nil && p.ReplyTo.Address == noneAddress
	}
	if c.id == "" {
		c.id = addressing.NewID()
		id := soap.Element{Name: soap.Name{Space: c.addressing, Local: "MessageID"}, Text: c.id}
		if c.envelope, err = a.Rewrite(nil, []soap.Element{id}); err != nil {
			return nil, err
		}
	}
	who := []string{c.version.String(), c.addressing}
	for _, name := range credentials {
		who = append(who, strings.Join(fields.Values(name), ","))
	}
	c.principal = strings.Join(who, "\n")
	return c, nil
}

// endToEnd are the fields of a message that are not about one connection, nor made anew for
// another body.
func endToEnd(fields http.Header) http.Header {
	kept := maps.Clone(fields)
	for _, list := range fields.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			kept.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Content-Length", "Content-Type", "Expect", "Keep-Alive", "SOAPAction",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Accept-Encoding"} {
		kept.Del(name)
	}
	return kept
}

// reply is what the client gets: the reply of the service without its sequence, and without
// WS-Addressing if the client uses none.
func (c *forwardedCall) reply(r *soaprm.ReceivedReply) *ForwardedReply {
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if r == nil { // it wants none
		return &ForwardedReply{Status: http.StatusAccepted, Fields: http.Header{}}
	}
	out := &ForwardedReply{Status: r.Status, Fields: http.Header{}, Body: r.Envelope}
	if last != nil && last.Status == r.Status {
		out.Fields = endToEnd(last.Fields)
		if c.addressed {
			if whole, err := withoutSequence(last.Body); err == nil {
				out.Body = whole
			}
		}
	}
	out.Fields.Set("Content-Type", r.ContentType)
	return out
}

// withoutSequence is an envelope without the header blocks of WS-ReliableMessaging.
func withoutSequence(envelope []byte) ([]byte, error) {
	a, err := soap.Split(envelope, soap.Limits{})
	if err != nil {
		return nil, err
	}
	return a.Rewrite(func(e *soap.Element) bool {
		return e.Name.Space == xmlns.WSRM || e.Name.Space == xmlns.WSRM10
	}, nil)
}

// observer gives the requests of a sequence the fields of their clients, and sees what is answered.
type observer struct {
	of     *openSource
	next   http.RoundTripper
	fields http.Header // of the client that had the sequence created, for what is no request of one
	// denied is how the service answered that it wants other credentials for a sequence; nil: it
	// did not. It is good once the sequence is opened, or is not.
	denied *ForwardedReply

	mu    sync.Mutex
	calls map[string]*forwardedCall // by the MessageID
}

func (o *observer) add(c *forwardedCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls[c.id] = c
}

func (o *observer) remove(c *forwardedCall) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls[c.id] == c {
		delete(o.calls, c.id)
	}
}

// RoundTrip implements [http.RoundTripper].
func (o *observer) RoundTrip(r *http.Request) (*http.Response, error) {
	octets, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c, said := o.callOf(octets)
	fields := o.fields
	if c != nil {
		fields = c.fields
	}
	sent := r.Clone(r.Context())
	sent.Body = io.NopCloser(bytes.NewReader(octets))
	for name, values := range fields {
		if name == "Host" {
			sent.Host = values[0]
		} else if sent.Header[name] == nil {
			sent.Header[name] = values
		}
	}
	response, err := o.next.RoundTrip(sent)
	if err != nil || c == nil && response.StatusCode != http.StatusUnauthorized &&
		response.StatusCode != http.StatusForbidden {
		return response, err
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, headers.MaxMessage+1))
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if c == nil {
		o.deny(&ForwardedReply{response.StatusCode, endToEnd(response.Header), body}, response.Header)
		return response, nil
	}
	c.mu.Lock()
	c.last = &ForwardedReply{response.StatusCode, response.Header.Clone(), body}
	c.mu.Unlock()
	if response.StatusCode/100 == 2 && acknowledgesOnly(body, said) {
		o.of.source.Unwanted(said.Number) // the answer to this very request is all that there is
	}
	return response, nil
}

// deny keeps an answer that refuses a sequence, until that is opened.
func (o *observer) deny(reply *ForwardedReply, fields http.Header) {
	select {
	case <-o.of.opened:
	default:
		reply.Fields.Set("Content-Type", fields.Get("Content-Type"))
		o.denied = reply
	}
}

// callOf is the call of a request, and what it says of its sequence; nil: it is no client's.
func (o *observer) callOf(octets []byte) (*forwardedCall, *header.Blocks) {
	a, err := soap.Split(octets, soap.Limits{})
	if err != nil {
		return nil, nil
	}
	p, err := addressing.Read(&a.Envelope)
	if err != nil || p == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.calls[p.MessageID], header.Parse(&a.Envelope)
}

// acknowledgesOnly reports whether an answer acknowledges a message, and says no more.
func acknowledgesOnly(answer []byte, sent *header.Blocks) bool {
	a, err := soap.Split(answer, soap.Limits{})
	if err != nil || len(a.Body) > 0 || sent == nil {
		return false
	}
	b := header.Parse(&a.Envelope)
	if b == nil {
		return false
	}
	for _, ack := range b.Acknowledgements {
		for _, run := range ack.Ranges {
			if ack.Sequence == sent.Sequence && run[0] <= sent.Number && sent.Number <= run[1] {
				return true
			}
		}
	}
	return false
}

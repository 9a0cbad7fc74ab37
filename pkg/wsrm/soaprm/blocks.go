package soaprm

import (
	"context"
	"slices"
	"strings"

	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/addressing"
	"github.com/hhfr/hhfr/pkg/soap/headers"
	"github.com/hhfr/hhfr/pkg/wsrm/header"
)

// blocks is the header handler of WS-ReliableMessaging: what a message says of sequences is in the
// context of who processes it. What is to be said is known when the message leaves, and added then.
type blocks struct{}

type blocksKey struct{}

// said is what a message says of sequences; nil: nothing.
func said(ctx context.Context) *header.Blocks {
	b, _ := ctx.Value(blocksKey{}).(*header.Blocks)
	return b
}

// Understands reports whether a name is one of a header block of either version, or that of
// WS-MakeConnection. Those that bind a
// sequence to its security are not among them.
func (blocks) Understands(name soap.Name) bool {
	if name == connectionName("MessagePending") {
		return true
	}
	if name.Space != V10.Namespace() && name.Space != V11.Namespace() {
		return false
	}
	switch name.Local {
	case "Sequence", ackRequested, acknowledgementOnly, "SequenceFault":
		return true
	}
	return false
}

// Role is that of the ultimate receiver.
func (blocks) Role() string { return "" }

// In reads the blocks. What breaks a rule is refused as a whole, but for what peers in the field
// write and mean nothing by.
func (blocks) In(ctx context.Context, e *soap.Envelope) (context.Context, error) {
	for i := range e.Header {
		if h := &e.Header[i]; h.Name == connectionName("MessagePending") {
			ctx = context.WithValue(ctx, pendingKey{}, isTrue(h.Attr("pending")))
		}
	}
	b := header.Parse(e)
	if b == nil {
		return ctx, nil
	}
	// An empty Sequence says nothing that a message could be delivered by.
	for i := range e.Header {
		if h := &e.Header[i]; h.Name.Local == "Sequence" && h.Name.Space == header.Namespace(b.Version) &&
			b.Number == 0 && !b.Rollover {
			return ctx, &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Client, Reason: brokenRule(b)}}
		}
	}
	return context.WithValue(ctx, blocksKey{}, b), nil
}

func brokenRule(b *header.Blocks) string {
	if len(b.Broken) > 0 {
		return b.Broken[0]
	}
	return "wsrm: a header block that breaks a rule"
}

// Out adds nothing: see [blocks].
func (blocks) Out(context.Context, *soap.Envelope) ([]soap.Element, error) { return nil, nil }

// chainOf is the chain of an end: the two that belong to it, then those of the application.
func chainOf(more headers.Chain) headers.Chain {
	return slices.Concat(headers.Chain{addressing.HeaderHandler{}, blocks{}}, more)
}

// message makes a message of the protocol.
func message(v soap.Version, p *addressing.Properties, b *header.Blocks) ([]byte, error) {
	head, body := b.Elements(p.Space)
	return soap.Build(&soap.Envelope{Version: v, Header: append(p.Blocks(), head...), Body: body})
}

// with adds what b says to a message of an application.
func with(envelope []byte, space string, b *header.Blocks) ([]byte, error) {
	a, err := soap.Split(envelope, soap.Limits{})
	if err != nil {
		return nil, err
	}
	head, _ := b.Elements(space)
	return a.Rewrite(nil, head)
}

// whole reads a message of the protocol, which is small.
func whole(octets []byte) (*soap.Envelope, error) {
	return soap.Parse(octets, soap.Limits{MaxBytes: maxControl})
}

// maxControl is the longest message that is about sequences and nothing else, in bytes.
const maxControl = 256 << 10

// refusal is a fault about a sequence (1.1, section 4). With SOAP 1.1 its subcode is in a header
// block, unless a CreateSequence is refused.
func refusal(v soap.Version, version Protocol, subcode, reason string, detail ...soap.Element) *headers.RefusedMessage {
	f := soap.Fault{Code: soap.Client, Reason: reason}
	if v == soap.V12 || subcode == createRefused || subcode == rmRequired {
		f.Subcode, f.SubcodeSpace = subcode, version.Namespace()
		if v == soap.V12 {
			f.Detail = detail
		}
		return &headers.RefusedMessage{Fault: f}
	}
	b := header.Blocks{Version: string(version), Fault: subcode}
	head, _ := b.Elements("", detail...)
	return &headers.RefusedMessage{Fault: f, Blocks: head}
}

// invalidAcknowledgement is the fault about a block, which is its detail (1.1, section 4.4).
func invalidAcknowledgement(v soap.Version, version Protocol, why string, block soap.Element) *headers.RefusedMessage {
	return refusal(v, version, invalidAck, why, block)
}

// acknowledgementBlock writes the header block that says what is acknowledged.
func acknowledgementBlock(version Protocol, a header.Acknowledgement) soap.Element {
	b := header.Blocks{Version: string(version), Acknowledgements: []header.Acknowledgement{a}}
	head, _ := b.Elements("")
	return head[0]
}

// identifierOf is the sequence that a block is about.
func identifierOf(block soap.Element) string {
	id := block.Child(soap.Name{Space: block.Name.Space, Local: "Identifier"})
	if id == nil {
		return ""
	}
	return strings.TrimSpace(id.Text)
}

const neverSent = "it acknowledges what was never sent"

// identifier is the detail of most faults.
func identifier(version Protocol, id string) soap.Element {
	return soap.Element{Name: soap.Name{Space: version.Namespace(), Local: "Identifier"}, Text: id}
}

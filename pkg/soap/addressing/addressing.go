// Package addressing has the message addressing properties of WS-Addressing as header blocks: those
// of 1.0 (W3C, 9 May 2006) and of the submission of August 2004.
package addressing

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/hhfr/hhfr/internal/xmlns"
	"github.com/hhfr/hhfr/pkg/soap"
	"github.com/hhfr/hhfr/pkg/soap/headers"
)

// The namespaces of the two versions.
const (
	V200508 = xmlns.WSA
	V200408 = xmlns.WSA200408
)

// Properties are what a message says about where it goes (1.0 Core, section 3; 2004, section 3).
type Properties struct {
	// Space is the namespace of the version.
	Space string
	// Action says what the message means, MessageID which one it is, To where it goes, RelatesTo
	// which one it answers. Empty: it does not say.
	Action, MessageID, To, RelatesTo string
	// ReplyTo and FaultTo are where answers go, From whence it comes; nil: it does not say.
	ReplyTo, FaultTo, From *Reference
}

// Reference is an endpoint reference.
type Reference struct {
	// Address is its URI.
	Address string
	// Parameters are header blocks for each message that goes there.
	Parameters []soap.Element
}

// Anonymous is the address of who waits for an answer on the connection of the request.
func Anonymous(space string) string {
	if space == V200408 {
		return V200408 + "/role/anonymous"
	}
	return space + "/anonymous"
}

// IsAnonymous reports whether answers to a reference go back on the connection of the request. No
// reference is the same (1.0 Core, section 3.4).
func (r *Reference) IsAnonymous() bool {
	return r == nil || IsAnonymous(r.Address)
}

// IsAnonymous reports whether an address is the anonymous one of either version.
func IsAnonymous(address string) bool {
	return address == Anonymous(V200508) || address == Anonymous(V200408)
}

// FaultAction is the action of faults of the version.
func FaultAction(space string) string { return space + "/fault" }

// NewID returns a new message identifier, urn:uuid and a random UUID (RFC 4122, section 4.4).
func NewID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // which never fails
	id[6], id[8] = id[6]&0x0F|0x40, id[8]&0x3F|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// Read reads the properties of a message; nil if it has none. Errors: [*headers.RefusedMessage],
// for a property that stands twice or a reference without an address (1.0 SOAP Binding, section
// 6.4.1).
func Read(e *soap.Envelope) (*Properties, error) {
	var p *Properties
	seen := map[string]bool{}
	for i := range e.Header {
		b := &e.Header[i]
		if !known(b.Name) || !b.ForReceiver(e.Version) {
			continue
		}
		if p == nil {
			p = &Properties{Space: b.Name.Space}
		}
		if b.Name.Space != p.Space {
			continue // another version beside it: the first one counts
		}
		if seen[b.Name.Local] && b.Name.Local != "RelatesTo" {
			return nil, invalid(p.Space, b.Name.Local+" stands twice")
		}
		seen[b.Name.Local] = true
		if err := p.take(b); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Properties) take(b *soap.Element) (err error) {
	text := strings.TrimSpace(b.Text)
	switch b.Name.Local {
	case "Action":
		p.Action = text
	case "MessageID":
		p.MessageID = text
	case "To":
		p.To = text
	case "RelatesTo":
		if p.RelatesTo == "" {
			p.RelatesTo = text
		}
	case "ReplyTo":
		p.ReplyTo, err = p.reference(b)
	case "FaultTo":
		p.FaultTo, err = p.reference(b)
	case "From":
		p.From, err = p.reference(b)
	}
	return err
}

func (p *Properties) reference(b *soap.Element) (*Reference, error) {
	address := b.Child(soap.Name{Space: p.Space, Local: "Address"})
	if address == nil || strings.TrimSpace(address.Text) == "" {
		return nil, invalid(p.Space, b.Name.Local+" has no Address")
	}
	r := &Reference{Address: strings.TrimSpace(address.Text)}
	for _, local := range []string{"ReferenceParameters", "ReferenceProperties"} {
		if c := b.Child(soap.Name{Space: p.Space, Local: local}); c != nil {
			r.Parameters = append(r.Parameters, c.Children...)
		}
	}
	return r, nil
}

func invalid(space, why string) error {
	subcode := "InvalidAddressingHeader"
	if space == V200408 {
		subcode = "InvalidMessageInformationHeader"
	}
	return &headers.RefusedMessage{Fault: soap.Fault{Code: soap.Client, Subcode: subcode, SubcodeSpace: space,
		Reason: why}}
}

// locals are the names of the blocks of both versions.
var locals = map[string]bool{
	"Action": true, "MessageID": true, "To": true, "RelatesTo": true, "ReplyTo": true, "FaultTo": true, "From": true,
}

func known(name soap.Name) bool {
	return (name.Space == V200508 || name.Space == V200408) && locals[name.Local]
}

// Blocks returns the properties as header blocks.
func (p *Properties) Blocks() []soap.Element {
	var list []soap.Element
	name := func(local string) soap.Name { return soap.Name{Space: p.Space, Local: local} }
	for _, b := range []struct{ local, text string }{
		{"Action", p.Action}, {"MessageID", p.MessageID}, {"To", p.To}, {"RelatesTo", p.RelatesTo},
	} {
		if b.text != "" {
			list = append(list, soap.Element{Name: name(b.local), Text: b.text})
		}
	}
	for _, b := range []struct {
		local string
		to    *Reference
	}{{"From", p.From}, {"ReplyTo", p.ReplyTo}, {"FaultTo", p.FaultTo}} {
		if b.to == nil {
			continue
		}
		e := soap.Element{Name: name(b.local), Children: []soap.Element{{Name: name("Address"), Text: b.to.Address}}}
		if len(b.to.Parameters) > 0 {
			e.Children = append(e.Children, soap.Element{Name: name("ReferenceParameters"), Children: b.to.Parameters})
		}
		list = append(list, e)
	}
	return list
}

// Endpoint is where the reply to a message with these properties goes, or a fault: that to FaultTo,
// if there is one (1.0 Core, section 3.4). nil: on the connection of the request.
func (p *Properties) Endpoint(fault bool) *Reference {
	if fault && p.FaultTo != nil {
		return p.FaultTo
	}
	return p.ReplyTo
}

// Answer returns the properties of the message that answers one with these.
func (p *Properties) Answer(action string) *Properties { return p.answer(action, p.ReplyTo) }

// AnswerFault returns those of a fault.
func (p *Properties) AnswerFault(action string) *Properties {
	return p.answer(action, p.Endpoint(true))
}

func (p *Properties) answer(action string, to *Reference) *Properties {
	a := &Properties{Space: p.Space, Action: action, MessageID: NewID(), RelatesTo: p.MessageID,
		To: Anonymous(p.Space)}
	if to != nil {
		a.To = to.Address
	}
	return a
}

// HeaderHandler is the header handler of WS-Addressing. A reply says what it answers if its request
// had properties.
type HeaderHandler struct{}

type propertiesKey struct{}

// Of returns the properties of the message that a handler with this context processes; nil: it has
// none.
func Of(ctx context.Context) *Properties {
	p, _ := ctx.Value(propertiesKey{}).(*Properties)
	return p
}

// Understands reports whether a name is one of a property.
func (HeaderHandler) Understands(name soap.Name) bool { return known(name) }

// Role is that of the ultimate receiver.
func (HeaderHandler) Role() string { return "" }

// In reads the properties.
func (HeaderHandler) In(ctx context.Context, e *soap.Envelope) (context.Context, error) {
	p, err := Read(e)
	if err != nil || p == nil {
		return ctx, err
	}
	return context.WithValue(ctx, propertiesKey{}, p), nil
}

// Out writes those of a reply. The action is that of the request with "Response" behind it, or that
// of faults (1.0 Metadata, section 4.4.4, for messages that no description has another one for).
func (HeaderHandler) Out(ctx context.Context, e *soap.Envelope) ([]soap.Element, error) {
	p := Of(ctx)
	if p == nil {
		return nil, nil
	}
	action := p.Action
	if action != "" {
		action += "Response"
	}
	fault := len(e.Body) > 0 && e.Body[0].Name == (soap.Name{Space: e.Version.Namespace(), Local: "Fault"})
	if fault {
		action = FaultAction(p.Space)
	}
	to := p.Endpoint(fault)
	blocks := p.answer(action, to).Blocks()
	if to != nil {
		blocks = append(blocks, to.Parameters...)
	}
	return blocks, nil
}
